"""`rootsd parent`: list and change the folders that are watched for projects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import click

from rootsd.cli.answers.decisions import DRY_RUN_NOTICE, effect_of
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options import completion
from rootsd.cli.options.flags import VerbGroup, pass_invocation
from rootsd.cli.text.layout import ColumnFit
from rootsd.cli.text.render import Column, CommandResult, path_column
from rootsd.core.labels import safe_label
from rootsd.core.model import MountPolicy, NestedPolicy
from rootsd.core.paths import text_of
from rootsd.wire.daemon import ParentItem, parent_item
from rootsd.wire.request import ApplyMode

SECTION = "Set up"

_COLUMNS = (
    path_column("PATH", lambda p: p["path"]),
    Column("DEPTH", lambda p: str(p["depth"])),
    Column("NESTED", lambda p: p["nested"]),
    Column("SKIP", lambda p: " ".join(p["skip"]), fit=ColumnFit.NOTE),
    Column("STATE", lambda p: p["state"] or "?"),
    Column("PROJECTS", lambda p: "?" if p["projects"] is None else str(p["projects"])),
    Column("NOTE", lambda p: p["note"] or "", fit=ColumnFit.NOTE),
)

_dry_run = click.option("--dry-run", is_flag=True, help="only show what would be changed")

_Flag = int | str | tuple[str, ...] | None

_depth = click.option(
    "--depth",
    type=click.IntRange(1, 64),
    metavar="N",
    help="how many levels to search (default 4)",
)
_skip = click.option(
    "--skip",
    multiple=True,
    metavar="GLOB",
    help="never enter folders with this name; may be repeated",
)
_nested = click.option(
    "--nested",
    type=click.Choice([member.value for member in NestedPolicy]),
    help="what to propose inside a project: nothing, repositories (vcs), or repositories and "
    "workspace members (default none)",
)
_mounts = click.option(
    "--mounts",
    type=click.Choice([member.value for member in MountPolicy]),
    help="which file systems mounted in it to look into: none, those of this machine (local), or "
    "also those of other machines and programs (all) (default none)",
)
_project_files = click.option(
    "--project-file",
    "project_files",
    multiple=True,
    metavar="NAME",
    help="a file that makes its folder a project, as NAME or *.SUFFIX; a ! in front removes it",
)


def _described(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say how a folder is watched."""
    for option in (_dry_run, _mounts, _project_files, _nested, _skip, _depth):
        command = option(command)
    return command


class _ResultText(NamedTuple):
    """The text about a parent after a change, and after a dry run of the change."""

    did: str
    would: str


_ALREADY_A_PARENT = _ResultText("is already a parent", "is already a parent")


class ParentsOutput(TypedDict):
    """The parents."""

    file: str
    """The path of `config.toml`."""
    items: list[ParentItem]
    """The parents, in the order of the file."""


class ChangedParentItem(TypedDict):
    """A parent that was changed."""

    path: str
    """Its path."""
    done: str
    """What was done, such as `is now a parent`."""


class ParentChangeOutput(TypedDict):
    """The change."""

    items: list[ChangedParentItem]
    """The one parent."""
    dry_run: bool
    """Whether nothing was changed, because of `--dry-run`."""


@click.group(
    "parent",
    cls=VerbGroup,
    invoke_without_command=True,
    epilog="rootsd parent\nrootsd parent add ~/src --depth 2\nrootsd parent rm ~/old",
)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List and change the parents: the folders that are watched for projects.

    Without a subcommand, list them. The parents are in config.toml. You can also edit that file;
    the daemon reloads it at once.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@command.command(
    "ls",
    prints=(ParentsOutput,),
    epilog="rootsd parent ls --json",
)
@pass_invocation
def list_(invocation: Invocation) -> None:
    """List the parents. Without a daemon, list those in the configuration."""
    from rootsd.config.configuration import read_config

    config = read_config(invocation.places.config_file)
    status = invocation.status_if_running() or {"revision": None, "parents": []}
    live = {parent["path"]: parent for parent in status["parents"]}
    items = [live.get(text_of(parent.path)) or parent_item(parent) for parent in config.parents]
    file = safe_label(invocation.places.config_file, limit=None)
    invocation.output.show(
        CommandResult(
            items, status["revision"], extra={"file": text_of(invocation.places.config_file)}
        ),
        _COLUMNS,
    )
    if not items:
        invocation.output.message("No parents yet. Try: rootsd up ~/src")
    elif invocation.output.on_terminal:
        invocation.output.message(f"in {file}")


@command.command(
    "add",
    prints=(ParentChangeOutput,),
    epilog="rootsd parent add ~/src --depth 2 --skip 'old-*'",
)
@click.argument("path", shell_complete=completion.folders)
@_described
@pass_invocation
def add(invocation: Invocation, /, *, path: str, dry_run: bool, **flags: _Flag) -> None:
    """Watch one more folder for projects."""
    from rootsd.cli.answers import config_edit

    canonical = config_edit.validate_parent(invocation, path)
    effect = effect_of(dry_run=dry_run)
    if config_edit.add_parents(invocation, [canonical], _settings(**flags), effect):
        _reload_and_print(
            invocation, canonical, _ResultText("is now a parent", "would become a parent"), effect
        )
    else:
        _reload_and_print(invocation, canonical, _ALREADY_A_PARENT, effect)


@command.command(
    "rm",
    prints=(ParentChangeOutput,),
    epilog="rootsd parent rm ~/old",
)
@click.argument("path", shell_complete=completion.parents)
@_dry_run
@pass_invocation
def remove(invocation: Invocation, *, path: str, dry_run: bool) -> None:
    """Stop watching a folder. Decisions about its projects are kept."""
    from rootsd.cli.answers import config_edit

    effect = effect_of(dry_run=dry_run)
    removed = config_edit.remove_parent(invocation, path, effect)
    _reload_and_print(
        invocation,
        removed,
        _ResultText("is no longer a parent", "would no longer be a parent"),
        effect,
    )


@command.command(
    "set",
    prints=(ParentChangeOutput,),
    epilog="rootsd parent set ~/src --depth 6\nrootsd parent set . --skip ''",
)
@click.argument("path", shell_complete=completion.parents)
@_described
@pass_invocation
def alter(invocation: Invocation, /, *, path: str, dry_run: bool, **flags: _Flag) -> None:
    """Change how a folder is watched.

    --skip and --project-file replace the earlier values; '' removes them.
    """
    from rootsd.cli.answers import config_edit

    settings = _settings(**flags)
    if not settings:
        raise click.UsageError("use --depth, --skip, --nested, --project-file, or --mounts")
    effect = effect_of(dry_run=dry_run)
    altered = config_edit.change_parent(invocation, path, settings, effect)
    _reload_and_print(invocation, altered, _ResultText("was changed", "would be changed"), effect)


def _settings(**flags: _Flag) -> dict[str, Any]:
    """Return the configuration keys that the flags set. An empty value stands for no values."""
    return {
        key: [one for one in value if one] if isinstance(value, tuple) else value
        for key, value in flags.items()
        if value not in (None, ())
    }


def _reload_and_print(
    invocation: Invocation, path: bytes, text: _ResultText, effect: ApplyMode
) -> None:
    """Have the daemon reload the configuration, and print the result."""
    from rootsd.cli.answers import lifecycle

    is_dry_run = effect is ApplyMode.DRY_RUN
    is_reloaded = is_dry_run or lifecycle.reload_if_running(
        invocation, f"{invocation.command} {text_of(path)}"
    )
    what = text.would if is_dry_run else text.did
    output = invocation.output
    if output.is_json:
        item = {"path": text_of(path), "done": what}
        output.object(CommandResult([item], extra={"dry_run": is_dry_run}))
        return
    output.message(f"{safe_label(path, limit=None)} {what}.")
    if is_dry_run:
        output.message(DRY_RUN_NOTICE)
    elif not is_reloaded:
        output.message("The daemon is not running: rootsd up")
