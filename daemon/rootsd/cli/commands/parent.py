"""`rootsd parent`: the folders in which projects are found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import click

from rootsd.cli import completion
from rootsd.cli.decisions import DRY_RUN_NOTICE, effect_of
from rootsd.cli.flags import VerbCommand, VerbGroup, pass_invocation
from rootsd.cli.formatting import shorten_home
from rootsd.cli.invocation import Invocation
from rootsd.cli.layout import ColumnFit
from rootsd.cli.render import Column, CommandResult
from rootsd.core.errors import DaemonUnreachable
from rootsd.core.labels import exact_path, safe_label
from rootsd.core.model import NestedPolicy, Parent
from rootsd.core.paths import text_of
from rootsd.wire.daemon import StatusQuery
from rootsd.wire.decisions import ApplyMode

_COLUMNS = (
    Column(
        "PATH",
        lambda p: p["path"],
        short=lambda p: shorten_home(p["path"]),
        fit=ColumnFit.PATH,
        exact=exact_path,
    ),
    Column("DEPTH", lambda p: str(p["depth"])),
    Column("NESTED", lambda p: p["nested"]),
    Column("SKIP", lambda p: " ".join(p["skip"]), fit=ColumnFit.NOTE),
    Column("STATE", lambda p: p["state"] or "?"),
    Column("PROJECTS", lambda p: "?" if p["projects"] is None else str(p["projects"])),
    Column("NOTE", lambda p: p["note"] or "", fit=ColumnFit.NOTE),
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
    type=click.Choice([member.value for member in NestedPolicy]),
    help="what is proposed inside a project: repositories, and workspace members (default none)",
)
_project_files = click.option(
    "--project-file",
    "project_files",
    multiple=True,
    metavar="NAME",
    help="makes a folder a project, too: NAME or *.ENDING; with ! before it: does not",
)


class _ResultText(NamedTuple):
    """What is said of a parent after a change, and after its rehearsal."""

    did: str
    would: str


_ALREADY_A_PARENT = _ResultText("is a parent already", "is a parent already")


@click.group(
    "parent",
    cls=VerbGroup,
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
    cls=VerbCommand,
    epilog="rootsd parent ls --json",
)
@pass_invocation
def list_(invocation: Invocation) -> None:
    """List the parents. Without a running daemon, what the configuration says."""
    from rootsd.system.config import read_config

    config = read_config(invocation.places.config_file)
    try:
        status = invocation.call(StatusQuery())
    except DaemonUnreachable:
        status = {"revision": None, "parents": []}
    live = {parent["path"]: parent for parent in status["parents"]}
    items = [_item(parent, live.get(text_of(parent.path), {})) for parent in config.parents]
    file = safe_label(invocation.places.config_file, limit=None)
    invocation.output.show(
        CommandResult(
            items, status["revision"], extra={"file": text_of(invocation.places.config_file)}
        ),
        _COLUMNS,
    )
    if not items:
        invocation.output.say("No folder is watched yet: rootsd up ~/src")
    elif invocation.output.on_terminal:
        invocation.output.say(f"in {file}")


@command.command(
    "add",
    cls=VerbCommand,
    epilog="rootsd parent add ~/src --depth 2 --skip 'old-*'",
)
@click.argument("path", shell_complete=completion.folders)
@_depth
@_skip
@_nested
@_project_files
@_dry_run
@pass_invocation
def add(invocation: Invocation, /, *, path: str, dry_run: bool, **flags: _Flag) -> None:
    """Watch one more folder, from now on."""
    from rootsd.cli import config_edit

    canonical = config_edit.validate_parent(invocation, path)
    effect = effect_of(dry_run=dry_run)
    if config_edit.add_parents(invocation, [canonical], _settings(**flags), effect):
        _reload_and_print(
            invocation, canonical, _ResultText("is a parent now", "would be a parent"), effect
        )
    else:
        _reload_and_print(invocation, canonical, _ALREADY_A_PARENT, effect)


@command.command(
    "rm",
    cls=VerbCommand,
    epilog="rootsd parent rm ~/old",
)
@click.argument("path", shell_complete=completion.parents)
@_dry_run
@pass_invocation
def remove(invocation: Invocation, *, path: str, dry_run: bool) -> None:
    """Watch a folder no longer. Decisions about what is in it are kept."""
    from rootsd.cli import config_edit

    effect = effect_of(dry_run=dry_run)
    removed = config_edit.remove_parent(invocation, path, effect)
    _reload_and_print(
        invocation,
        removed,
        _ResultText("is no parent any more", "would be no parent any more"),
        effect,
    )


@command.command(
    "set",
    cls=VerbCommand,
    epilog="rootsd parent set ~/src --depth 6\nrootsd parent set . --skip ''",
)
@click.argument("path", shell_complete=completion.parents)
@_depth
@_skip
@_nested
@_project_files
@_dry_run
@pass_invocation
def alter(invocation: Invocation, /, *, path: str, dry_run: bool, **flags: _Flag) -> None:
    """Change how a folder is watched. --skip replaces what was skipped, and '' skips nothing; so
    with --project-file."""
    from rootsd.cli import config_edit

    settings = _settings(**flags)
    if not settings:
        raise click.UsageError("name what to set: --depth, --skip, --nested or --project-file")
    effect = effect_of(dry_run=dry_run)
    altered = config_edit.change_parent(invocation, path, settings, effect)
    _reload_and_print(invocation, altered, _ResultText("was changed", "would be changed"), effect)


def _settings(**flags: _Flag) -> dict[str, Any]:
    """The keys of the configuration that the flags set; of several values the empty ones say that
    there are none."""
    return {
        key: [one for one in value if one] if isinstance(value, tuple) else value
        for key, value in flags.items()
        if value not in (None, ())
    }


def _reload_and_print(
    invocation: Invocation, path: bytes, told: _ResultText, effect: ApplyMode
) -> None:
    """Have the daemon follow, and say what was done."""
    from rootsd.cli import lifecycle

    is_rehearsal = effect is ApplyMode.DRY_RUN
    is_followed = is_rehearsal or lifecycle.reload_if_running(
        invocation, f"{invocation.command} {text_of(path)}"
    )
    what = told.would if is_rehearsal else told.did
    output = invocation.output
    if output.is_json:
        item = {"path": text_of(path), "done": what}
        output.object(CommandResult([item], extra={"dry_run": is_rehearsal}))
        return
    output.say(f"{safe_label(path, limit=None)} {what}.")
    if is_rehearsal:
        output.say(DRY_RUN_NOTICE)
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
