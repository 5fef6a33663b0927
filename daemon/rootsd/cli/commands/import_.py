"""`rootsd import`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import IO, Any

import click

from rootsd.cli import completion
from rootsd.cli.decisions import effect_of
from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.formatting import PROJECT_COLUMNS, path_of
from rootsd.cli.invocation import Invocation
from rootsd.cli.render import SCHEMA, CommandResult
from rootsd.core.errors import RootsdError
from rootsd.core.parsing import Unparsable, parse_json
from rootsd.wire.decisions import EXPORT_FORMAT, MAX_IMPORT_ITEMS, ImportRequest

_MOST_BYTES = 64 << 20
_WORDS = {"approved": "approve", "denied": "deny", "pending": "approve"}  # the last: lapsed


@click.command(
    "import",
    cls=VerbCommand,
    epilog="rootsd import roots.json\nssh host rootsd export | rootsd import -",
)
@click.argument("file", type=click.File("rb"), shell_complete=completion.files)
@click.option("--dry-run", is_flag=True, help="only check the file and show what it holds")
@pass_invocation
def command(invocation: Invocation, *, file: IO[bytes], dry_run: bool) -> None:
    """Propose what an export names, under its names and tags; - is standard input.

    Everything waits for your decision, whatever was decided where the file comes from. What was
    decided here stays. Denials and rules are not taken over: they are told, to be typed.
    """
    export = _read(file)
    projects = list(_projects(export))
    items: list[Any] = []
    unchanged: list[Any] = []
    warnings = [*_not_taken(export)]
    revision = None
    for start in range(0, len(projects), MAX_IMPORT_ITEMS):
        part = projects[start : start + MAX_IMPORT_ITEMS]
        whats, names, tags = (tuple(column) for column in zip(*part, strict=True))
        told = invocation.call(ImportRequest(whats, names, tags, effect_of(dry_run=dry_run)))
        items += told["items"]
        unchanged += told["unchanged"]
        warnings += told["warnings"]
        revision = told["revision"]
    extra = {"unchanged": unchanged, "dry_run": dry_run}
    output = invocation.output
    output.show(CommandResult(items, revision, warnings, extra), PROJECT_COLUMNS)
    if dry_run:
        output.say(f"The file names {len(projects)} projects; nothing was changed.")
    else:
        output.say(f"{len(items)} taken in, {len(unchanged)} known already: rootsd review")


def _read(file: IO[bytes]) -> Mapping[str, Any]:
    raw = file.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        raise RootsdError("this is no export: it is too large", "rootsd export")
    try:
        export = parse_json(raw)
    except Unparsable as error:
        raise RootsdError(f"this is no export: {error}", "rootsd export") from error
    if not isinstance(export, dict) or export.get("schema") != SCHEMA:
        raise RootsdError(f"this is no export of the schema {SCHEMA}", "rootsd export")
    if export.get("format") != EXPORT_FORMAT:
        raise RootsdError(
            f"this export is not of format {EXPORT_FORMAT}, the only one that is known here",
            "rootsd version",
        )
    return export


def _projects(export: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What, name and tags of each. Raises RootsdError where one is out of shape."""
    for number, item in enumerate(_list(export, "items"), 1):
        try:
            what, tags = path_of(item), item.get("tags") or []
        except (ValueError, AttributeError) as error:
            raise _out_of_shape(number) from error
        name = item.get("name") or ""
        is_whole = what and isinstance(name, str) and isinstance(tags, list)
        if not is_whole or not all(isinstance(tag, str) for tag in tags):
            raise _out_of_shape(number)
        yield what, name, "\n".join(tag for tag in tags if "\n" not in tag)


def _not_taken(export: Mapping[str, Any]) -> Iterator[str]:
    denied = sum(1 for item in _list(export, "items") if _verdict(item) == "denied")
    if denied:
        yield f"{denied} of these were denied there, which is not taken over: rootsd deny REF"
    for rule in _list(export, "rules"):
        if isinstance(rule, dict) and isinstance(rule.get("pattern"), str):
            word = _WORDS.get(str(_verdict(rule)), "deny")
            yield f"a rule is not taken over: rootsd rule add {word} {quote(rule['pattern'])}"


def _verdict(item: object) -> object:
    return item.get("verdict") if isinstance(item, dict) else None


def _list(export: Mapping[str, Any], key: str) -> list[Any]:
    value = export.get(key)
    if not isinstance(value, list):
        raise RootsdError(f"this is no export: it has no list of {key}", "rootsd export")
    return value


def _out_of_shape(number: int) -> RootsdError:
    return RootsdError(f"project {number} in the file is out of shape", "rootsd export")
