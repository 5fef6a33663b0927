"""What `rootsd doctor` sees from the terminal: the daemon's outside, and the person's world."""

from __future__ import annotations

import os
import pwd
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rootsd import __version__
from rootsd.cli.session import Session
from rootsd.cli.stable import stable_command
from rootsd.core.diagnosis import Condition, Diagnosis, error, ok, warning
from rootsd.core.errors import BadConfig, DaemonUnreachable, RootsdError
from rootsd.core.labels import safe_label
from rootsd.host import examining, folders
from rootsd.host.config import read_config
from rootsd.host.ipc import connect
from rootsd.host.service import supervisor
from rootsd.wire.running import StatusQuery


@dataclass(frozen=True, slots=True)
class Case:
    """A finding, and what `--fix` does about it; None where a person has to."""

    diagnosis: Diagnosis
    cure: Callable[[], None] | None = None


def cases(session: Session) -> Iterator[Case]:
    """Everything, looked at now."""
    yield _command()
    yield from map(Case, _environment())
    yield _configuration(session)
    yield from _folders(session)
    running = _daemon(session)
    yield running
    if running.diagnosis.condition is not Condition.ERROR:
        yield Case(_mcp_socket())
    yield from _service(session)


def _daemon(session: Session) -> Case:
    """Whether a daemon runs, and whether it is of this version."""
    topic = "daemon"
    try:
        daemon = session.call(StatusQuery())["daemon"]
    except DaemonUnreachable as trouble:
        found = error(topic, trouble.message, trouble.remedy)
        return Case(found, lambda: _make_run(session))
    except RootsdError as trouble:
        return Case(error(topic, trouble.message, trouble.remedy))
    version = safe_label(daemon["version"])
    told = f"{version} runs as pid {daemon['pid']}"
    if daemon["version"] == __version__:
        return Case(ok(topic, told))
    finding = f"{told}, and this command is {__version__}"
    return Case(warning(topic, finding, "rootsd down && rootsd up"), lambda: _make_run(session))


def _make_run(session: Session) -> None:
    from rootsd.cli import lifecycle  # no finding needs it, only a cure

    lifecycle.make_run(session)


def _command() -> Case:
    topic = "command"
    try:
        path = stable_command(
            sys.argv[0],
            scripts=Path(sysconfig.get_path("scripts")),
            environment=Path(sys.prefix),
            home=Path(os.fsdecode(folders.home_folder())),
            search=os.environ.get("PATH", ""),
        )
    except RootsdError as trouble:
        return Case(warning(topic, trouble.message, trouble.remedy))
    return Case(ok(topic, f"clients may be given {safe_label(str(path), limit=None)}"))


def _environment() -> Iterator[Diagnosis]:
    """What an MCP client does not hand on to the servers that it starts, and would have to."""
    topic = "environment"
    if folder := folders.overriding_folder():
        shown = safe_label(folder, limit=None)
        yield warning(
            topic,
            f"{folders.OVERRIDE} is set: clients find this daemon only if it is in their env, too",
            f'"env": {{"{folders.OVERRIDE}": "{shown}"}} beside "command"',
        )
        return
    home = os.fsdecode(folders.home_folder())
    try:
        usual = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        usual = home
    if os.path.realpath(home) != os.path.realpath(usual):
        shown = safe_label(home, limit=None)
        yield warning(
            topic,
            f"HOME is {shown}, and not {safe_label(usual, limit=None)}: clients that start with "
            "the usual one look for another daemon",
            f'"env": {{"HOME": "{shown}"}} beside "command"',
        )
        return
    yield ok(topic, "clients find the daemon without any variable of this shell")


def _configuration(session: Session) -> Case:
    try:
        config = read_config(session.places.config_file)
    except BadConfig as trouble:
        return Case(error("configuration", trouble.message, trouble.remedy))
    return Case(ok("configuration", f"can be used; parents: {len(config.parents)}"))


def _folders(session: Session) -> Iterator[Case]:
    """Check the folders that only this user may enter. Offer to close one that is too open."""
    run = next((each for each in folders.run_folders() if os.path.isdir(each.path)), None)
    places = [("state", session.places.state), ("second anchor", session.places.data)]
    if run is not None:
        places += [("sockets", run.path), ("sockets", run.pub), ("sockets", run.ctl)]
    for topic, folder in places:
        diagnosis = examining.private_folder(topic, folder)
        is_too_open = diagnosis.remedy.startswith("chmod")
        yield Case(diagnosis, _closing(folder) if is_too_open else None)
    if os.path.isdir(session.places.state):
        yield Case(examining.disk_room("disk", session.places.state))


def _closing(folder: bytes) -> Callable[[], None]:
    return lambda: os.chmod(folder, 0o700)


def _mcp_socket() -> Diagnosis:
    topic = "sockets"
    trouble: RootsdError = DaemonUnreachable("nothing listens for MCP clients", "rootsd up")
    for folder in folders.run_folders():
        try:
            connect.connect(folder.mcp_socket).close()
        except RootsdError as found:
            trouble = found if not isinstance(found, DaemonUnreachable) else trouble
        else:
            return ok(topic, f"{safe_label(folder.mcp_socket, limit=None)} takes MCP clients")
    return error(topic, trouble.message, trouble.remedy)


def _service(session: Session) -> Iterator[Case]:
    topic = "service"
    if folders.overriding_folder():
        return
    managing = supervisor.here(os.environ)
    if not managing.is_installed():
        yield Case(ok(topic, "not installed; rootsd up runs the daemon in the background"))
        return
    from rootsd.cli import service

    try:
        managing.ensure_reachable()
        state = managing.state()
        stale = service.outline(session, managing, strict=None).stale()
    except RootsdError as trouble:
        yield Case(error(topic, trouble.message, trouble.remedy))
        return
    again = "rootsd service install"
    if stale:
        names = ", ".join(safe_label(file.name) for file in stale)
        finding = f"{names} is of another version or place"
        yield Case(
            warning(topic, finding, again), lambda: service.install(session, managing, strict=None)
        )
    if not state.is_running:
        finding = f"installed, and {safe_label(state.active)}"
        yield Case(
            warning(topic, finding, "rootsd service start"),
            lambda: service.start(session, managing),
        )
    elif not stale:
        yield Case(ok(topic, f"{safe_label(state.active)}, started again {state.restarts} times"))
