"""Install and remove the systemd or launchd service, and purge what rootsd stored.

Installing and uninstalling touch only files that carry the mark of rootsd. A purge removes the
decisions, the second anchor, the configuration, and the logs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from rootsd import __version__
from rootsd.cli.answers import lifecycle
from rootsd.cli.answers.invocation import Invocation
from rootsd.connect.record import ConnectRecord
from rootsd.core.errors import DaemonUnreachable, ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.files.lock import DaemonLock, LockRecord
from rootsd.files.private_files import ensure_private_folder, make_folder, replace_private_file
from rootsd.places import runtime_dir
from rootsd.places.base_folders import PLACE_VARIABLES
from rootsd.processes.command_path import installed_command
from rootsd.service import detect, start_record, unit_files
from rootsd.service.launchd import Launchd
from rootsd.service.launcher import StartFailed
from rootsd.service.manager import ServiceManager
from rootsd.sync.record import SyncRecord
from rootsd.wire.daemon import StatusQuery


class ServiceNotInstalled(RootsdError):
    """The service is not installed."""

    code = ErrorCode.NOTHING_MATCHED


class ForeignServiceFile(RootsdError):
    """A file that the installation would write exists, and is not from rootsd."""


class ServiceNeedsDefaultPlaces(RootsdError):
    """ROOTSD_DIR is set."""

    code = ErrorCode.USAGE


class ServiceFiles(Struct, frozen=True):
    """The files of the service, by path, and the surplus files that rootsd wrote earlier."""

    settings: unit_files.UnitSettings
    files: Mapping[Path, str]
    surplus: Sequence[Path]

    def stale(self) -> list[Path]:
        """Return the files that are missing or have another text."""
        return [file for file, text in self.files.items() if _text_of(file) != text]

    def outdated(self) -> str:
        """Return a clause that names the stale files and says why they are, or an empty text.

        A file is missing if the version that wrote the others did not know it.
        """
        stale = self.stale()
        missing = [file for file in stale if not file.exists()]
        changed = [file for file in stale if file not in missing]
        if missing and len(missing) < len(self.files):
            clauses = [f"{_names(missing)} missing"]
            clauses += [f"{_names(changed)} different"] if changed else []
            return f"an older version wrote the service: {' and '.join(clauses)}"
        return f"{_names(stale)} was written for another version or other folders" if stale else ""


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


def plan_files(
    invocation: Invocation, managing: ServiceManager, *, strict: bool | None
) -> ServiceFiles:
    """Return the files that `install_service` writes; `strict` None keeps the current choice."""
    folder = managing.folder
    if strict is None:
        strict = unit_files.is_generated(folder / unit_files.STRICT_DROP_IN)
    settings = _unit_settings(invocation, strict=strict)
    is_launchd = isinstance(managing, Launchd)
    named = (
        unit_files.launchd_agents(settings) if is_launchd else unit_files.systemd_units(settings)
    )
    known = unit_files.AGENTS if is_launchd else unit_files.ALL_UNITS
    surplus = [folder / name for name in known if name not in named]
    return ServiceFiles(
        settings,
        {folder / name: text for name, text in named.items()},
        [file for file in surplus if unit_files.is_generated(file)],
    )


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
    for file in wanted.files:
        if file.exists() and not unit_files.is_generated(file):
            shown = safe_label(str(file), limit=None)
            raise ForeignServiceFile(
                f"{shown} exists, and is not from rootsd", f"mv {shown} {shown}.old"
            )
    is_new = not managing.is_installed()
    stale = wanted.stale()
    _write_files(wanted, stale)
    start_record.save_start_record(wanted.settings.plan)
    if is_new or stale or wanted.surplus or not managing.state().enabled:
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


def _unit_settings(invocation: Invocation, *, strict: bool) -> unit_files.UnitSettings:
    plan, places = start_record.plan_start(), invocation.places
    state, data = (Path(os.fsdecode(place)) for place in (places.state, places.data))
    writable = dict.fromkeys((state, data, plan.folder, plan.logs))
    return unit_files.UnitSettings(
        plan,
        command=installed_command(),
        writable=tuple(
            folder
            for folder in writable
            if not any(folder != other and folder.is_relative_to(other) for other in writable)
        ),
        synced=SyncRecord(places.state).clients_file,
        strict=strict,
    )


def _write_files(wanted: ServiceFiles, stale: Sequence[Path]) -> None:
    for file in stale:
        make_folder(file.parent)
        replace_private_file(file, wanted.files[file].encode())
    for file in wanted.surplus:
        file.unlink()


def _stop_conflicting_daemon(
    invocation: Invocation, managing: ServiceManager, stale: Sequence[Path]
) -> None:
    """Stop a daemon that `up` started, and sockets whose unit changed.

    Such a daemon holds the lock, and systemd does not reload a socket unit that is in use.
    """
    state = managing.state()
    if any(file.suffix == ".socket" for file in stale) and (state.is_running or state.sockets):
        managing.stop()
    try:
        pid = invocation.call(StatusQuery())["daemon"]["pid"]
    except DaemonUnreachable:
        return
    if pid != managing.state().pid:
        lifecycle.stop(invocation)


def _ensure_service_runs(
    invocation: Invocation, managing: ServiceManager, wanted: ServiceFiles, *, changed: bool
) -> None:
    for folder in wanted.settings.writable:
        ensure_private_folder(folder)  # systemd cannot make a missing folder writable
    if managing.state().is_running and (changed or _is_other_version(invocation)):
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


def _names(files: Sequence[Path]) -> str:
    return ", ".join(safe_label(file.name) for file in files)


def _text_of(file: Path) -> str | None:
    try:
        return file.read_text("utf-8", "replace")
    except FileNotFoundError:
        return None


class ClientsConnected(RootsdError):
    """The record of what was changed in other programs' files is still needed."""


class FolderNotRemoved(RootsdError):
    """A folder could not be removed."""


def data_folders(invocation: Invocation) -> list[Path]:
    """Return the daemon's own folders that exist."""
    places = invocation.places
    lasting = (places.config, places.log, places.state, places.data)
    named = (*lasting, *(folder.path for folder in runtime_dir.find_runtime_dirs()))
    own = dict.fromkeys(
        [*(Path(os.fsdecode(name)) for name in named), start_record.start_folder()]
    )
    return [folder for folder in own if folder.is_dir() and not folder.is_symlink()]


def ensure_places_for_purge() -> None:
    """Raise PlacesMismatch if `purge_data` would remove other folders than the daemon's."""
    unset = " ".join(f"-u {name}" for name in PLACE_VARIABLES)
    start_record.refuse_place_changes(f"env {unset} rootsd service uninstall --purge")


def ensure_clients_are_disconnected(invocation: Invocation) -> None:
    """Raise ClientsConnected if a client has our entries: a purge would lose their record."""
    state = invocation.places.state
    synced = SyncRecord(state).clients().values()
    names = {*ConnectRecord(state).names(), *(each.client for each in synced)}
    if names:
        raise ClientsConnected(
            f"rootsd is still in the configuration of {', '.join(sorted(names))}",
            "rootsd disconnect --all",
        )


def purge_data(invocation: Invocation) -> list[Path]:
    """Stop the daemon, remove its own folders, and return the folders that existed.

    Holds the daemon's lock, so that no running daemon loses its store. Raises Busy and
    FolderNotRemoved.
    """
    lifecycle.shut_down(invocation)
    present = data_folders(invocation)
    state = Path(os.fsdecode(invocation.places.state))
    if state in present:
        with DaemonLock.acquire(state, LockRecord(os.getpid(), "purge", {})):
            _remove_folder(state)
    for folder in present:
        _remove_folder(folder)
    return present


def _remove_folder(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass  # removed already, together with a folder above it
    except OSError as error:
        shown = safe_label(str(folder), limit=None)
        raise FolderNotRemoved(
            f"{shown} cannot be removed: {error.strerror}", f"ls -la {shown}"
        ) from error
