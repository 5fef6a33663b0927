"""Install, start, stop, and remove the systemd or launchd service of this user.

This touches only files that carry the mark of rootsd; see `service_files`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from rootsd import __version__
from rootsd.cli.answers import lifecycle
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.service_files import ServiceFiles, plan_files
from rootsd.core.errors import DaemonUnreachable, ErrorCode, RootsdError
from rootsd.files.private_files import ensure_private_folder
from rootsd.places import runtime_dir
from rootsd.service import detect, start_record, unit_files
from rootsd.service.launcher import StartFailed
from rootsd.service.manager import ServiceManager, is_running
from rootsd.wire.daemon import StatusQuery


class ServiceNotInstalled(RootsdError):
    """The service is not installed."""

    code = ErrorCode.NOTHING_MATCHED


class ServiceNeedsDefaultPlaces(RootsdError):
    """ROOTSD_DIR is set."""

    code = ErrorCode.USAGE


def user_supervisor() -> ServiceManager:
    """Return the service manager of this user. Raises ServiceNeedsDefaultPlaces."""
    if runtime_dir.overriding_folder():
        raise ServiceNeedsDefaultPlaces(
            f"{runtime_dir.OVERRIDE} is set, but a service uses the default folders",
            f"env -u {runtime_dir.OVERRIDE} rootsd service install",
        )
    return detect.local_service_manager(os.environ)


def installed_supervisor() -> ServiceManager:
    """Return the service manager of this user. Raises ServiceNotInstalled."""
    managing = user_supervisor()
    if not managing.is_installed():
        raise ServiceNotInstalled("the service is not installed", "rootsd service install")
    managing.ensure_reachable()
    return managing


def install_service(
    invocation: Invocation, managing: ServiceManager, *, strict: bool | None
) -> None:
    """Write the files, start the service, and return when the daemon is ready.

    Restarts nothing if nothing changes. Raises RootsdError; the files stay, and the next call
    continues from there.
    """
    managing.ensure_reachable()
    if changes := start_record.describe_place_changes():
        invocation.output.warn([f"{changes}; the daemon now uses the folders of this shell"])
    wanted = plan_files(invocation, managing, strict=strict)
    wanted.refuse_foreign()
    is_new = not managing.is_installed()
    stale = wanted.stale()
    wanted.write()
    start_record.save_start_record(wanted.settings.plan)
    if is_new or stale or wanted.surplus or not managing.state()["enabled"]:
        managing.load()
    _stop_conflicting_daemon(invocation, managing, stale)
    try:
        _ensure_service_runs(invocation, managing, wanted, changed=bool(stale or wanted.surplus))
    except StartFailed as failure:
        if not wanted.settings.strict:
            raise
        _retry_without_strict(invocation, managing, wanted, failure)


def installed_files(managing: ServiceManager) -> list[Path]:
    """Return the files that `install_service` wrote. Raises ServiceNotInstalled."""
    known = [managing.folder / name for name in (*unit_files.ALL_UNITS, *unit_files.AGENTS)]
    ours = [file for file in known if unit_files.is_generated(file)]
    if not ours:
        raise ServiceNotInstalled("the service is not installed", "rootsd service install")
    return ours


def uninstall_service(invocation: Invocation, managing: ServiceManager) -> list[Path]:
    """Stop the service, remove its files, and return their paths.

    Files of others in the same folders stay, and so do decisions and configuration.
    """
    managing.ensure_reachable()
    ours = installed_files(managing)
    start_record.mark_stopped()  # first, or a bridge would start the next daemon at once
    managing.unload()
    for file in ours:
        file.unlink()
    for folder in (managing.folder / "rootsd.service.d", managing.folder, managing.folder.parent):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    managing.forget()
    lifecycle.stop(invocation)
    return ours


def start_service(managing: ServiceManager) -> None:
    """Start the daemon now and at each login. Raises StartFailed and PlacesMismatch."""
    _start(managing.start)


def restart_service(managing: ServiceManager) -> None:
    """Start a new daemon in place of the running one. Raises StartFailed and PlacesMismatch."""
    _start(managing.restart)


def _start(order: Callable[[], None]) -> None:
    # The service files name the folders, so that stopping the daemon first would not help.
    lifecycle.ensure_places_of_service()
    start_record.record_start()
    order()
    lifecycle.wait_until_ready()


def stop_service(managing: ServiceManager) -> None:
    """Stop the service, until `rootsd service start` or `rootsd up`.

    `rootsd.cli.answers.lifecycle` has the functions that also stop a daemon in the background.
    """
    start_record.mark_stopped()
    managing.stop()


def _stop_conflicting_daemon(
    invocation: Invocation, managing: ServiceManager, stale: Sequence[Path]
) -> None:
    """Stop a daemon that `up` started, and sockets whose unit changed.

    Such a daemon holds the lock, and systemd does not reload a socket unit that is in use.
    """
    state = managing.state()
    if any(file.suffix == ".socket" for file in stale) and (is_running(state) or state["sockets"]):
        managing.stop()
    try:
        pid = invocation.call(StatusQuery())["daemon"]["pid"]
    except DaemonUnreachable:
        return
    if pid != managing.state()["pid"]:
        lifecycle.stop(invocation)


def _ensure_service_runs(
    invocation: Invocation, managing: ServiceManager, wanted: ServiceFiles, *, changed: bool
) -> None:
    for folder in wanted.settings.writable:
        ensure_private_folder(folder)  # systemd cannot make a missing folder writable
    if is_running(managing.state()) and (changed or _is_other_version(invocation)):
        managing.restart()
    managing.start()
    lifecycle.wait_until_ready()


def _is_other_version(invocation: Invocation) -> bool:
    try:
        version: str = invocation.call(StatusQuery())["daemon"]["version"]
    except DaemonUnreachable:
        return False
    return version != __version__


def _retry_without_strict(
    invocation: Invocation, managing: ServiceManager, wanted: ServiceFiles, failure: StartFailed
) -> None:
    (managing.folder / unit_files.STRICT_DROP_IN).unlink()
    managing.load()
    _ensure_service_runs(invocation, managing, wanted, changed=True)
    invocation.output.warn(
        [f"the service cannot start with --strict; it runs without it: {failure.message}"]
    )
