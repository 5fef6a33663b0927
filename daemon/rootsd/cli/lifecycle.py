"""Start and stop the daemon, and wait until it is ready or gone."""

from __future__ import annotations

import os
import select
import sys
import time
from contextlib import suppress

from rootsd import __version__
from rootsd.cli import control_client
from rootsd.cli.invocation import Invocation
from rootsd.core.errors import Busy, DaemonUnreachable, RootsdError
from rootsd.core.labels import safe_label
from rootsd.service import detect, launcher, start_record
from rootsd.system.ipc import rpc
from rootsd.wire.daemon import AnnounceRequest, ReloadRequest, StatusQuery, StopRequest

_POLL_INTERVAL_S = 0.05


def ensure_running(invocation: Invocation) -> None:
    """Have a daemon of this version run, with the configuration as it is. Raises RootsdError."""
    _report_changed_places(invocation)
    recipe = start_record.make_start_record(invocation.places.log)
    start_record.save_start_record(recipe)
    if _keep_running_daemon(invocation):
        return
    if service := detect.installed_service(os.environ):
        service.start()
        wait_until_ready()
        invocation.call(
            ReloadRequest()
        )  # a bridge may have woken it before the configuration was written
        invocation.output.say("The daemon runs as a service now.")
        return
    if (
        launcher.start_unless_running(lambda: recipe, control_client.is_running)
        is launcher.StartResult.RUNNING
    ):
        invocation.call(ReloadRequest())  # a bridge has started it meanwhile
    invocation.output.say("The daemon runs in the background now.")


def reload_if_running(invocation: Invocation, command: str = "") -> bool:
    """Have a running daemon read the configuration, which `command` changed, again.

    Return whether a daemon runs.
    """
    try:
        invocation.call(ReloadRequest(command))
    except DaemonUnreachable:
        return False
    return True


def wait_until_ready(patience: float = launcher.START_TIMEOUT_S) -> None:
    """Return when a daemon takes connections. systemd has waited for that already; launchd starts
    a program and tells no more. Raises StartFailed."""
    deadline = time.monotonic() + patience
    while not control_client.is_running():
        if time.monotonic() > deadline:
            raise launcher.StartFailed(
                f"the daemon is not ready after {patience:.0f} s", "rootsd service logs"
            )
        select.select((), (), (), _POLL_INTERVAL_S)


def shut_down(invocation: Invocation) -> int | None:
    """Stop the daemon and what would start it again; its process id, None where none ran.

    Raises RootsdError.
    """
    pid = None
    if service := detect.installed_service(os.environ):
        pid = service.state().pid
        with suppress(RootsdError):  # an older daemon, or none
            invocation.call(AnnounceRequest("down"))
        service.stop()
    return stop(invocation) or pid


def stop(invocation: Invocation) -> int | None:
    """End the daemon and wait until it is gone; its process id, None where none ran.

    Raises Busy where it does not end.
    """
    try:
        pid: int = invocation.call(StatusQuery())["daemon"]["pid"]
        with launcher.ExitWaiter(pid) as departure:
            invocation.call(StopRequest())
            if not departure.wait():
                raise Busy(f"the daemon (pid {pid}) does not end", f"kill {pid}")
    except DaemonUnreachable:
        return None
    return pid


def _report_changed_places(invocation: Invocation) -> None:
    """Say where the places are not what this shell would have them be, or will be others from now
    on. Raises OtherPlaces where they cannot become so."""
    if told := start_record.describe_place_changes():
        if detect.installed_service(os.environ):
            raise start_record.PlacesMismatch(told, "rootsd service install, to have it as here")
        start_record.ensure_same_places()
        invocation.output.warn([f"{told}; from now on it is as here"])
    for name, value in start_record.recorded_places().items():
        if not os.environ.get(name):
            shown = safe_label(value, limit=None)
            invocation.output.say(f"As at the last start, {name} is {shown}.")


def _keep_running_daemon(invocation: Invocation) -> bool:
    """Whether a daemon runs and stays; it has read the configuration again then."""
    if not control_client.is_running():
        return False
    try:
        if not _should_replace(invocation):
            invocation.call(ReloadRequest())
            return True
    except rpc.DaemonGone:  # killed while it was asked
        return False
    stop(invocation)
    return False


def _should_replace(invocation: Invocation) -> bool:
    """Whether the daemon that runs is older than this command, and a person does not object."""
    version = invocation.call(StatusQuery())["daemon"]["version"]
    if version == __version__:
        return False
    shown = safe_label(version)
    if _release_numbers(version) > _release_numbers(__version__):
        invocation.output.warn(
            [f"the daemon is of version {shown}, newer than this command; it goes on"]
        )
        return False
    is_asked = not (invocation.flags.no_input or invocation.flags.json) and sys.stdin.isatty()
    if is_asked and not _confirmed(shown):
        return False
    invocation.output.say(f"The daemon is of version {shown}; starting {__version__} instead.")
    return True


def _confirmed(version: str) -> bool:
    import click

    question = f"The daemon is of version {version}. Start {__version__} instead?"
    return click.confirm(question, default=True, err=True)


def _release_numbers(version: str) -> tuple[int, ...]:
    """The release numbers of a version, for comparing; none where it has no such form."""
    release = version.partition("+")[0].split(".")
    return tuple(int(part) for part in release if part.isdecimal())
