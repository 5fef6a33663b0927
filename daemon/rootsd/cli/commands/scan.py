"""`rootsd scan`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from rootsd.cli import completing
from rootsd.cli.columns import KIND, NAME, PATH, many
from rootsd.cli.flags import Command, pass_session
from rootsd.cli.render import Answer, Column
from rootsd.cli.session import Session
from rootsd.core.paths import text_of
from rootsd.host.config import canonical

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
    cls=Command,
    epilog="rootsd scan\nrootsd scan ~/src",
)
@click.argument("parent", required=False, shell_complete=completing.parents)
@pass_session
def command(session: Session, parent: str | None) -> None:
    """Look through one parent, or all of them, now.

    Prints what is new (+), gone (-) and changed (~). New projects wait for your decision.
    """
    found = session.scan(text_of(canonical(parent)) if parent is not None else None)
    output = session.output
    if output.is_json:
        output.object(answer_of(found))
        return
    items = [{**item, "sign": sign} for group, sign in _SIGNS.items() for item in found[group]]
    output.show(Answer(items, found["revision"], found["warnings"]), _COLUMNS)
    output.say(summary(found))
    if more := still_being_made(found):
        output.say(more)


def answer_of(found: Mapping[str, Any]) -> Answer:
    """A scan as an answer: the new projects are the items, the others stand beside them."""
    parts = ("gone", "changed", "projects", "folders", "seconds")
    extra = {**{part: found[part] for part in parts}, "being_made": _being_made(found)}
    return Answer(found["new"], found["revision"], found["warnings"], extra)


def summary(found: Mapping[str, Any]) -> str:
    """The scan in a sentence."""
    return (
        f"{many(found['projects'], 'project')} in {many(found['folders'], 'folder')}, "
        f"{found['seconds']:.2f} s: {len(found['new'])} new, {len(found['gone'])} gone, "
        f"{len(found['changed'])} changed"
    )


def still_being_made(found: Mapping[str, Any]) -> str | None:
    """A sentence about the projects that are not whole yet; None where there are none."""
    count = _being_made(found)
    if not count:
        return None
    is_, it_is = ("is", "it is") if count == 1 else ("are", "they are")
    return f"{count} more {is_} still being written, and proposed once {it_is} whole."


def _being_made(found: Mapping[str, Any]) -> int:
    count: int = found.get("being_made", 0)  # a daemon of before the upgrade does not say
    return count
