"""Install and remove the systemd or launchd service, and purge what rootsd stored.

The daemon as a service of the user: installed, and taken away without a trace.

Removes the data that lasts: decisions, the second anchor, configuration, logs.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rootsd import __version__
from rootsd.cli import lifecycle
from rootsd.cli.invocation import Invocation
from rootsd.core.errors import DaemonUnreachable, ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.service import detect, start_record, unit_files
from rootsd.service.launchd import Launchd
from rootsd.service.launcher import StartFailed
from rootsd.service.manager import ServiceManager
from rootsd.system import runtime_dir
from rootsd.system.command_path import stable_command
from rootsd.system.lock import DaemonLock, LockRecord
from rootsd.system.private_files import ensure_private_folder, make_folder
from rootsd.wire.daemon import StatusQuery


class ServiceNotInstalled(RootsdError):
    """There is no service."""

    code = ErrorCode.NOTHING_MATCHED


class ForeignServiceFile(RootsdError):
    """A file that we would write is there and not ours."""


class ServiceNeedsDefaultPlaces(RootsdError):
    """ROOTSD_DIR is set."""

    code = ErrorCode.USAGE


@dataclass(frozen=True, slots=True)
class ServiceFiles:
    """The files that make the service, by path, and those of ours that are too many."""

    files: Mapping[Path, str]
    surplus: Sequence[Path]

    def stale(self) -> list[Path]:
        """Those that do not stand as they should."""
        return [file for file, text in self.files.items() if _text_of(file) != text]

    @property
    def is_strict(self) -> bool:
        """Whether tier 2 of the hardening is in it."""
        return any(file.match(f"*/{unit_files.STRICT_DROP_IN}") for file in self.files)


def user_supervisor() -> ServiceManager:
    """The supervisor of this user. Raises OtherPlaces: a service serves the usual places."""
    if runtime_dir.overriding_folder():
        raise ServiceNeedsDefaultPlaces(
            f"{runtime_dir.OVERRIDE} is set, and a service serves the usual places",
            f"env -u {runtime_dir.OVERRIDE} rootsd service install",
        )
    return detect.local_service_manager(os.environ)


def installed_supervisor() -> ServiceManager:
    """The same, which runs the daemon. Raises NotInstalled."""
    managing = user_supervisor()
    if not managing.is_installed():
        raise ServiceNotInstalled("the service is not installed", "rootsd service install")
    managing.ensure_reachable()
    return managing


def plan_files(
    invocation: Invocation, managing: ServiceManager, *, strict: bool | None
) -> ServiceFiles:
    """What `install` writes; `strict` as it is now where it is None."""
    folder = managing.folder
    if strict is None:
        strict = unit_files.is_generated(folder / unit_files.STRICT_DROP_IN)
    settings = _unit_settings(invocation, strict=strict)
    is_launchd = isinstance(managing, Launchd)
    named = (
        unit_files.launchd_agent(settings) if is_launchd else unit_files.systemd_units(settings)
    )
    known = (unit_files.AGENT_PLIST,) if is_launchd else unit_files.ALL_UNITS
    surplus = [folder / name for name in known if name not in named]
    return ServiceFiles(
        {folder / name: text for name, text in named.items()},
        [file for file in surplus if unit_files.is_generated(file)],
    )


def install_service(
    invocation: Invocation, managing: ServiceManager, *, strict: bool | None
) -> None:
    """Write the files, have the daemon run by them, and return when it is ready.

    Nothing is restarted where nothing changes. Raises RootsdError; what is written stays, so that
    the next call goes on from there.
    """
    managing.ensure_reachable()
    if told := start_record.describe_place_changes():
        invocation.output.warn([f"{told}; from now on it is as here"])
    wanted = plan_files(invocation, managing, strict=strict)
    for file in wanted.files:
        if file.exists() and not unit_files.is_generated(file):
            shown = safe_label(str(file), limit=None)
            raise ForeignServiceFile(
                f"{shown} is there and not from rootsd", f"mv {shown} {shown}.old"
            )
    is_new = not managing.is_installed()
    stale = wanted.stale()
    _write_files(wanted, stale)
    start_record.save_start_record(start_record.make_start_record(invocation.places.log))
    if is_new or stale or wanted.surplus or not managing.state().enabled:
        managing.load()
    _stop_conflicting_daemon(invocation, managing, stale)
    try:
        _ensure_service_runs(invocation, managing, changed=bool(stale or wanted.surplus))
    except StartFailed as failure:
        if not wanted.is_strict:
            raise
        _retry_without_strict(invocation, managing, failure)


def installed_files(managing: ServiceManager) -> list[Path]:
    """The files that `install` wrote and `uninstall` removes. Raises NotInstalled."""
    known = [managing.folder / name for name in (*unit_files.ALL_UNITS, unit_files.AGENT_PLIST)]
    ours = [file for file in known if unit_files.is_generated(file)]
    if not ours:
        raise ServiceNotInstalled("the service is not installed", "rootsd service install")
    return ours


def uninstall_service(invocation: Invocation, managing: ServiceManager) -> list[Path]:
    """Stop the service and remove what `install` wrote; the files that are gone.

    Files that somebody else put beside them stay, decisions and configuration do, too.
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


def start_service(invocation: Invocation, managing: ServiceManager) -> None:
    """Have the daemon run, now and at each login. Raises StartFailed, OtherPlaces."""
    _ensure_same_places()
    start_record.save_start_record(start_record.make_start_record(invocation.places.log))
    managing.start()
    lifecycle.wait_until_ready()


def restart_service(invocation: Invocation, managing: ServiceManager) -> None:
    """A new daemon. Raises StartFailed, OtherPlaces."""
    _ensure_same_places()
    start_record.save_start_record(start_record.make_start_record(invocation.places.log))
    managing.restart()
    lifecycle.wait_until_ready()


def stop_service(managing: ServiceManager) -> None:
    """End the daemon; nothing but `start` and `up` starts it again."""
    start_record.mark_stopped()
    managing.stop()


def _ensure_same_places() -> None:
    # The places stand in the units, so that a `down` before makes no difference.
    if told := start_record.describe_place_changes():
        raise start_record.PlacesMismatch(told, "rootsd service install, to have it as here")


def _unit_settings(invocation: Invocation, *, strict: bool) -> unit_files.UnitSettings:
    places = invocation.places
    state, data, log = (
        Path(os.fsdecode(place)) for place in (places.state, places.data, places.log)
    )
    start_folder = start_record.start_folder()
    writable = dict.fromkeys((state, data, start_folder, log))
    return unit_files.UnitSettings(
        command=stable_command(
            sys.argv[0],
            scripts=Path(sysconfig.get_path("scripts")),
            environment=Path(sys.prefix),
            home=Path(os.fsdecode(runtime_dir.home_folder())),
            search=os.environ.get("PATH", ""),
        ),
        environment=start_record.place_variables(),
        writable=tuple(
            folder
            for folder in writable
            if not any(folder != other and folder.is_relative_to(other) for other in writable)
        ),
        stopped=start_folder / start_record.STOPPED_NAME,
        log=log / start_record.LOG_NAME,
        strict=strict,
    )


def _write_files(wanted: ServiceFiles, stale: Sequence[Path]) -> None:
    for file in stale:
        make_folder(file.parent)
        fd, fresh = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        with open(fd, "w", encoding="utf-8") as stream:
            stream.write(wanted.files[file])
        os.replace(fresh, file)
    for file in wanted.surplus:
        file.unlink()


def _stop_conflicting_daemon(
    invocation: Invocation, managing: ServiceManager, stale: Sequence[Path]
) -> None:
    """A daemon that `up` started holds the folders; sockets are not read anew while in use."""
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
    invocation: Invocation, managing: ServiceManager, *, changed: bool
) -> None:
    for folder in _unit_settings(invocation, strict=False).writable:
        ensure_private_folder(folder)  # a folder that is missing cannot be made writable
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
    invocation: Invocation, managing: ServiceManager, failure: StartFailed
) -> None:
    (managing.folder / unit_files.STRICT_DROP_IN).unlink()
    managing.load()
    _ensure_service_runs(invocation, managing, changed=True)
    invocation.output.warn(
        [f"the service does not start with --strict, and runs without: {failure.message}"]
    )


def _text_of(file: Path) -> str | None:
    try:
        return file.read_text("utf-8", "replace")
    except FileNotFoundError:
        return None


class FolderNotRemoved(RootsdError):
    """A folder is still there."""


def data_folders(invocation: Invocation) -> list[Path]:
    """Every folder of the daemon's own that is there."""
    places = invocation.places
    lasting = (places.config, places.log, places.state, places.data)
    named = (*lasting, *(folder.path for folder in runtime_dir.find_runtime_dirs()))
    own = dict.fromkeys(
        [*(Path(os.fsdecode(name)) for name in named), start_record.start_folder()]
    )
    return [folder for folder in own if folder.is_dir() and not folder.is_symlink()]


def ensure_places_for_purge() -> None:
    """Raise OtherPlaces where `purge` would take other folders than the daemon's."""
    if told := start_record.describe_place_changes():
        unset = " ".join(f"-u {name}" for name in start_record.PLACE_VARIABLES)
        raise start_record.PlacesMismatch(told, f"env {unset} rootsd service uninstall --purge")


def purge_data(invocation: Invocation) -> list[Path]:
    """Remove every folder of the daemon's own; those that were there.

    Under the lock, so that no daemon loses its store while it runs. Raises Busy, NotRemoved.
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
        pass  # it lay in one of the others
    except OSError as error:
        shown = safe_label(str(folder), limit=None)
        raise FolderNotRemoved(
            f"{shown} cannot be removed: {error.strerror}", f"ls -la {shown}"
        ) from (error)
