"""`rootsd import`: propose the projects of an export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import IO, Any, TypedDict

import click

from rootsd.cli import completion
from rootsd.cli.decisions import effect_of
from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.formatting import PROJECT_COLUMNS, path_of, pluralize
from rootsd.cli.invocation import Invocation
from rootsd.cli.render import SCHEMA, CommandResult
from rootsd.core.errors import RootsdError
from rootsd.core.parsing import Unparsable, parse_json
from rootsd.wire.decisions import EXPORT_FORMAT, MAX_IMPORT_ITEMS, ImportRequest
from rootsd.wire.projects import ProjectItem

SECTION = "Decide"

_MOST_BYTES = 64 << 20
# The verdict of a rule is pending if its approval has lapsed.
_WORDS = {"approved": "approve", "denied": "deny", "pending": "approve"}


class ImportOutput(TypedDict):
    """The projects of the file."""

    items: list[ProjectItem]
    """The proposed projects."""
    unchanged: list[ProjectItem]
    """The projects that were known already."""
    dry_run: bool
    """Whether nothing was changed, because of `--dry-run`."""


@click.command(
    "import",
    cls=VerbCommand,
    prints=(ImportOutput,),
    epilog="rootsd import roots.json\nssh host rootsd export | rootsd import -",
)
@click.argument("file", type=click.File("rb"), shell_complete=completion.files)
@click.option("--dry-run", is_flag=True, help="only check the file and show its projects")
@pass_invocation
def command(invocation: Invocation, *, file: IO[bytes], dry_run: bool) -> None:
    """Propose the projects of an export, with their names and tags. Use - for standard input.

    All new projects are pending, even if they were approved elsewhere. Decisions made here
    stay. Denials and rules are not imported; import prints the commands that repeat them.
    """
    export = _read(file)
    projects = list(_projects(export))
    items: list[Any] = []
    unchanged: list[Any] = []
    warnings = [*_not_imported(export)]
    revision = None
    for start in range(0, len(projects), MAX_IMPORT_ITEMS):
        part = projects[start : start + MAX_IMPORT_ITEMS]
        whats, names, tags = (tuple(column) for column in zip(*part, strict=True))
        imported = invocation.call(
            ImportRequest(whats, names, tags, effect=effect_of(dry_run=dry_run))
        )
        items += imported["items"]
        unchanged += imported["unchanged"]
        warnings += imported["warnings"]
        revision = imported["revision"]
    extra = {"unchanged": unchanged, "dry_run": dry_run}
    output = invocation.output
    output.show(CommandResult(items, revision, warnings, extra), PROJECT_COLUMNS)
    if dry_run:
        count = pluralize(len(projects), "project")
        output.message(f"Dry run: the file names {count}; nothing was changed.")
    else:
        output.message(f"{len(items)} proposed, {len(unchanged)} already known: rootsd review")


def _read(file: IO[bytes]) -> Mapping[str, Any]:
    raw = file.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        raise RootsdError("this is not an export: it is too large", "rootsd export")
    try:
        export = parse_json(raw)
    except Unparsable as error:
        raise RootsdError(f"this is not an export: {error}", "rootsd export") from error
    if not isinstance(export, dict) or export.get("schema") != SCHEMA:
        raise RootsdError(f"this is not an export of the schema {SCHEMA}", "rootsd export")
    if export.get("format") != EXPORT_FORMAT:
        raise RootsdError(
            f"this export is not of format {EXPORT_FORMAT}, the only one that this version reads",
            "rootsd version",
        )
    return export


def _projects(export: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the path or URI, name, and tags of each project. Raises RootsdError."""
    for number, item in enumerate(_list(export, "items"), 1):
        try:
            what, tags = path_of(item), item.get("tags") or []
        except (ValueError, AttributeError) as error:
            raise _malformed(number) from error
        name = item.get("name") or ""
        is_whole = what and isinstance(name, str) and isinstance(tags, list)
        if not is_whole or not all(isinstance(tag, str) for tag in tags):
            raise _malformed(number)
        yield what, name, "\n".join(tag for tag in tags if "\n" not in tag)


def _not_imported(export: Mapping[str, Any]) -> Iterator[str]:
    denied = sum(1 for item in _list(export, "items") if _verdict(item) == "denied")
    if denied:
        yield f"{denied} of these were denied there; to deny them here: rootsd deny REF"
    for rule in _list(export, "rules"):
        if isinstance(rule, dict) and isinstance(rule.get("pattern"), str):
            word = _WORDS.get(str(_verdict(rule)), "deny")
            add = f"rootsd rule add {word} {quote(rule['pattern'])}"
            yield f"a rule is not imported; to add it: {add}"


def _verdict(item: object) -> object:
    return item.get("verdict") if isinstance(item, dict) else None


def _list(export: Mapping[str, Any], key: str) -> list[Any]:
    value = export.get(key)
    if not isinstance(value, list):
        raise RootsdError(f"this is not an export: it has no list of {key}", "rootsd export")
    return value


def _malformed(number: int) -> RootsdError:
    return RootsdError(f"project {number} in the file is malformed", "rootsd export")
