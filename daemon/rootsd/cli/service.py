"""The daemon as a service of the user: installed, and taken away without a trace."""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rootsd import __version__
from rootsd.cli import lifecycle, units
from rootsd.cli.session import Session
from rootsd.cli.stable import stable_command
from rootsd.core.errors import DaemonUnreachable, ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.host import folders
from rootsd.host.private import ensure_private_folder, make_folder
from rootsd.host.service import record, supervisor
from rootsd.host.service.launchd import Launchd
from rootsd.host.service.manager import Supervisor
from rootsd.host.service.starter import StartFailed
from rootsd.wire.running import StatusQuery


class NotInstalled(RootsdError):
    """There is no service."""

    code = ErrorCode.NOTHING_MATCHED


class SomebodyElses(RootsdError):
    """A file that we would write is there and not ours."""


class OtherPlaces(RootsdError):
    """ROOTSD_DIR is set."""

    code = ErrorCode.USAGE


@dataclass(frozen=True, slots=True)
class Outline:
    """The files that make the service, by path, and those of ours that are too many."""

    files: Mapping[Path, str]
    surplus: Sequence[Path]

    def stale(self) -> list[Path]:
        """Those that do not stand as they should."""
        return [file for file, text in self.files.items() if _text_of(file) != text]

    @property
    def is_strict(self) -> bool:
        """Whether tier 2 of the hardening is in it."""
        return any(file.match(f"*/{units.STRICT}") for file in self.files)


def manager() -> Supervisor:
    """The supervisor of this user. Raises OtherPlaces: a service serves the usual places."""
    if folders.overriding_folder():
        raise OtherPlaces(
            f"{folders.OVERRIDE} is set, and a service serves the usual places",
            f"env -u {folders.OVERRIDE} rootsd service install",
        )
    return supervisor.here(os.environ)


def installed_manager() -> Supervisor:
    """The same, which runs the daemon. Raises NotInstalled."""
    managing = manager()
    if not managing.is_installed():
        raise NotInstalled("the service is not installed", "rootsd service install")
    managing.ensure_reachable()
    return managing


def outline(session: Session, managing: Supervisor, *, strict: bool | None) -> Outline:
    """What `install` writes; `strict` as it is now where it is None."""
    folder = managing.folder
    if strict is None:
        strict = units.is_ours(folder / units.STRICT)
    settings = _settings(session, strict=strict)
    is_launchd = isinstance(managing, Launchd)
    named = units.launchd_agent(settings) if is_launchd else units.systemd_units(settings)
    known = (units.PLIST,) if is_launchd else units.UNITS
    surplus = [folder / name for name in known if name not in named]
    return Outline(
        {folder / name: text for name, text in named.items()},
        [file for file in surplus if units.is_ours(file)],
    )


def install(session: Session, managing: Supervisor, *, strict: bool | None) -> None:
    """Write the files, have the daemon run by them, and return when it is ready.

    Nothing is restarted where nothing changes. Raises RootsdError; what is written stays, so that
    the next call goes on from there.
    """
    managing.ensure_reachable()
    if told := record.other_places():
        session.output.warn([f"{told}; from now on it is as here"])
    wanted = outline(session, managing, strict=strict)
    for file in wanted.files:
        if file.exists() and not units.is_ours(file):
            shown = safe_label(str(file), limit=None)
            raise SomebodyElses(f"{shown} is there and not from rootsd", f"mv {shown} {shown}.old")
    is_new = not managing.is_installed()
    stale = wanted.stale()
    _write(wanted, stale)
    record.remember(record.recipe_here(session.places.log))
    if is_new or stale or wanted.surplus or not managing.state().enabled:
        managing.load()
    _end_what_is_in_the_way(session, managing, stale)
    try:
        _have_run(session, managing, changed=bool(stale or wanted.surplus))
    except StartFailed as failure:
        if not wanted.is_strict:
            raise
        _without_tier_two(session, managing, failure)


def installed_files(managing: Supervisor) -> list[Path]:
    """The files that `install` wrote and `uninstall` removes. Raises NotInstalled."""
    known = [managing.folder / name for name in (*units.UNITS, units.PLIST)]
    ours = [file for file in known if units.is_ours(file)]
    if not ours:
        raise NotInstalled("the service is not installed", "rootsd service install")
    return ours


def uninstall(session: Session, managing: Supervisor) -> list[Path]:
    """Stop the service and remove what `install` wrote; the files that are gone.

    Files that somebody else put beside them stay, decisions and configuration do, too.
    """
    managing.ensure_reachable()
    ours = installed_files(managing)
    record.forbid()  # first, or a bridge would start the next daemon at once
    managing.unload()
    for file in ours:
        file.unlink()
    for folder in (managing.folder / "rootsd.service.d", managing.folder, managing.folder.parent):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    managing.forget()
    lifecycle.stop(session)
    return ours


def start(session: Session, managing: Supervisor) -> None:
    """Have the daemon run, now and at each login. Raises StartFailed, OtherPlaces."""
    _ensure_same_places()
    record.remember(record.recipe_here(session.places.log))
    managing.start()
    lifecycle.await_daemon()


def restart(session: Session, managing: Supervisor) -> None:
    """A new daemon. Raises StartFailed, OtherPlaces."""
    _ensure_same_places()
    record.remember(record.recipe_here(session.places.log))
    managing.restart()
    lifecycle.await_daemon()


def stop(managing: Supervisor) -> None:
    """End the daemon; nothing but `start` and `up` starts it again."""
    record.forbid()
    managing.stop()


def _ensure_same_places() -> None:
    # The places stand in the units, so that a `down` before makes no difference.
    if told := record.other_places():
        raise record.OtherPlaces(told, "rootsd service install, to have it as here")


def _settings(session: Session, *, strict: bool) -> units.Settings:
    places = session.places
    state, data, log = (
        Path(os.fsdecode(place)) for place in (places.state, places.data, places.log)
    )
    start_folder = record.start_folder()
    writable = dict.fromkeys((state, data, start_folder, log))
    return units.Settings(
        command=stable_command(
            sys.argv[0],
            scripts=Path(sysconfig.get_path("scripts")),
            environment=Path(sys.prefix),
            home=Path(os.fsdecode(folders.home_folder())),
            search=os.environ.get("PATH", ""),
        ),
        environment=record.place_variables(),
        writable=tuple(
            folder
            for folder in writable
            if not any(folder != other and folder.is_relative_to(other) for other in writable)
        ),
        stopped=start_folder / record.STOPPED_NAME,
        log=log / record.LOG_NAME,
        strict=strict,
    )


def _write(wanted: Outline, stale: Sequence[Path]) -> None:
    for file in stale:
        make_folder(file.parent)
        fd, fresh = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        with open(fd, "w", encoding="utf-8") as stream:
            stream.write(wanted.files[file])
        os.replace(fresh, file)
    for file in wanted.surplus:
        file.unlink()


def _end_what_is_in_the_way(session: Session, managing: Supervisor, stale: Sequence[Path]) -> None:
    """A daemon that `up` started holds the folders; sockets are not read anew while in use."""
    state = managing.state()
    if any(file.suffix == ".socket" for file in stale) and (state.is_running or state.sockets):
        managing.stop()
    try:
        pid = session.call(StatusQuery())["daemon"]["pid"]
    except DaemonUnreachable:
        return
    if pid != managing.state().pid:
        lifecycle.stop(session)


def _have_run(session: Session, managing: Supervisor, *, changed: bool) -> None:
    for folder in _settings(session, strict=False).writable:
        ensure_private_folder(folder)  # a folder that is missing cannot be made writable
    if managing.state().is_running and (changed or _is_other_version(session)):
        managing.restart()
    managing.start()
    lifecycle.await_daemon()


def _is_other_version(session: Session) -> bool:
    try:
        version: str = session.call(StatusQuery())["daemon"]["version"]
    except DaemonUnreachable:
        return False
    return version != __version__


def _without_tier_two(session: Session, managing: Supervisor, failure: StartFailed) -> None:
    (managing.folder / units.STRICT).unlink()
    managing.load()
    _have_run(session, managing, changed=True)
    session.output.warn(
        [f"the service does not start with --strict, and runs without: {failure.message}"]
    )


def _text_of(file: Path) -> str | None:
    try:
        return file.read_text("utf-8", "replace")
    except FileNotFoundError:
        return None
