"""`rootsd up`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from rootsd.cli import completing
from rootsd.cli.columns import home_short, many
from rootsd.cli.commands import status as status_command
from rootsd.cli.flags import Command
from rootsd.cli.session import Session, pass_session
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.paths import text_of
from rootsd.wire.running import StatusQuery


class NoParent(RootsdError):
    """There is no folder to look in."""

    code = ErrorCode.USAGE


@click.command(
    "up",
    cls=Command,
    epilog="rootsd up ~/src ~/clients\nrootsd up",
)
@click.argument("parents", nargs=-1, metavar="[PARENT]...", shell_complete=completing.folders)
@click.option("--foreground", is_flag=True, help="be the daemon, instead of starting it")
@pass_session
def command(session: Session, *, parents: tuple[str, ...], foreground: bool) -> int:
    """Watch folders, make the daemon run, and show what is there.

    May be repeated: what is so already stays so. Nothing that is found is published before you
    approve it.
    """
    from rootsd.cli import lifecycle

    _add(session, parents)
    if foreground:
        return _be_the_daemon(session)
    lifecycle.make_run(session)
    found = session.scan()
    status = session.call(StatusQuery())
    _show(session, found, status)
    return 0


def _add(session: Session, typed: tuple[str, ...]) -> None:
    """Validate all, then write all."""
    from rootsd.cli import parents
    from rootsd.host.config import read_config

    fresh = parents.add(session, [parents.checked_parent(session, path) for path in typed], {})
    for path in fresh:
        shown = safe_label(home_short(text_of(path)), limit=None)
        session.output.say(f"{shown} is watched from now on.")
    if not read_config(session.places.config_file).parents:
        raise NoParent("no folder is watched yet; name one that holds projects", "rootsd up ~/src")


def _be_the_daemon(session: Session) -> int:
    from rootsd.cli.commands.daemon import run_here
    from rootsd.host.service import starter

    starter.remember(starter.recipe_here(session.places.log))
    session.output.say("The daemon runs here until Ctrl-C.")
    return run_here(session)


def _show(session: Session, found: Mapping[str, Any], status: Mapping[str, Any]) -> None:
    from rootsd.cli.commands.scan import answer_of

    output = session.output
    if output.is_json:
        scan, whole = answer_of(found), status_command.answer_of(status)
        output.object(
            type(scan)(scan.items, whole.revision, whole.warnings, {**scan.extra, **whole.extra})
        )
        return
    status_command.show(session, status)
    # What is new since when means little here: the daemon may have looked before we asked.
    output.say(
        f"{many(found['projects'], 'project')} in {many(found['folders'], 'folder')}, "
        f"looked through in {found['seconds']:.2f} s."
    )
    if waiting := status["counts"]["waiting"]:
        wait = "waits" if waiting == 1 else "wait"
        output.say(f"{waiting} {wait} for your decision: rootsd pending")
    elif not status["counts"]["published"]:
        output.say("Clone or create a project there, and it shows up: rootsd pending")
