"""Make the daemon run, and make it stop."""

from __future__ import annotations

from rootsd import __version__
from rootsd.cli import client
from rootsd.cli.session import Session
from rootsd.core.errors import Busy, DaemonUnreachable
from rootsd.host import starter
from rootsd.wire.control import Reload, StatusQuery, Stop


def make_run(session: Session) -> None:
    """Have a daemon of this version run, with the configuration as it is. Raises RootsdError."""
    recipe = starter.recipe_here(session.places.log)
    starter.remember(recipe)
    if client.is_running():
        version = session.call(StatusQuery())["daemon"]["version"]
        if version == __version__:
            session.call(Reload())
            return
        session.output.say(f"The daemon is of version {version}; starting {__version__} instead.")
        stop(session)
    with starter.one_at_a_time():
        if client.is_running():  # a bridge has started one meanwhile
            session.call(Reload())
        else:
            starter.launch(recipe)
    session.output.say("The daemon runs in the background now.")


def reload_if_running(session: Session) -> bool:
    """Have a running daemon read the configuration again; whether one runs."""
    try:
        session.call(Reload())
    except DaemonUnreachable:
        return False
    return True


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
