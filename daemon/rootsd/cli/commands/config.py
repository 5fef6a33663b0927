"""`rootsd config`: show, change, check, and explain config.toml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

import click

from rootsd.cli.answers.decisions import DRY_RUN_NOTICE, effect_of
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options import completion
from rootsd.cli.options.flags import VerbGroup, pass_invocation
from rootsd.cli.text.layout import ColumnFit
from rootsd.cli.text.phrases import age
from rootsd.cli.text.render import Column, CommandResult, DryRunOutput
from rootsd.core.errors import DaemonUnreachable
from rootsd.core.labels import safe_label
from rootsd.core.paths import text_of
from rootsd.core.record import to_json
from rootsd.places.daemon_folders import Places
from rootsd.wire.daemon import ConfigStatus, ReloadRequest
from rootsd.wire.request import ApplyMode

if TYPE_CHECKING:
    from rootsd.config.reference import KeyReference, TableReference

SECTION = "Set up"

_COLUMNS = (
    Column("KEY", lambda row: row["key"]),
    Column("VALUE", lambda row: row["value"], limit=200),
    Column("SET IN", lambda row: row["set_in"]),
)
_HELP_COLUMNS = (
    Column("KEY", lambda row: row["key"]),
    Column("DEFAULT", lambda row: row["default"]),
    Column("MEANING", lambda row: row["meaning"], fit=ColumnFit.NOTE),
)
_LABEL_WIDTH = 9
_LOGGED = 200  # characters of a value in the log


class ConfigPathOutput(TypedDict):
    """Where the files are."""

    file: str
    """The path of `config.toml`, even if there is no file."""
    json_schema: str | None
    """The path of its JSON Schema, or null if it is not installed."""
    folders: Places
    """The folders of rootsd's own files."""


class SettingItem(TypedDict):
    """A key of `config.toml`."""

    key: str
    """Its full name, such as `confine.read`, or `parent PATH KEY`."""
    value: str
    """Its value in words, and `none` for an empty one."""
    set_in: str
    """`file` or `default`."""


class SettingsOutput(TypedDict):
    """All keys with their values."""

    file: str
    """The path of `config.toml`."""
    items: list[SettingItem]
    """The keys."""


class SettingOutput(TypedDict):
    """One key."""

    key: str
    """Its full name."""
    value: bool | int | str | list[str]
    """Its value."""


class ConfigChangeOutput(TypedDict):
    """Without `--dry-run`."""

    file: str
    """The path of `config.toml`."""
    in_force: ConfigStatus | None
    """What the daemon uses now, or null if none runs."""


class ConfigKeyItem(TypedDict):
    """The reference of a key."""

    key: str
    """Its full name."""
    type: str
    """Its type, in words."""
    default: str
    """Its default in TOML, or `required`."""
    example: str
    """A line of TOML that sets it."""
    meaning: str
    """What it does."""


class ConfigHelpOutput(TypedDict):
    """The reference."""

    items: list[ConfigKeyItem]
    """The keys."""


class ConfigCheckOutput(TypedDict):
    """The configuration is valid."""

    file: str
    """The path of `config.toml`."""
    in_force: ConfigStatus | None
    """What the daemon uses now, or null if none runs."""
    taken_over: bool
    """Whether the daemon uses the text of the file."""


@click.group(
    "config",
    cls=VerbGroup,
    invoke_without_command=True,
    epilog=(
        "rootsd config\n"
        "rootsd config help\n"
        "rootsd config set sessions.max_connections 256\n"
        "rootsd config edit"
    ),
)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Show, change, check, or explain config.toml. Without a subcommand, show it.

    The daemon reloads the file when it changes. An invalid file changes nothing.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(show)


@command.command("path", prints=(ConfigPathOutput,), epilog="rootsd config path")
@pass_invocation
def path(invocation: Invocation) -> None:
    """Print the path of the configuration file, even if the file does not exist yet.

    With --json, also print the JSON Schema of the file for editors, and the folders of decisions,
    logs, and the second anchor.
    """
    places = invocation.places
    file = text_of(places.config_file)
    if invocation.output.is_json:
        from rootsd.cli.answers import config_edit

        schema = config_edit.schema_file()
        extra = {"file": file, "json_schema": schema and str(schema), "folders": to_json(places)}
        invocation.output.object(CommandResult(extra=extra))
    else:
        invocation.output.line(safe_label(file, limit=None))


@command.command("show", prints=(SettingsOutput,), epilog="rootsd config show --json")
@pass_invocation
def show(invocation: Invocation) -> None:
    """Print every key with its value, and whether the value is from the file or the default."""
    from rootsd.cli.answers import config_values

    file = invocation.places.config_file
    values = (*config_values.parent_values_in(file), *config_values.values_in(file))
    rows = [
        {
            "key": each.name,
            "value": config_values.value_text(each.value) or "none",
            "set_in": each.set_in,
        }
        for each in values
    ]
    invocation.output.show(CommandResult(rows, extra={"file": text_of(file)}), _COLUMNS)


@command.command(
    "get",
    prints=(SettingOutput,),
    epilog="rootsd config get sessions.max_connections\nrootsd config get confine.read --json",
)
@click.argument("key", shell_complete=completion.config_keys)
@pass_invocation
def get(invocation: Invocation, *, key: str) -> None:
    """Print the value of a key: the one in the file, or else its default.

    A list is printed with one value per line.
    """
    from rootsd.cli.answers import config_values
    from rootsd.config.reference import find_key

    name = find_key(key).full_name
    values = config_values.values_in(invocation.places.config_file)
    [value] = [each.value for each in values if each.name == name]
    output = invocation.output
    if output.is_json:
        output.object(CommandResult(extra={"key": name, "value": value}))
        return
    for each in value if isinstance(value, list) else [value]:
        output.line(safe_label(config_values.value_text(each), limit=None))


@command.command(
    "set",
    prints=(
        ConfigChangeOutput,
        DryRunOutput,
    ),
    epilog=(
        "rootsd config set approval.agents my-agent\n"
        "rootsd config set confine.read ~/.aws ~/datasets\n"
        "rootsd config set confine.read '[]'"
    ),
)
@click.argument("key", shell_complete=completion.config_keys)
@click.argument(
    "words", metavar="VALUE...", nargs=-1, required=True, shell_complete=completion.config_values
)
@click.option("--dry-run", is_flag=True, help="only check whether the value is valid")
@pass_invocation
def set_(invocation: Invocation, *, key: str, words: tuple[str, ...], dry_run: bool) -> None:
    """Set a key in config.toml, and have the daemon load it. Comments stay.

    A key that takes a list gets all values; '[]' is the empty list. If the result is invalid,
    nothing is written. Parents have their own command: rootsd parent.
    """
    from rootsd.cli.answers import config_edit, config_values
    from rootsd.config.reference import find_key

    reference = find_key(key)
    value, effect = config_values.typed_value(reference, words), effect_of(dry_run=dry_run)
    config_edit.set_key(invocation, reference, value, effect)
    typed = safe_label(" ".join(words), _LOGGED)
    _finish_edit(invocation, f"config set {key} {typed}", effect)


@command.command(
    "unset",
    prints=(
        ConfigChangeOutput,
        DryRunOutput,
    ),
    epilog="rootsd config unset sessions.max_connections",
)
@click.argument("key", shell_complete=completion.config_keys)
@click.option("--dry-run", is_flag=True, help="only check whether the result is valid")
@pass_invocation
def unset(invocation: Invocation, *, key: str, dry_run: bool) -> None:
    """Remove a key from config.toml, so that its default counts again."""
    from rootsd.cli.answers import config_edit
    from rootsd.config.reference import find_key

    reference, effect = find_key(key), effect_of(dry_run=dry_run)
    if not config_edit.unset_key(invocation, reference, effect):
        invocation.output.message(f"{key} is not set; its default is {reference.default_text}.")
        if not invocation.output.is_json:
            return
    _finish_edit(invocation, f"config unset {key}", effect)


@command.command(
    "help",
    prints=(ConfigHelpOutput,),
    epilog="rootsd config help\nrootsd config help confine\nrootsd config help confine.read",
)
@click.argument("key", required=False, shell_complete=completion.config_names)
@pass_invocation
def help_(invocation: Invocation, *, key: str | None) -> None:
    """Explain a key of config.toml, all keys of a table, or list all keys."""
    from rootsd.config.reference import find_tables, tables

    found = tables() if key is None else find_tables(key)
    output = invocation.output
    if output.is_json or key is None:
        rows = [_help_row(each) for table in found for each in table.keys]
        output.show(CommandResult(rows), _HELP_COLUMNS)
        if output.on_terminal:
            output.message("All about a key: rootsd config help KEY")
        return
    for table in found:
        if key == table.name:
            output.text(f"{table.header}\n")
            output.labelled("  ", table.description.replace("`", ""))
        for number, each in enumerate(table.keys):
            if number or key == table.name:
                output.line("")
            _print_help(invocation, each, table)


@command.command("check", prints=(ConfigCheckOutput,), epilog="rootsd config check")
@pass_invocation
def check(invocation: Invocation) -> None:
    """Check whether the configuration is valid, and whether the daemon uses it.

    For an invalid configuration, print file, line, and key, and exit with status 78.
    """
    from rootsd.config.configuration import read_config

    config = read_config(invocation.places.config_file)
    in_force = (invocation.status_if_running() or {}).get("config")
    is_taken_over = in_force is not None and in_force["checksum"] == config.checksum
    output = invocation.output
    if output.is_json:
        extra = {"file": text_of(invocation.places.config_file), "in_force": in_force}
        output.object(CommandResult(extra={**extra, "taken_over": is_taken_over}))
        return
    many = len(config.parents)
    output.line(f"ok: {many} parent{'' if many == 1 else 's'}")
    if in_force is None:
        output.message("The daemon is not running: rootsd up")
    elif is_taken_over:
        output.message(f"The daemon loaded it {age(in_force['read_at'])}{_changes(in_force)}.")
    else:
        output.warn(["the daemon does not use it yet; to load it: rootsd up"])


@command.command(
    "edit",
    prints=(ConfigChangeOutput,),
    epilog="rootsd config edit\nEDITOR=nano rootsd config edit",
)
@pass_invocation
def edit(invocation: Invocation) -> None:
    """Edit the configuration in your editor, and load it if it is valid.

    VISUAL or EDITOR names the editor. An invalid text does not replace the valid file; it is saved
    beside it, as config.toml.rejected.
    """
    from rootsd.cli.answers import config_editor

    if not config_editor.edit_by_hand(invocation):
        invocation.output.message("Nothing was changed.")
        return
    _print_reload(invocation, "config edit")


def _finish_edit(invocation: Invocation, command: str, effect: ApplyMode) -> None:
    if effect is ApplyMode.APPLY:
        _print_reload(invocation, command)
    elif invocation.output.is_json:
        invocation.output.object(CommandResult(extra={"dry_run": True}))
    else:
        invocation.output.message(DRY_RUN_NOTICE)


def _print_help(invocation: Invocation, key: KeyReference, table: TableReference) -> None:
    output = invocation.output
    output.line(key.full_name)
    output.labelled("  ", key.description.replace("`", ""))
    command = "rootsd parent --help" if table.is_repeated else f"rootsd config set {key.full_name}"
    for label, text in (
        ("type", key.type_words),
        ("default", key.default_text),
        ("example", f"{key.assignment}  # in {table.header}"),
        ("command", command),
    ):
        output.labelled(f"  {label:{_LABEL_WIDTH}}", text.replace("`", ""))


def _help_row(key: KeyReference) -> dict[str, Any]:
    return {
        "key": key.full_name,
        "type": key.type_words.replace("`", ""),
        "default": key.default_text,
        "example": key.assignment,
        "meaning": key.description.replace("`", ""),
    }


def _print_reload(invocation: Invocation, command: str) -> None:
    try:
        in_force = invocation.call(ReloadRequest(command)).get("config")
    except DaemonUnreachable:
        in_force = None
    output = invocation.output
    if output.is_json:
        extra = {"file": text_of(invocation.places.config_file), "in_force": in_force}
        output.object(CommandResult(extra=extra))
    elif in_force is None:
        output.message("Saved. The daemon is not running: rootsd up")
    else:
        output.message(f"The daemon loaded it{_changes(in_force)}.")


def _changes(in_force: Mapping[str, Any]) -> str:
    changes = [safe_label(change, limit=None) for change in in_force["changes"]]
    return f": {'; '.join(changes)}" if changes else ""
