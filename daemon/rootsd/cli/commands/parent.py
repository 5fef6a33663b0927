"""`rootsd parent`: the folders in which projects are found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from rootsd.cli import completing
from rootsd.cli.columns import home_short
from rootsd.cli.flags import Command, Group
from rootsd.cli.render import Answer, Column
from rootsd.cli.session import Session, pass_session
from rootsd.core.errors import DaemonUnreachable
from rootsd.core.labels import safe_label
from rootsd.core.model import Nested, Parent
from rootsd.core.paths import text_of
from rootsd.wire.running import StatusQuery

_COLUMNS = (
    Column("PATH", lambda p: p["path"], short=lambda p: home_short(p["path"]), is_path=True),
    Column("DEPTH", lambda p: str(p["depth"])),
    Column("NESTED", lambda p: p["nested"]),
    Column("SKIP", lambda p: " ".join(p["skip"]), limit=200),
    Column("STATE", lambda p: p["state"] or "?"),
    Column("PROJECTS", lambda p: "?" if p["projects"] is None else str(p["projects"])),
    Column("NOTE", lambda p: p["note"] or "", limit=200),
)

_Flag = int | str | tuple[str, ...] | None

_depth = click.option(
    "--depth", type=click.IntRange(1, 64), metavar="N", help="how many levels below it (default 4)"
)
_skip = click.option(
    "--skip", multiple=True, metavar="GLOB", help="never enter these; may be repeated"
)
_nested = click.option(
    "--nested",
    type=click.Choice([member.value for member in Nested]),
    help="what is proposed inside a project: repositories, and workspace members (default none)",
)
_project_files = click.option(
    "--project-file",
    "project_files",
    multiple=True,
    metavar="NAME",
    help="makes a folder a project, too: NAME or *.ENDING; with ! before it: does not",
)


@click.group(
    "parent",
    cls=Group,
    invoke_without_command=True,
    epilog="rootsd parent\nrootsd parent add ~/src --depth 2\nrootsd parent rm ~/old",
)
@click.pass_context
def command(ctx: click.Context) -> None:
    """The folders in which projects are found; alone, this lists them.

    They are kept in config.toml, which you may edit as well: the daemon reads it at once.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@command.command(
    "ls",
    cls=Command,
    epilog="rootsd parent ls --json",
)
@pass_session
def list_(session: Session) -> None:
    """List the parents. Without a running daemon, what the configuration says."""
    from rootsd.host.config import read_config

    config = read_config(session.places.config_file)
    try:
        status = session.call(StatusQuery())
    except DaemonUnreachable:
        status = {"revision": None, "parents": []}
    live = {parent["path"]: parent for parent in status["parents"]}
    items = [_item(parent, live.get(text_of(parent.path), {})) for parent in config.parents]
    file = safe_label(session.places.config_file, limit=None)
    session.output.show(
        Answer(items, status["revision"], extra={"file": text_of(session.places.config_file)}),
        _COLUMNS,
    )
    if not items:
        session.output.say("No folder is watched yet: rootsd up ~/src")
    elif session.output.on_terminal:
        session.output.say(f"in {file}")


@command.command(
    "add",
    cls=Command,
    epilog="rootsd parent add ~/src --depth 2 --skip 'old-*'",
)
@click.argument("path", shell_complete=completing.folders)
@_depth
@_skip
@_nested
@_project_files
@pass_session
def add(session: Session, /, *, path: str, **flags: _Flag) -> None:
    """Watch one more folder, from now on."""
    from rootsd.cli import parents

    canonical = parents.checked_parent(session, path)
    fresh = parents.add(session, [canonical], _settings(**flags))
    _tell(session, canonical, "is a parent now" if fresh else "is a parent already")


@command.command(
    "rm",
    cls=Command,
    epilog="rootsd parent rm ~/old",
)
@click.argument("path", shell_complete=completing.parents)
@pass_session
def remove(session: Session, *, path: str) -> None:
    """Watch a folder no longer. Decisions about what is in it are kept."""
    from rootsd.cli import parents

    _tell(session, parents.remove(session, path), "is no parent any more")


@command.command(
    "set",
    cls=Command,
    epilog="rootsd parent set ~/src --depth 6\nrootsd parent set . --skip ''",
)
@click.argument("path", shell_complete=completing.parents)
@_depth
@_skip
@_nested
@_project_files
@pass_session
def alter(session: Session, /, *, path: str, **flags: _Flag) -> None:
    """Change how a folder is watched. --skip replaces what was skipped, and '' skips nothing; so
    with --project-file."""
    from rootsd.cli import parents

    settings = _settings(**flags)
    if not settings:
        raise click.UsageError("name what to set: --depth, --skip, --nested or --project-file")
    _tell(session, parents.alter(session, path, settings), "was changed")


def _settings(**flags: _Flag) -> dict[str, Any]:
    """The keys of the configuration that the flags set; of several values the empty ones say that
    there are none."""
    return {
        key: [one for one in value if one] if isinstance(value, tuple) else value
        for key, value in flags.items()
        if value not in (None, ())
    }


def _tell(session: Session, path: bytes, what: str) -> None:
    """Have the daemon follow, and say what was done."""
    from rootsd.cli import lifecycle

    is_followed = lifecycle.reload_if_running(session)
    output = session.output
    if output.is_json:
        output.object(Answer([{"path": text_of(path), "done": what}]))
        return
    output.say(f"{safe_label(path, limit=None)} {what}.")
    if not is_followed:
        output.say("The daemon is not running: rootsd up")


def _item(parent: Parent, live: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "path": text_of(parent.path),
        "depth": parent.depth,
        "nested": parent.nested.value,
        "skip": [text_of(glob) for glob in parent.skip],
        "project_files": [text_of(name) for name in parent.project_files],
        "state": live.get("state"),
        "note": live.get("note"),
        "projects": live.get("projects"),
    }
