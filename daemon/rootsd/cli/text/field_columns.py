"""The columns that a person chooses with `--format`: fields of a project in `rootsd/1`.

A field has the same text on a terminal and in a pipe. What a listing never knows, such as the
branch, is not among them; `rootsd show` prints it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click
from click.shell_completion import CompletionItem

from rootsd.cli.text.layout import ColumnFit
from rootsd.cli.text.projects import path_of, risk_of
from rootsd.cli.text.render import Column
from rootsd.core.labels import exact_path

FIELDS = (
    "id", "name", "path", "uri", "kind", "verdict", "presence", "published", "lapsed",
    "incomplete", "tags", "access", "parent", "discovered_at", "decided_at", "expires_at",
    "worktree_of", "note", "session", "request", "origin", "origin_owner", "risk", "findings",
)  # fmt: skip
RISK_FIELDS = frozenset(("origin", "origin_owner", "risk", "findings"))
"""The fields for which the daemon must read the projects."""
_PATHS = frozenset(("path", "parent", "worktree_of"))
_NOTES = frozenset(("note", "request", "risk", "findings", "origin"))


class FieldList(click.ParamType[tuple[str, ...]]):
    """Names of fields, separated by commas."""

    name = "fields"

    def __init__(self, fields: Sequence[str] = FIELDS) -> None:
        self.choices = fields

    def convert(
        self,
        value: str | tuple[str, ...],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, ...]:
        """Return the names. Raises a usage error that lists the fields if one is unknown."""
        if isinstance(value, tuple):
            return value
        names = tuple(name.strip() for name in value.split(","))
        for name in names:
            if name not in self.choices:
                self.fail(f"{name!r} is not one of {', '.join(self.choices)}.", param, ctx)
        return names

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the last name."""
        del ctx, param
        before, comma, last = incomplete.rpartition(",")
        given = before.split(",")
        return [
            CompletionItem(before + comma + name)
            for name in self.choices
            if name.startswith(last) and name not in given
        ]


def field_columns(names: Sequence[str]) -> list[Column]:
    """Return a column for each of these fields."""
    return [_column(name) for name in names]


def _column(name: str) -> Column:
    title = name.replace("_", " ").upper()
    if name == "path":
        return Column(title, path_of, fit=ColumnFit.PATH, exact=exact_path)
    if name == "risk":
        return Column(title, risk_of, fit=ColumnFit.NOTE)
    fit = ColumnFit.NOTE if name in _NOTES else ColumnFit.LINE
    if name in _PATHS:
        return Column(title, lambda item: item[name] or "", fit=ColumnFit.PATH, exact=exact_path)
    return Column(title, lambda item: _text(item.get(name)), fit=fit)


def _text(value: object) -> str:
    """Return a value of JSON as text: nothing for null, and the parts of a list with commas."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list():
            return ",".join(map(_text, value))
        case Mapping():
            return ":".join(_text(part) for part in value.values() if part)
        case _:
            return str(value)
