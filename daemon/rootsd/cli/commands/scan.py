"""`rootsd scan`: scan the parents now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click
from msgspec.structs import replace

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.phrases import pluralize
from rootsd.cli.text.projects import KIND, NAME, PATH
from rootsd.cli.text.render import Column, CommandResult
from rootsd.cli.text.theme import Tone
from rootsd.config.parent_paths import canonical_path
from rootsd.core.labels import safe_text
from rootsd.core.paths import text_of
from rootsd.wire.scans import ScanResponse

SECTION = "Set up"

_MAX_LEFT_OUT = 5

_SIGNS = {"items": "+", "gone": "-", "changed": "~"}
_TONES = {"+": Tone.GOOD, "-": Tone.BAD, "~": Tone.ATTENTION}
_COLUMNS = (
    Column("", lambda item: item["sign"], tones=_TONES),
    replace(NAME, title=""),
    replace(KIND, title=""),
    replace(PATH, title=""),
)


@verb(
    "scan",
    prints=(ScanResponse,),
    epilog="rootsd scan\nrootsd scan ~/src",
)
@click.argument("parent", required=False, shell_complete=completion.parents)
@pass_invocation
def command(invocation: Invocation, parent: str | None) -> None:
    """Scan one parent, or all of them, now.

    Prints the projects that are new (+), gone (-), and changed (~). New projects are pending.
    """
    found = invocation.scan(text_of(canonical_path(parent)) if parent is not None else None)
    output = invocation.output
    if output.is_json:
        output.object(scan_result(found))
        return
    items = [{**item, "sign": sign} for group, sign in _SIGNS.items() for item in found[group]]
    output.show(CommandResult.of(found, items), _COLUMNS)
    output.message(scan_summary(found))
    for more in notices(found):
        output.message(more)


def scan_result(found: Mapping[str, Any]) -> CommandResult:
    """Return the result of a scan: new projects are the items, and all else is beside them."""
    parts = ("gone", "changed", "projects", "folders", "seconds", "left_out", "being_made")
    extra = {part: found[part] for part in parts}
    return CommandResult.of(found, **extra)


def scan_summary(found: Mapping[str, Any]) -> str:
    """Return a sentence with the counts of a scan."""
    return (
        f"{pluralize(found['projects'], 'project')} in {pluralize(found['folders'], 'folder')}, "
        f"{found['seconds']:.2f} s: {len(found['items'])} new, {len(found['gone'])} gone, "
        f"{len(found['changed'])} changed"
    )


def notices(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence about incomplete projects, and one for each folder that is left out."""
    if more := _incomplete_notice(found):
        yield more
    left_out = found["left_out"]
    yield from (f"{safe_text(sentence)}." for sentence in left_out[:_MAX_LEFT_OUT])
    if len(left_out) > _MAX_LEFT_OUT:
        yield f"{len(left_out) - _MAX_LEFT_OUT} more are left out. See all: rootsd doctor"


def _incomplete_notice(found: Mapping[str, Any]) -> str | None:
    """Return a sentence about the projects that are still incomplete, or None."""
    count = found["being_made"]
    if not count:
        return None
    what, it_is = ("project is", "it is") if count == 1 else ("projects are", "they are")
    return f"{count} more {what} still being written, and proposed once {it_is} complete."
