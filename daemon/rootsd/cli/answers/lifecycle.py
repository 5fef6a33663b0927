"""Start and stop the daemon, and wait until it is ready or gone.

The daemon runs as a service if one is installed, else in the background. Two functions end it:
`stop` ends the process, and `shut_down` also stops the service that would start it again.
`rootsd.cli.answers.installer.stop_service` is `shut_down` for an installed service alone.
"""

from __future__ import annotations

import os
import select
import shlex
import sys
import time
from contextlib import suppress

from rootsd import __version__
from rootsd.cli.answers import control_client
from rootsd.cli.answers.invocation import Invocation
from rootsd.core.errors import Busy, DaemonUnreachable, RootsdError
from rootsd.core.labels import safe_label
from rootsd.link import rpc
from rootsd.places.base_folders import default_folder
from rootsd.service import detect, launcher, start_record
from rootsd.wire.daemon import AnnounceRequest, ReloadRequest, StatusQuery, StopRequest

_POLL_INTERVAL_S = 0.05


def ensure_running(invocation: Invocation) -> None:
    """Make sure that a daemon of this version runs and has read the current configuration.

    Raises RootsdError.
    """
    _report_changed_places(invocation)
    plan = start_record.record_start()
    if _keep_running_daemon(invocation):
        return
    if service := detect.installed_service(os.environ):
        service.start()
        wait_until_ready()
        # A bridge may have started it before the configuration was written.
        invocation.call(ReloadRequest())
        invocation.output.message("The daemon now runs as a service.")
        return
    if (
        launcher.start_unless_running(lambda: plan, control_client.is_running)
        is launcher.StartResult.RUNNING
    ):
        invocation.call(ReloadRequest())  # a bridge has started it in the meantime
    invocation.output.message("The daemon now runs in the background.")


def reload_if_running(invocation: Invocation, command: str = "") -> bool:
    """Have a running daemon reload the configuration, which `command` changed.

    Returns whether a daemon runs.
    """
    try:
        invocation.call(ReloadRequest(command))
    except DaemonUnreachable:
        return False
    return True


def wait_until_ready(timeout: float = launcher.START_TIMEOUT_S) -> None:
    """Return when a daemon accepts connections, or raise StartFailed after `timeout` seconds.

    systemd has waited for that already; launchd does not report when a program is ready.
    """
    deadline = time.monotonic() + timeout
    while not control_client.is_running():
        if time.monotonic() > deadline:
            raise launcher.StartFailed(
                f"the daemon is not ready after {timeout:.0f} s", "rootsd service logs"
            )
        select.select((), (), (), _POLL_INTERVAL_S)


def shut_down(invocation: Invocation) -> int | None:
    """Stop the daemon and the service that would start it again.

    Returns the daemon's process id, or None if none ran. Raises RootsdError.
    """
    pid = None
    if service := detect.installed_service(os.environ):
        pid = service.state()["pid"]
        with suppress(RootsdError):  # no daemon, or an older one that lacks this request
            invocation.call(AnnounceRequest("down"))
        service.stop()
    return stop(invocation) or pid


def stop(invocation: Invocation) -> int | None:
    """Stop the daemon process, and wait until it is gone. A service may start it again.

    Returns its process id, or None if none ran. Raises Busy if it does not exit.
    """
    try:
        pid: int = invocation.call(StatusQuery())["daemon"]["pid"]
        with launcher.ExitWaiter(pid) as waiter:
            invocation.call(StopRequest())
            if not waiter.wait():
                raise Busy(f"the daemon (pid {pid}) does not exit", f"kill {pid}")
    except DaemonUnreachable:
        return None
    return pid


def ensure_places_of_service() -> None:
    """Raise PlacesMismatch if the service files name other folders than this shell."""
    start_record.refuse_place_changes("rootsd service install, to use the folders of this shell")


def _report_changed_places(invocation: Invocation) -> None:
    """Report folders that change with this start, and folders that this shell does not set.

    Raises PlacesMismatch if a service is installed, because its files name the folders.
    """
    if changes := start_record.describe_place_changes():
        if detect.installed_service(os.environ):
            ensure_places_of_service()
        start_record.ensure_same_places()
        invocation.output.warn([f"{changes}; the daemon now uses the folders of this shell"])
    for name, value in start_record.recorded_places().items():
        usual = default_folder(name)
        if not os.environ.get(name) and value != usual:
            shown = safe_label(value, limit=None)
            back = f"rootsd down && {name}={shlex.quote(usual)} rootsd up"
            invocation.output.message(f"{name} is {shown}, as at the last start.")
            invocation.output.message(f"To use the usual folder again: {back}")


def _keep_running_daemon(invocation: Invocation) -> bool:
    """Reload a running daemon and return True; stop one that should be replaced."""
    if not control_client.is_running():
        return False
    try:
        if not _should_replace(invocation):
            invocation.call(ReloadRequest())
            return True
    except rpc.DaemonGone:  # it ended before it answered
        return False
    stop(invocation)
    return False


def _should_replace(invocation: Invocation) -> bool:
    """Return whether to replace the running daemon, because it is older than this command.

    On a terminal, ask the person first.
    """
    version = invocation.call(StatusQuery())["daemon"]["version"]
    if version == __version__:
        return False
    shown = safe_label(version)
    if _release_numbers(version) > _release_numbers(__version__):
        invocation.output.warn(
            [f"the daemon is version {shown}, newer than this command; it keeps running"]
        )
        return False
    is_asked = not (invocation.flags.no_input or invocation.flags.json) and sys.stdin.isatty()
    if is_asked and not _confirmed(shown):
        return False
    invocation.output.message(f"The daemon is version {shown}; starting {__version__} instead.")
    return True


def _confirmed(version: str) -> bool:
    import click

    from rootsd.cli.text.terminal import drop_earlier_input

    question = f"The daemon is version {version}. Start {__version__} instead?"
    drop_earlier_input()
    return click.confirm(question, default=True, err=True)


def _release_numbers(version: str) -> tuple[int, ...]:
    """Return the release numbers of a version, to compare; empty if it has another form."""
    release = version.partition("+")[0].split(".")
    return tuple(int(part) for part in release if part.isdecimal())
