"""What is printed: a table on a terminal, tab-separated lines on a pipe, one object with --json.

Whatever a project's author could choose goes through `safe_label`, so that no name can break a
line, a field or a terminal. Standard output is data; what is said to a person goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rootsd.cli.manner import Flags
from rootsd.core.labels import safe_label

if TYPE_CHECKING:
    from rich.table import Table as RichTable

SCHEMA = "rootsd/1"
MAX_RICH_ROWS = 500  # rich lays 20,000 rows out in 7 s
GAP = "  "
MIN_PATH = 10
MIN_CUT = 8


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `cell` makes the full text, `short` what a terminal shows instead of it.

    `limit` cuts a cell, in characters; None keeps all. `style` colours a cell by its text. A path
    is folded where a terminal is too narrow, since it is for copying; other cells are cut.
    """

    title: str
    cell: Callable[[Mapping[str, Any]], str]
    short: Callable[[Mapping[str, Any]], str] | None = None
    limit: int | None = None
    is_path: bool = False
    style: Mapping[str, str] = field(default_factory=dict)

    def text(self, item: Mapping[str, Any], *, for_terminal: bool) -> str:
        """The cell of `item`: one line, safe to print; empty where there is nothing to say."""
        make = self.short if for_terminal and self.short is not None else self.cell
        raw = make(item)
        return safe_label(raw, self.limit) if raw else ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found, in the words of `rootsd/1`; `extra` are fields beside the items."""

    items: Sequence[Mapping[str, Any]] = ()
    revision: int | None = None
    warnings: Sequence[str] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


class Output:
    """Standard output and standard error as the flags and the terminal want them."""

    def __init__(self, flags: Flags, command: str) -> None:
        self._flags = flags
        self._command = command

    @property
    def is_json(self) -> bool:
        """Whether standard output is to hold one JSON object and nothing else."""
        return self._flags.json

    @property
    def talks(self) -> bool:
        """Whether anything but errors and warnings is said on standard error."""
        return not self._flags.quiet and not self._flags.json

    @property
    def on_terminal(self) -> bool:
        """Whether a person reads standard output."""
        return not self._flags.json and sys.stdout.isatty()

    def show(self, answer: Answer, columns: Sequence[Column]) -> None:
        """The items as a table, lines or JSON; the warnings with them."""
        if self._flags.json:
            self.object(answer)
            return
        for_terminal = self.on_terminal  # asked once, not for each of 20,000 rows
        rows = [
            [column.text(item, for_terminal=for_terminal) for column in columns]
            for item in answer.items
        ]
        if not for_terminal:
            self.rows(rows)
        elif len(rows) > MAX_RICH_ROWS:
            self._columns(rows, [column.title for column in columns])
        elif rows:
            self._table(rows, columns)
        self.warn(answer.warnings)

    def object(self, answer: Answer) -> None:
        """The one JSON object, all ASCII: a terminal cannot be deceived by it either."""
        whole = {
            "schema": SCHEMA,
            "command": self._command,
            "revision": answer.revision,
            **answer.extra,
            "items": list(answer.items),
            "warnings": list(answer.warnings),
        }
        self.line(json.dumps(whole))

    def error(self, code: str, message: str, remedy: str, choices: Sequence[str] = ()) -> None:
        """An error: two lines on stderr, or one object on stdout with --json."""
        if self._flags.json:
            error: dict[str, Any] = {"code": code, "message": message, "remedy": remedy or None}
            if choices:
                error["choices"] = list(choices)
            self.line(json.dumps({"schema": SCHEMA, "command": self._command, "error": error}))
            return
        first, *rest = message.splitlines() or [""]
        lines = [f"error: {safe_text(first)}", *(f"  {safe_text(line)}" for line in rest)]
        lines += [f"  {safe_label(choice)}" for choice in choices]
        if remedy:
            lines.append(f"  try: {safe_text(remedy)}")
        sys.stderr.write("\n".join(lines) + "\n")

    def rows(self, rows: Sequence[Sequence[str]]) -> None:
        """Tab-separated lines; the cells are safe already."""
        sys.stdout.write("".join("\t".join(row) + "\n" for row in rows))

    def line(self, text: str) -> None:
        """One line of data."""
        sys.stdout.write(text + "\n")

    def text(self, text: str) -> None:
        """A whole file of our own, as it is."""
        sys.stdout.write(text)

    def say(self, text: str) -> None:
        """Talk on stderr; nothing with -q or --json."""
        if self.talks:
            sys.stderr.write(safe_text(text) + "\n")

    def warn(self, warnings: Sequence[str]) -> None:
        """Warnings on stderr, also with -q; with --json they are in the object."""
        if not self._flags.json:
            for warning in warnings:
                sys.stderr.write(f"warning: {safe_text(warning)}\n")

    def _table(self, rows: Sequence[Sequence[str]], columns: Sequence[Column]) -> None:
        from rich.console import Console

        no_color = self._flags.no_color or bool(os.environ.get("NO_COLOR"))
        console = Console(no_color=no_color, highlight=False)
        if _least_width(rows, columns) > console.width:
            self._stacked(rows, columns)  # rich would leave whole columns out
            return
        console.print(_rich_table(rows, columns, console.width))

    def _stacked(self, rows: Sequence[Sequence[str]], columns: Sequence[Column]) -> None:
        """Each row in lines of its own, for a terminal that its columns do not fit: what is short
        first, then each path."""
        for row in rows:
            cells = list(zip(columns, row, strict=True))
            self.line(GAP.join(cell for column, cell in cells if cell and not column.is_path))
            for column, cell in cells:
                if cell and column.is_path:
                    self.line(f"{GAP}{cell}")

    def _columns(self, rows: Sequence[Sequence[str]], titles: Sequence[str]) -> None:
        """Aligned columns without rich: for so many rows that layout would take seconds."""
        table = [titles, *rows]
        widths = [max(map(_width, cells)) for cells in zip(*table, strict=True)]
        for row in table:
            cells = (
                cell + " " * (width - _width(cell))
                for cell, width in zip(row, widths, strict=True)
            )
            self.line(GAP.join(cells).rstrip())


def safe_text(text: str) -> str:
    """A sentence made safe for a terminal; escapes that are in it already stay as they are."""
    return "\\".join(_safe_piece(piece) for piece in text.split("\\"))


def _safe_piece(piece: str) -> str:
    body = piece.strip(" ")
    if not body:
        return piece
    start = piece.index(body)
    return piece[:start] + safe_label(body, limit=None) + piece[start + len(body) :]


def _least_width(rows: Sequence[Sequence[str]], columns: Sequence[Column]) -> int:
    """What the columns take where everything is cut or folded that may be."""
    widths = (
        MIN_PATH if column.is_path else MIN_CUT if column.limit is not None else natural
        for column, natural in zip(columns, _natural_widths(rows, columns), strict=True)
    )
    return sum(widths) + len(GAP) * (len(columns) - 1)


def _natural_widths(rows: Sequence[Sequence[str]], columns: Sequence[Column]) -> list[int]:
    return [
        max(_width(cell) for cell in (column.title, *cells))
        for column, cells in zip(columns, zip(*rows, strict=True), strict=True)
    ]


def _rich_table(rows: Sequence[Sequence[str]], columns: Sequence[Column], room: int) -> RichTable:
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, len(GAP), 0, 0),
        header_style="bold",
        show_header=any(column.title for column in columns),
    )
    widths = _natural_widths(rows, columns)
    natural = sum(widths) + len(GAP) * (len(columns) - 1)
    is_tight = natural > room
    for column, width in zip(columns, widths, strict=True):
        is_cut = is_tight and column.limit is not None
        table.add_column(
            column.title,
            no_wrap=not column.is_path,
            overflow="fold" if column.is_path else "ellipsis",
            # Left alone, rich would take the last letter of the paths before it cuts a note.
            min_width=MIN_PATH if column.is_path and is_tight else None,
            # What the others leave of the room, where that is more than its share.
            max_width=max(MIN_CUT, room // 5, room - (natural - width)) if is_cut else None,
        )
    for row in rows:
        # Text, never str: rich would read [brackets] in a name as markup.
        table.add_row(
            *(
                Text(cell, column.style.get(cell, ""))
                for cell, column in zip(row, columns, strict=True)
            )
        )
    return table


def _width(text: str) -> int:
    """Columns that `text` takes on a terminal (UAX #11): wide letters take two, marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(char).startswith("M")
        else 2
        if unicodedata.east_asian_width(char) in ("W", "F")
        else 1
        for char in text
    )
