"""List the projects that an order decides about, before a person confirms it. Pure.

A person must be able to read the whole list, and to see first what matters in it. So projects with
risks have a line each, and the names of all others share lines. The names are untrusted; each one
becomes a label here.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from rootsd.cli.text.phrases import pluralize, shown_path
from rootsd.cli.text.projects import path_of
from rootsd.core.labels import safe_label

Item = Mapping[str, Any]

_WIDTH = 76


class ListLength(Struct, frozen=True):
    """How many projects with risks, and how many other names, a list has at most."""

    risks: int
    names: int


FOR_A_QUESTION = ListLength(100, 500)
WHOLE = ListLength(sys.maxsize, sys.maxsize)


def affected_lines(confirmation: Item, most: ListLength = FOR_A_QUESTION) -> Iterator[str]:
    """Yield the lines about a `ConfirmationItem`: names, risks, and parents that it covers."""
    groups: dict[str, list[Item]] = {}
    for each in confirmation["projects"]:
        groups.setdefault(_effect(each), []).append(each)
    for effect, projects in groups.items():
        yield f"{pluralize(len(projects), 'project')} would {effect}:"
        yield from _group_lines(projects, most)
    for parent in confirmation["parents"]:
        where = shown_path(parent)
        yield f"{where} is a parent, so this includes each project that appears there later."
    for root in confirmation["unsearched"]:
        where = shown_path(root)
        yield f"{where} has more folders than rootsd can look through. It may hold more projects."


def _effect(each: Item) -> str:
    if each["within"] is not None:
        where = shown_path(each["within"])
        return f"be readable as a part of {where}"
    if each["before"] == each["after"]:
        return "change"
    return {"approved": "be published", "denied": "be denied"}.get(each["after"], "be pending")


def _group_lines(projects: Sequence[Item], most: ListLength) -> Iterator[str]:
    risky = [each for each in projects if risk_of_affected(each)]
    for each in risky[: most.risks]:
        where = shown_path(path_of(each))
        risk = safe_label(risk_of_affected(each), limit=None)
        yield f"  {safe_label(each['name'])}  {where}  {risk}"
    rest = [each for each in projects if not risk_of_affected(each)] + risky[most.risks :]
    names = [safe_label(each["name"]) for each in rest[: most.names]]
    # A name may contain a space, so a comma separates names.
    yield from textwrap.wrap(
        ", ".join(names),
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    if (more := len(rest) - most.names) > 0:
        yield f"  and {more:,} more: --dry-run lists them"


def risk_of_affected(each: Item) -> str:
    """Return the risks of a project that clients will see; empty if there are none."""
    is_shown = each["within"] is not None or each["after"] == "approved"
    if not is_shown:
        return ""
    return "its risks could not be read in time" if each["risk"] is None else str(each["risk"])
