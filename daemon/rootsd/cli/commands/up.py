"""`rootsd up`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from rootsd.cli import completing
from rootsd.cli.columns import home_short, many
from rootsd.cli.commands import status as status_command
from rootsd.cli.decisions import UNCHANGED
from rootsd.cli.flags import Command, pass_session
from rootsd.cli.render import Answer
from rootsd.cli.session import Session
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.paths import text_of
from rootsd.wire.deciding import Effect
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
@click.option("--dry-run", is_flag=True, help="only say what would be watched")
@pass_session
def command(session: Session, *, parents: tuple[str, ...], foreground: bool, dry_run: bool) -> int:
    """Watch folders, make the daemon run, and show what is there.

    May be repeated: what is so already stays so. Nothing that is found is published before you
    approve it.
    """
    from rootsd.cli import lifecycle

    if dry_run:
        _rehearse(session, parents)
        return 0
    _require_parents(session, parents)
    if foreground:
        _add(session, parents)
        return _be_the_daemon(session)
    lifecycle.make_run(session)
    # Only a daemon that runs can record which parents are new, and who added them.
    if fresh := _add(session, parents):
        names = " ".join(text_of(path) for path in fresh)
        lifecycle.reload_if_running(session, f"{session.command} {names}")
    found = session.scan()
    status = session.call(StatusQuery())
    _show(session, found, status)
    return 0


def _add(session: Session, typed: tuple[str, ...]) -> list[bytes]:
    """Write the parents into the configuration, and return those that are new."""
    fresh = _added(session, typed, Effect.APPLY)
    for path in fresh:
        session.output.say(f"{_shown(path)} is watched from now on.")
    return fresh


def _require_parents(session: Session, typed: tuple[str, ...]) -> list[bytes]:
    """Validate the parents, and return those that are new. Raises NoParent where there is none to
    watch then."""
    from rootsd.host.config import read_config

    fresh = _added(session, typed, Effect.DRY_RUN)
    if not fresh and not read_config(session.config_to_edit).parents:
        raise NoParent("no folder is watched yet; name one that holds projects", "rootsd up ~/src")
    return fresh


def _added(session: Session, typed: tuple[str, ...], effect: Effect) -> list[bytes]:
    """Validate all, then write all; those that were no parents yet."""
    if not typed:
        return []
    from rootsd.cli import parents  # what writes TOML takes long to load

    checked = [parents.checked_parent(session, path) for path in typed]
    return parents.add(session, checked, {}, effect)


def _rehearse(session: Session, typed: tuple[str, ...]) -> None:
    """Say what would be watched, and whether a daemon would be started."""
    from rootsd.cli import client

    fresh = _require_parents(session, typed)
    is_running = client.is_running()
    output = session.output
    if output.is_json:
        items = [{"path": text_of(path)} for path in fresh]
        output.object(Answer(items, extra={"dry_run": True, "running": is_running}))
        return
    for path in fresh:
        output.say(f"{_shown(path)} would be watched.")
    if not is_running:
        output.say("The daemon would be started.")
    output.say(UNCHANGED)


def _shown(path: bytes) -> str:
    return safe_label(home_short(text_of(path)), limit=None)


def _be_the_daemon(session: Session) -> int:
    from rootsd.cli.becoming import run_here
    from rootsd.host.service import record

    record.remember(record.recipe_here(session.places.log))
    session.output.say("The daemon runs here until Ctrl-C.")
    return run_here(session)


def _show(session: Session, found: Mapping[str, Any], status: Mapping[str, Any]) -> None:
    from rootsd.cli.commands.scan import answer_of, still_being_made

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
    if more := still_being_made(found):
        output.say(more)
    if waiting := status["counts"]["waiting"]:
        wait = "waits" if waiting == 1 else "wait"
        output.say(f"{waiting} {wait} for your decision: rootsd pending")
    elif not status["counts"]["published"]:
        output.say("Clone or create a project there, and it shows up: rootsd pending")
