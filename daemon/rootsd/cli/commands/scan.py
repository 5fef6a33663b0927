"""`rootsd scan`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from rootsd.cli import completion
from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.formatting import KIND, NAME, PATH, pluralize
from rootsd.cli.invocation import Invocation
from rootsd.cli.render import Column, CommandResult
from rootsd.core.paths import text_of
from rootsd.system.config import canonical_path

_SIGNS = {"new": "+", "gone": "-", "changed": "~"}
_STYLES = {"+": "green", "-": "red", "~": "yellow"}
_COLUMNS = (
    Column("", lambda item: item["sign"], style=_STYLES),
    replace(NAME, title=""),
    replace(KIND, title=""),
    replace(PATH, title=""),
)


@click.command(
    "scan",
    cls=VerbCommand,
    epilog="rootsd scan\nrootsd scan ~/src",
)
@click.argument("parent", required=False, shell_complete=completion.parents)
@pass_invocation
def command(invocation: Invocation, parent: str | None) -> None:
    """Look through one parent, or all of them, now.

    Prints what is new (+), gone (-) and changed (~). New projects wait for your decision.
    """
    found = invocation.scan(text_of(canonical_path(parent)) if parent is not None else None)
    output = invocation.output
    if output.is_json:
        output.object(scan_result(found))
        return
    items = [{**item, "sign": sign} for group, sign in _SIGNS.items() for item in found[group]]
    output.show(CommandResult(items, found["revision"], found["warnings"]), _COLUMNS)
    output.say(scan_summary(found))
    if more := incomplete_notice(found):
        output.say(more)


def scan_result(found: Mapping[str, Any]) -> CommandResult:
    """A scan as an answer: the new projects are the items, the others stand beside them."""
    parts = ("gone", "changed", "projects", "folders", "seconds")
    extra = {**{part: found[part] for part in parts}, "being_made": _incomplete_count(found)}
    return CommandResult(found["new"], found["revision"], found["warnings"], extra)


def scan_summary(found: Mapping[str, Any]) -> str:
    """The scan in a sentence."""
    return (
        f"{pluralize(found['projects'], 'project')} in {pluralize(found['folders'], 'folder')}, "
        f"{found['seconds']:.2f} s: {len(found['new'])} new, {len(found['gone'])} gone, "
        f"{len(found['changed'])} changed"
    )


def incomplete_notice(found: Mapping[str, Any]) -> str | None:
    """A sentence about the projects that are not whole yet; None where there are none."""
    count = _incomplete_count(found)
    if not count:
        return None
    is_, it_is = ("is", "it is") if count == 1 else ("are", "they are")
    return f"{count} more {is_} still being written, and proposed once {it_is} whole."


def _incomplete_count(found: Mapping[str, Any]) -> int:
    count: int = found.get("being_made", 0)  # a daemon of before the upgrade does not say
    return count
