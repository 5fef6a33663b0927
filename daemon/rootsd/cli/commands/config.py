"""`rootsd config`: show, check, and edit config.toml."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import click

from rootsd.cli.flags import VerbCommand, VerbGroup, pass_invocation
from rootsd.cli.formatting import age, shorten_home
from rootsd.cli.invocation import Invocation
from rootsd.cli.render import Column, CommandResult
from rootsd.core.errors import BadConfig, DaemonUnreachable, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.paths import text_of
from rootsd.wire.daemon import ReloadRequest, StatusQuery

SECTION = "Set up"

_REJECTED = b".rejected"
_COLUMNS = (
    Column("KEY", lambda row: row["key"]),
    Column("VALUE", lambda row: row["value"], limit=200),
    Column("SET IN", lambda row: row["set_in"]),
)


@click.group(
    "config",
    cls=VerbGroup,
    invoke_without_command=True,
    epilog="rootsd config\nrootsd config check\nrootsd config edit",
)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Show, check, or edit config.toml. Without a subcommand, show it.

    The daemon reloads the file when it changes. An invalid file changes nothing.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(show)


@command.command("path", cls=VerbCommand, epilog="rootsd config path")
@pass_invocation
def path(invocation: Invocation) -> None:
    """Print the path of the configuration file, even if the file does not exist yet.

    With --json, also print the JSON Schema of the file for editors, and the folders of decisions,
    logs, and the second anchor.
    """
    places = invocation.places
    file = text_of(places.config_file)
    if invocation.output.is_json:
        from rootsd.cli import config_edit

        kept = {"state": places.state, "data": places.data, "log": places.log}
        folders = {name: text_of(folder) for name, folder in kept.items()}
        schema = config_edit.schema_file()
        extra = {"file": file, "json_schema": schema and str(schema), "folders": folders}
        invocation.output.object(CommandResult(extra=extra))
    else:
        invocation.output.line(safe_label(file, limit=None))


@command.command("show", cls=VerbCommand, epilog="rootsd config show --json")
@pass_invocation
def show(invocation: Invocation) -> None:
    """Print every key with its value, and whether the value is from the file or the default."""
    rows = list(_rows(invocation))
    file = text_of(invocation.places.config_file)
    invocation.output.show(CommandResult(rows, extra={"file": file}), _COLUMNS)


@command.command("check", cls=VerbCommand, epilog="rootsd config check")
@pass_invocation
def check(invocation: Invocation) -> None:
    """Check whether the configuration is valid, and whether the daemon uses it.

    For an invalid configuration, print file, line, and key, and exit with status 78.
    """
    from rootsd.system.config import read_config

    config = read_config(invocation.places.config_file)
    in_force = _active_config(invocation)
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
    "edit", cls=VerbCommand, epilog="rootsd config edit\nEDITOR=nano rootsd config edit"
)
@pass_invocation
def edit(invocation: Invocation) -> None:
    """Edit the configuration in your editor, and load it if it is valid.

    VISUAL or EDITOR names the editor. An invalid text does not replace the valid file; it is saved
    beside it, as config.toml.rejected.
    """
    from rootsd.cli import config_edit

    file = invocation.config_to_edit
    if invocation.flags.no_input or not (_has_terminal() or _editor()):
        shown = safe_label(file, limit=None)
        raise RootsdError(
            "there is no terminal for an editor", f"edit {shown}, then rootsd config check"
        )
    old = config_edit.read_text(file)
    new = _edited(invocation, old)
    if new is None:
        invocation.output.message("Nothing was changed.")
        return
    config_edit.replace_text(file, old, new)
    _print_reload(invocation)


def _edited(invocation: Invocation, old: str) -> str | None:
    """Have a person edit the text; return the new text, or None if it is the same.

    Raises BadConfig for an invalid text, after saving it aside.
    """
    from rootsd.cli import config_edit
    from rootsd.system.config import parse_config

    file, text = invocation.places.config_file, old
    while True:
        edited = click.edit(text, extension=".toml")
        if edited is None or edited == old:
            return None
        text = edited
        try:
            parse_config(text, file)
        except BadConfig as error:
            if _again(invocation, error):
                continue
            kept = safe_label(config_edit.save_aside(file, _REJECTED, text), limit=None)
            message = f"{error.message}\nyour text is in {kept}"
            raise BadConfig(message, "rootsd config edit") from error
        return text


def _print_reload(invocation: Invocation) -> None:
    try:
        in_force = invocation.call(ReloadRequest("config edit")).get("config")
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


def _again(invocation: Invocation, error: BadConfig) -> bool:
    """Print the error, and return whether the person wants to edit again."""
    if not _has_terminal():
        return False
    invocation.output.error(error.code.value, error.message, "")
    return click.confirm("Edit again?", default=True, err=True)


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _editor() -> str:
    return os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""


def _active_config(invocation: Invocation) -> Mapping[str, Any] | None:
    """Return the daemon's active configuration; None if no daemon or an older one runs."""
    try:
        active: Mapping[str, Any] | None = invocation.call(StatusQuery()).get("config")
    except DaemonUnreachable:
        return None
    return active


def _changes(in_force: Mapping[str, Any]) -> str:
    changes = [safe_label(change, limit=None) for change in in_force["changes"]]
    return f": {'; '.join(changes)}" if changes else ""


def _rows(invocation: Invocation) -> Iterator[dict[str, Any]]:
    """Yield the keys in the order of the file's documentation. Raises BadConfig."""
    from rootsd.cli import config_edit
    from rootsd.core.parsing import parse_toml
    from rootsd.system.config import parse_config

    file = invocation.places.config_file
    text = config_edit.read_text(file)
    config, given = parse_config(text, file), parse_toml(text)
    for parent, entry in zip(config.parents, given.get("parent", []), strict=True):
        path = shorten_home(text_of(parent.path))
        values = {
            "depth": parent.depth,
            "skip": [text_of(glob) for glob in parent.skip],
            "project_files": [text_of(name) for name in parent.project_files],
            "nested": parent.nested.value,
        }
        for key, value in values.items():
            yield _row(f"parent {path} {key}", value, is_set=key in entry)
    tables: Mapping[str, Mapping[str, Any]] = {
        "roots": {
            "refuse": [text_of(path) for path in config.refused],
            "allow": [text_of(path) for path in config.allowed],
        },
        "sessions": asdict(config.sessions),
        "approval": {**asdict(config.approval), "guard": config.approval.guard.value},
    }
    for table, keys in tables.items():
        for key, value in keys.items():
            yield _row(f"{table}.{key}", value, is_set=key in given.get(table, {}))


def _row(key: str, value: object, *, is_set: bool) -> dict[str, Any]:
    words = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return {"key": key, "value": words or "none", "set_in": "file" if is_set else "default"}
