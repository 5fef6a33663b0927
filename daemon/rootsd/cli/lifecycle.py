"""Make the daemon run, and make it stop."""

from __future__ import annotations

import os
import select
import sys
import time
from contextlib import suppress

from rootsd import __version__
from rootsd.cli import client
from rootsd.cli.session import Session
from rootsd.core.errors import Busy, DaemonUnreachable, RootsdError
from rootsd.core.labels import safe_label
from rootsd.host.ipc import rpc
from rootsd.host.service import record, starter, supervisor
from rootsd.wire.running import Announcement, Reload, StatusQuery, Stop

_LOOK_AGAIN_S = 0.05


def make_run(session: Session) -> None:
    """Have a daemon of this version run, with the configuration as it is. Raises RootsdError."""
    _settle_places(session)
    recipe = record.recipe_here(session.places.log)
    record.remember(recipe)
    if _goes_on(session):
        return
    if service := supervisor.installed(os.environ):
        service.start()
        await_daemon()
        session.call(Reload())  # a bridge may have woken it before the configuration was written
        session.output.say("The daemon runs as a service now.")
        return
    if starter.have_run(lambda: recipe, client.is_running) is starter.Found.RUNNING:
        session.call(Reload())  # a bridge has started it meanwhile
    session.output.say("The daemon runs in the background now.")


def reload_if_running(session: Session, command: str = "") -> bool:
    """Have a running daemon read the configuration, which `command` changed, again.

    Return whether a daemon runs.
    """
    try:
        session.call(Reload(command))
    except DaemonUnreachable:
        return False
    return True


def await_daemon(patience: float = starter.PATIENCE) -> None:
    """Return when a daemon takes connections. systemd has waited for that already; launchd starts
    a program and tells no more. Raises StartFailed."""
    deadline = time.monotonic() + patience
    while not client.is_running():
        if time.monotonic() > deadline:
            raise starter.StartFailed(
                f"the daemon is not ready after {patience:.0f} s", "rootsd service logs"
            )
        select.select((), (), (), _LOOK_AGAIN_S)


def end(session: Session) -> int | None:
    """Stop the daemon and what would start it again; its process id, None where none ran.

    Raises RootsdError.
    """
    pid = None
    if service := supervisor.installed(os.environ):
        pid = service.state().pid
        with suppress(RootsdError):  # an older daemon, or none
            session.call(Announcement("down"))
        service.stop()
    return stop(session) or pid


def stop(session: Session) -> int | None:
    """End the daemon and wait until it is gone; its process id, None where none ran.

    Raises Busy where it does not end.
    """
    try:
        pid: int = session.call(StatusQuery())["daemon"]["pid"]
        with starter.Departure(pid) as departure:
            session.call(Stop())
            if not departure.wait():
                raise Busy(f"the daemon (pid {pid}) does not end", f"kill {pid}")
    except DaemonUnreachable:
        return None
    return pid


def _settle_places(session: Session) -> None:
    """Say where the places are not what this shell would have them be, or will be others from now
    on. Raises OtherPlaces where they cannot become so."""
    if told := record.other_places():
        if supervisor.installed(os.environ):
            raise record.OtherPlaces(told, "rootsd service install, to have it as here")
        record.ensure_same_places()
        session.output.warn([f"{told}; from now on it is as here"])
    for name, value in record.remembered_places().items():
        if not os.environ.get(name):
            shown = safe_label(value, limit=None)
            session.output.say(f"As at the last start, {name} is {shown}.")


def _goes_on(session: Session) -> bool:
    """Whether a daemon runs and stays; it has read the configuration again then."""
    if not client.is_running():
        return False
    try:
        if not _is_to_be_replaced(session):
            session.call(Reload())
            return True
    except rpc.Absent:  # killed while it was asked
        return False
    stop(session)
    return False


def _is_to_be_replaced(session: Session) -> bool:
    """Whether the daemon that runs is older than this command, and a person does not object."""
    version = session.call(StatusQuery())["daemon"]["version"]
    if version == __version__:
        return False
    shown = safe_label(version)
    if _numbers(version) > _numbers(__version__):
        session.output.warn(
            [f"the daemon is of version {shown}, newer than this command; it goes on"]
        )
        return False
    is_asked = not (session.flags.no_input or session.flags.json) and sys.stdin.isatty()
    if is_asked and not _confirmed(shown):
        return False
    session.output.say(f"The daemon is of version {shown}; starting {__version__} instead.")
    return True


def _confirmed(version: str) -> bool:
    import click

    question = f"The daemon is of version {version}. Start {__version__} instead?"
    return click.confirm(question, default=True, err=True)


def _numbers(version: str) -> tuple[int, ...]:
    """The release numbers of a version, for comparing; none where it has no such form."""
    release = version.partition("+")[0].split(".")
    return tuple(int(part) for part in release if part.isdecimal())
