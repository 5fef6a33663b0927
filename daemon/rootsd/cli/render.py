"""Print results: a table on a terminal, tab-separated lines in a pipe, JSON with --json.

Standard output holds data; messages to a person go to standard error. Text that a project's author
can choose goes through `safe_label`, so that no name can break a line, a field, or a terminal.
Programs get exact paths and complete cells. On a terminal, `rootsd.cli.layout` wraps the text.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NotRequired, TextIO, TypedDict

from rootsd.cli.layout import ColumnFit, hanging_indent, table, width, wrap
from rootsd.core.labels import safe_label, safe_text


@dataclass(slots=True)
class Flags:
    """The global flags. Parsing sets them, because they may follow any word."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    no_color: bool = False
    no_input: bool = False


SCHEMA: Final = "rootsd/1"
_FALLBACK = 80
_INDENT = "  "
# Select Graphic Rendition, ECMA-48 8.3.117.
_STYLES = {"bold": "1", "bold red": "1;31", "red": "31", "green": "32", "yellow": "33"}
_TITLE = "bold"


def whole_label(text: str) -> str:
    """Return the label of `text` in full length."""
    return safe_label(text, limit=None)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    `cell` makes the full text, and `short` an alternative for terminals. On a terminal, `limit`
    cuts a cell to that many characters (None: never), `style` maps a cell's text to its color, and
    `fit` says what happens to the column if the table is too wide. For programs, `exact` makes the
    text of a cell safe without cutting it.
    """

    title: str
    cell: Callable[[Mapping[str, Any]], str]
    short: Callable[[Mapping[str, Any]], str] | None = None
    limit: int | None = None
    fit: ColumnFit = ColumnFit.LINE
    style: Mapping[str, str] = field(default_factory=dict)
    exact: Callable[[str], str] = whole_label

    def text(self, item: Mapping[str, Any], *, for_terminal: bool) -> str:
        """Return the cell of `item`: one line that is safe to print, or empty."""
        make = self.short if for_terminal and self.short is not None else self.cell
        raw = make(item)
        if not raw:
            return ""
        return safe_label(raw, self.limit) if for_terminal else self.exact(raw)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command, in the keys of `rootsd/1`; `extra` are fields beside the items."""

    items: Sequence[Mapping[str, Any]] = ()
    revision: int | None = None
    warnings: Sequence[str] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


class CommandOutput(TypedDict):
    """The object that a command prints with `--json`.

    Between `revision` and `items` come the other keys of the daemon's result, and some of the
    command's own. `revision` is null for a command that asks no daemon.
    """

    schema: Literal["rootsd/1"]
    command: str
    revision: int | None
    items: list[dict[str, Any]]
    warnings: list[str]


class ErrorOutputItem(TypedDict):
    """An error of a command. `code` is a value of `core.errors.ErrorCode`, `remedy` a command.

    `choices` are the projects that an ambiguous reference may mean.
    """

    code: str
    message: str
    remedy: str | None
    choices: NotRequired[list[str]]


class ErrorOutput(TypedDict):
    """The object that a command prints with `--json` if it fails."""

    schema: Literal["rootsd/1"]
    command: str
    error: ErrorOutputItem


class Output:
    """Standard output and standard error, with the formats that flags and terminal call for."""

    def __init__(self, flags: Flags, command: str) -> None:
        self._flags = flags
        self._command = command

    @property
    def is_json(self) -> bool:
        """Whether standard output holds one JSON object and nothing else."""
        return self._flags.json

    @property
    def prints_messages(self) -> bool:
        """Whether standard error gets messages beside errors and warnings."""
        return not self._flags.quiet and not self._flags.json

    @property
    def on_terminal(self) -> bool:
        """Whether a person reads standard output."""
        return not self._flags.json and sys.stdout.isatty()

    def show(self, answer: CommandResult, columns: Sequence[Column]) -> None:
        """Print the items as a table, lines, or JSON, and then the warnings."""
        if self._flags.json:
            self.object(answer)
            return
        for_terminal = self.on_terminal  # a system call, and there may be 20,000 rows
        rows = [
            [column.text(item, for_terminal=for_terminal) for column in columns]
            for item in answer.items
        ]
        if not for_terminal:
            self.rows(rows)
        elif rows:
            self._table(rows, columns)
        self.warn(answer.warnings)

    def object(self, answer: CommandResult) -> None:
        """Print the JSON object. It is all ASCII, so that it is safe on a terminal, too."""
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
        """Print an error: two lines on stderr, or one object on stdout with --json."""
        if self._flags.json:
            error = ErrorOutputItem(code=code, message=message, remedy=remedy or None)
            if choices:
                error["choices"] = list(choices)
            failure = ErrorOutput(schema=SCHEMA, command=self._command, error=error)
            self.line(json.dumps(failure))
            return
        for line in _message_lines(f"error: {message}"):
            _print_message(line)
        for choice in choices:
            _print_message(f"{_INDENT}{safe_label(choice, limit=None)}")
        if remedy:
            sys.stderr.write(f"{_INDENT}try: {safe_text(remedy)}\n")  # unwrapped, to be copied

    def rows(self, rows: Sequence[Sequence[str]]) -> None:
        """Print tab-separated lines; the cells must be safe already."""
        sys.stdout.write("".join("\t".join(row) + "\n" for row in rows))

    def line(self, text: str) -> None:
        """Print one line of data."""
        sys.stdout.write(text + "\n")

    def text(self, text: str) -> None:
        """Print the text of a file of ours, unchanged."""
        sys.stdout.write(text)

    def labelled(self, label: str, text: str) -> None:
        """Print a label and safe text as data; on a terminal, the text wraps beside the label."""
        if self.on_terminal:
            for line in hanging_indent(label, text, terminal_width(sys.stdout)):
                self.line(line)
        else:
            self.line(label + text)

    def whole(self, indent: int, text: str) -> None:
        """Print safe text for copying: never wrapped, and indented by `indent` if it then fits."""
        is_wide = self.on_terminal and indent + width(text) > terminal_width(sys.stdout)
        self.line((_INDENT if is_wide else " " * indent) + text)

    def message(self, text: str) -> None:
        """Print a line on stderr, unless -q or --json is set."""
        if self.prints_messages:
            _print_message(safe_text(text))

    def warn(self, warnings: Sequence[str]) -> None:
        """Print warnings on stderr, even with -q; with --json, `object` prints them."""
        if not self._flags.json:
            for warning in warnings:
                for line in _message_lines(f"warning: {warning}"):
                    _print_message(line)

    def _table(self, rows: Sequence[Sequence[str]], columns: Sequence[Column]) -> None:
        titles = [column.title for column in columns]
        fits = [column.fit for column in columns]
        is_plain = (
            self._flags.no_color
            or bool(os.environ.get("NO_COLOR"))
            or os.environ.get("TERM", "dumb") in ("dumb", "unknown")
        )

        def paint(column: int, text: str) -> str:
            style = _TITLE if column < 0 else columns[column].style.get(text)
            return text if is_plain or style is None else f"\x1b[{_STYLES[style]}m{text}\x1b[0m"

        sys.stdout.writelines(
            f"{line}\n" for line in table(titles, fits, rows, terminal_width(sys.stdout), paint)
        )


def _message_lines(message: str) -> list[str]:
    """Return the lines of a message of ours, each made safe, and all but the first indented."""
    first, *rest = message.rstrip("\n").split("\n")
    return [safe_text(first), *(_INDENT + safe_text(line) for line in rest)]


def _print_message(line: str) -> None:
    """Print a safe line on stderr; on a terminal, wrap it and indent the continuation lines."""
    if sys.stderr.isatty():
        room = terminal_width(sys.stderr)
        if width(line) > room:
            first, *rest = wrap(line.lstrip(" "), room - 2 * len(_INDENT))
            start = line[: len(line) - len(line.lstrip(" "))]
            line = "\n".join((start + first, *(f"{start}{_INDENT}{each}" for each in rest)))
    sys.stderr.write(line + "\n")


def terminal_width(stream: TextIO) -> int:
    """Return the width of the terminal `stream`; the variable COLUMNS takes precedence."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _FALLBACK
    except (OSError, ValueError):
        return _FALLBACK
