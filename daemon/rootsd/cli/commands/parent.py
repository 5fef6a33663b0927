"""`rootsd parent`: the folders in which projects are found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import click

from rootsd.cli import completing
from rootsd.cli.columns import home_short
from rootsd.cli.decisions import UNCHANGED, effect_of
from rootsd.cli.flags import Command, Group, pass_session
from rootsd.cli.layout import Fit
from rootsd.cli.render import Answer, Column
from rootsd.cli.session import Session
from rootsd.core.errors import DaemonUnreachable
from rootsd.core.labels import exact_path, safe_label
from rootsd.core.parents import Nested, Parent
from rootsd.core.paths import text_of
from rootsd.wire.deciding import Effect
from rootsd.wire.running import StatusQuery

_COLUMNS = (
    Column(
        "PATH",
        lambda p: p["path"],
        short=lambda p: home_short(p["path"]),
        fit=Fit.PATH,
        exact=exact_path,
    ),
    Column("DEPTH", lambda p: str(p["depth"])),
    Column("NESTED", lambda p: p["nested"]),
    Column("SKIP", lambda p: " ".join(p["skip"]), fit=Fit.NOTE),
    Column("STATE", lambda p: p["state"] or "?"),
    Column("PROJECTS", lambda p: "?" if p["projects"] is None else str(p["projects"])),
    Column("NOTE", lambda p: p["note"] or "", fit=Fit.NOTE),
)

_dry_run = click.option("--dry-run", is_flag=True, help="only say what would be so")

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


class _Done(NamedTuple):
    """What is said of a parent after a change, and after its rehearsal."""

    did: str
    would: str


_SO_ALREADY = _Done("is a parent already", "is a parent already")


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
@_dry_run
@pass_session
def add(session: Session, /, *, path: str, dry_run: bool, **flags: _Flag) -> None:
    """Watch one more folder, from now on."""
    from rootsd.cli import parents

    canonical = parents.checked_parent(session, path)
    effect = effect_of(dry_run=dry_run)
    if parents.add(session, [canonical], _settings(**flags), effect):
        _tell(session, canonical, _Done("is a parent now", "would be a parent"), effect)
    else:
        _tell(session, canonical, _SO_ALREADY, effect)


@command.command(
    "rm",
    cls=Command,
    epilog="rootsd parent rm ~/old",
)
@click.argument("path", shell_complete=completing.parents)
@_dry_run
@pass_session
def remove(session: Session, *, path: str, dry_run: bool) -> None:
    """Watch a folder no longer. Decisions about what is in it are kept."""
    from rootsd.cli import parents

    effect = effect_of(dry_run=dry_run)
    removed = parents.remove(session, path, effect)
    _tell(session, removed, _Done("is no parent any more", "would be no parent any more"), effect)


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
@_dry_run
@pass_session
def alter(session: Session, /, *, path: str, dry_run: bool, **flags: _Flag) -> None:
    """Change how a folder is watched. --skip replaces what was skipped, and '' skips nothing; so
    with --project-file."""
    from rootsd.cli import parents

    settings = _settings(**flags)
    if not settings:
        raise click.UsageError("name what to set: --depth, --skip, --nested or --project-file")
    effect = effect_of(dry_run=dry_run)
    altered = parents.alter(session, path, settings, effect)
    _tell(session, altered, _Done("was changed", "would be changed"), effect)


def _settings(**flags: _Flag) -> dict[str, Any]:
    """The keys of the configuration that the flags set; of several values the empty ones say that
    there are none."""
    return {
        key: [one for one in value if one] if isinstance(value, tuple) else value
        for key, value in flags.items()
        if value not in (None, ())
    }


def _tell(session: Session, path: bytes, told: _Done, effect: Effect) -> None:
    """Have the daemon follow, and say what was done."""
    from rootsd.cli import lifecycle

    is_rehearsal = effect is Effect.DRY_RUN
    is_followed = is_rehearsal or lifecycle.reload_if_running(
        session, f"{session.command} {text_of(path)}"
    )
    what = told.would if is_rehearsal else told.did
    output = session.output
    if output.is_json:
        item = {"path": text_of(path), "done": what}
        output.object(Answer([item], extra={"dry_run": is_rehearsal}))
        return
    output.say(f"{safe_label(path, limit=None)} {what}.")
    if is_rehearsal:
        output.say(UNCHANGED)
    elif not is_followed:
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
