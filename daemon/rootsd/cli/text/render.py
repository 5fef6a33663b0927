"""Print results: a table on a terminal, tab-separated lines in a pipe, JSON with --json.

Standard output holds data; messages to a person go to standard error. Text that a project's author
can choose goes through `safe_label`, so that no name can break a line, a field, or a terminal.
Programs get exact paths and complete cells. On a terminal, `layout` wraps the text.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TextIO, TypedDict

from msgspec import Struct, field

from rootsd.cli.text.layout import (
    CellPaint,
    ColumnFit,
    grouped_table,
    hanging_indent,
    table,
    width,
    wrap,
)
from rootsd.cli.text.pager import needs_pager, page
from rootsd.cli.text.phrases import age, shorten_home
from rootsd.cli.text.theme import Paint, Tone, no_paint, paint_for
from rootsd.cli.text.typed_command import as_typed
from rootsd.core.errors import RootsdError
from rootsd.core.labels import exact_path, safe_label, safe_text
from rootsd.wire.error_facts import ErrorFacts


class Flags(Struct):
    """The global flags. Parsing sets them, because they may follow any word."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    no_color: bool = False
    no_input: bool = False
    no_pager: bool = False


SCHEMA: Final = "rootsd/1"
_FALLBACK = 80
_INDENT = "  "
_HINT_MARK = "→ "


def whole_label(text: str) -> str:
    """Return the label of `text` in full length."""
    return safe_label(text, limit=None)


class Column(Struct, frozen=True):
    """A column of a table.

    `cell` makes the full text, and `short` an alternative for terminals. On a terminal, `limit`
    cuts a cell to that many characters (None: never), `tones` maps a cell's text to its tone,
    `tone` is that of all others, and `fit` says what happens to the column if the table is too
    wide. For programs, `exact` makes the text of a cell safe without cutting it.
    """

    title: str
    cell: Callable[[Mapping[str, Any]], str]
    short: Callable[[Mapping[str, Any]], str] | None = None
    limit: int | None = None
    fit: ColumnFit = ColumnFit.LINE
    tones: Mapping[str, Tone] = field(default_factory=dict)
    tone: Tone | None = None
    exact: Callable[[str], str] = whole_label

    def text(self, item: Mapping[str, Any], *, for_terminal: bool) -> str:
        """Return the cell of `item`: one line that is safe to print, or empty."""
        make = self.short if for_terminal and self.short is not None else self.cell
        raw = make(item)
        if not raw:
            return ""
        return safe_label(raw, self.limit) if for_terminal else self.exact(raw)


def path_column(title: str, path: Callable[[Mapping[str, Any]], str]) -> Column:
    """Return a column of paths. On a terminal, those in the home folder begin with `~`."""
    return Column(
        title,
        path,
        short=lambda item: shorten_home(path(item)),
        fit=ColumnFit.PATH,
        exact=exact_path,
    )


def time_column(title: str, key: str) -> Column:
    """Return a column of times. On a terminal, it says how long ago each one was."""
    return Column(title, lambda item: item[key], short=lambda item: item[key] and age(item[key]))


class TableGroup(Struct, frozen=True):
    """Items of a table below a heading, with a remark beside it."""

    heading: str
    remark: str
    items: Sequence[Mapping[str, Any]]


class CommandResult(Struct, frozen=True):
    """The result of a command, in the keys of `rootsd/1`; `extra` are fields beside the items.

    `Output` knows the command, and makes a `CommandOutput` or a table of it.
    """

    items: Sequence[Mapping[str, Any]] = ()
    revision: int | None = None
    warnings: Sequence[str] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        response: Mapping[str, Any],
        items: Sequence[Mapping[str, Any]] | None = None,
        **extra: object,
    ) -> CommandResult:
        """Return the result of a response of the daemon, or these items in place of its own."""
        shown = response["items"] if items is None else items
        return cls(shown, response["revision"], response["warnings"], extra)


class CommandOutput(TypedDict):
    """The object that a command prints with `--json`.

    Between `revision` and `items` come the keys of the command: see `prints` of `VerbCommand`.
    """

    schema: Literal["rootsd/1"]
    """The name and the version of the format."""
    command: str
    """The words of the command, such as `parent add`."""
    revision: int | None
    """A number that grows with each change of the published set. Null if no daemon was asked."""
    items: list[dict[str, Any]]
    """The rows of the result. Empty for a result that is no list."""
    warnings: list[str]
    """What a person should know, one sentence each."""


class ErrorOutputItem(ErrorFacts):
    """An error of a command."""

    message: str
    """What failed, and why."""


class ErrorOutput(TypedDict):
    """The object that a command prints with `--json` if it fails."""

    schema: Literal["rootsd/1"]
    """The name and the version of the format."""
    command: str
    """The words of the command, as far as they were understood."""
    error: ErrorOutputItem
    """What failed."""


class PathItem(TypedDict):
    """A folder."""

    path: str
    """Its absolute path."""


class PathsOutput(TypedDict):
    """Folders."""

    items: list[PathItem]
    """The folders that were chosen."""


class DryRunOutput(TypedDict):
    """With `--dry-run`."""

    dry_run: Literal[True]
    """Nothing was changed."""


class Output:
    """Standard output and standard error, with the formats that flags and terminal call for."""

    def __init__(
        self, flags: Flags, command: str, configured_pager: Callable[[], str] = lambda: ""
    ) -> None:
        self._flags = flags
        self._command = command
        self._configured_pager = configured_pager

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
        rows = _cells(answer.items, columns, for_terminal=for_terminal)
        if not for_terminal:
            self.rows(rows)
        elif rows:
            self._table(rows, columns)
        self.warn(answer.warnings)

    def show_groups(self, groups: Sequence[TableGroup], columns: Sequence[Column]) -> None:
        """Print the items of the groups as one table on a terminal."""
        parts = [
            (
                safe_label(group.heading, limit=None),
                safe_label(group.remark) if group.remark else "",
                [
                    [column.text(item, for_terminal=True) for column in columns]
                    for item in group.items
                ],
            )
            for group in groups
        ]
        titles, fits, paint = self._appearance(columns)
        room = terminal_width(sys.stdout)
        self._show_lines(grouped_table(titles, fits, parts, room, paint))

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

    def error(self, error: RootsdError, commands: Sequence[str]) -> None:
        """Print an error and the commands to type next, or one object on stdout with --json."""
        facts = ErrorOutputItem(
            code=error.code.value, message=error.message, remedy=error.remedy or None
        )
        if error.choices:
            facts["typed"] = error.typed
            facts["choices"] = list(error.choices)
        self._error(facts, commands)

    def bug(self, message: str, remedy: str) -> None:
        """Print a message about a bug as an error."""
        self._error(ErrorOutputItem(code="bug", message=message, remedy=remedy), (remedy,))

    def _error(self, facts: ErrorOutputItem, commands: Sequence[str]) -> None:
        if self._flags.json:
            failure = ErrorOutput(schema=SCHEMA, command=self._command, error=facts)
            self.line(json.dumps(failure))
            return
        self._print_message(f"error: {facts['message']}", "error:", Tone.REFUSED)
        paint, mark = self._paint(sys.stderr), "try: "
        for each in commands:  # unwrapped, to be copied
            command = paint(Tone.COMMAND, safe_text(as_typed(each)))
            sys.stderr.write(f"{_INDENT}{mark}{command}\n")
            mark = " " * len(mark)

    def rows(self, rows: Sequence[Sequence[str]]) -> None:
        """Print tab-separated lines; the cells must be safe already."""
        sys.stdout.write("".join("\t".join(row) + "\n" for row in rows))

    def line(self, text: str) -> None:
        """Print one line of data."""
        sys.stdout.write(text + "\n")

    def text(self, text: str) -> None:
        """Print the text of a file of ours, unchanged."""
        sys.stdout.write(text)

    def labelled(self, label: str, text: str, tone: Tone = Tone.LABEL, hint: str = "") -> None:
        """Print a label and safe text as data; on a terminal, the text wraps beside the label.

        `hint` is a command to type. It stands behind the text, or below it if it does not fit.
        """
        typed = as_typed(hint)
        whole = f"{text}{_HINT_MARK}{typed}" if hint else text
        if not self.on_terminal:
            self.line(label + whole)
            return
        if hint and width(label + whole) > terminal_width(sys.stdout):
            for line in self._labelled(sys.stdout, label, text.rstrip(), tone):
                self.line(line)
            self.command(len(label), _HINT_MARK, hint)
            return
        painted = self._paint(sys.stdout)(Tone.COMMAND, typed) if hint else ""
        for line in self._labelled(sys.stdout, label, whole, tone):
            self.line(line.removesuffix(typed) + painted if hint else line)

    def labelled_message(self, label: str, text: str, tone: Tone) -> None:
        """Print a label and safe text on stderr, such as before a question. The text wraps.

        Without a label, `text` gets the color of `tone`.
        """
        for line in self._labelled(sys.stderr, label or text, text if label else "", tone):
            sys.stderr.write(line + "\n")

    def command(self, indent: int, mark: str, text: str) -> None:
        """Print a command to copy after `mark`: never wrapped, indented by `indent` if it fits."""
        text = as_typed(text)
        whole = indent + width(mark + text)
        is_wide = self.on_terminal and whole > terminal_width(sys.stdout)
        paint = self._paint(sys.stdout)
        self.line((_INDENT if is_wide else " " * indent) + mark + paint(Tone.COMMAND, text))

    def message(self, text: str) -> None:
        """Print a line on stderr, unless -q or --json is set."""
        if self.prints_messages:
            self._print_line(safe_text(as_typed(text)))

    def warn(self, warnings: Sequence[str]) -> None:
        """Print warnings on stderr, even with -q; with --json, `object` prints them."""
        if not self._flags.json:
            for warning in warnings:
                self._print_message(f"warning: {warning}", "warning:", Tone.ATTENTION)

    def _table(self, rows: Sequence[Sequence[str]], columns: Sequence[Column]) -> None:
        titles, fits, paint = self._appearance(columns)
        self._show_lines(table(titles, fits, rows, terminal_width(sys.stdout), paint))

    def _show_lines(self, lines: Iterable[str]) -> None:
        """Print the lines of a table, or show them in a pager if the terminal is too small."""
        shown = list(lines)
        text = "".join(f"{line}\n" for line in shown)
        if not self._flags.no_pager and needs_pager(shown):
            sys.stdout.flush()
            if page(text, self._configured_pager()):
                return
        sys.stdout.write(text)

    def _appearance(
        self, columns: Sequence[Column]
    ) -> tuple[list[str], list[ColumnFit], CellPaint]:
        """Return the titles and the fits of the columns, and how to color their cells."""
        paint = self._paint(sys.stdout)

        def paint_cell(column: int, text: str) -> str:
            shown = columns[column]
            tone = Tone.HEADING if column < 0 else shown.tones.get(text, shown.tone)
            return text if tone is None else paint(tone, text)

        return [column.title for column in columns], [column.fit for column in columns], paint_cell

    def _labelled(self, stream: TextIO, label: str, text: str, tone: Tone) -> list[str]:
        first, *rest = hanging_indent(label, text, terminal_width(stream))
        shown = label.rstrip()
        painted = self._paint(stream)(tone, shown) if shown else ""
        return [painted + first.removeprefix(shown), *rest]

    def _paint(self, stream: TextIO) -> Paint:
        """Return how to color text for `stream`."""
        has_terminal = self.on_terminal or stream.isatty()
        return paint_for(stream) if has_terminal and not self._flags.no_color else no_paint

    def _print_message(self, message: str, start: str, tone: Tone) -> None:
        """Print a message of ours on stderr: each line made safe, and all but the first indented.

        `start` is the first word, which gets the color of `tone`.
        """
        first, *rest = as_typed(message).rstrip("\n").split("\n")
        self._print_line(safe_text(first), start, tone)
        for line in rest:
            self._print_line(_INDENT + safe_text(line))

    def _print_line(self, line: str, start: str = "", tone: Tone = Tone.LABEL) -> None:
        """Print a safe line on stderr; on a terminal, wrap it and indent the continuation."""
        if sys.stderr.isatty():
            room = terminal_width(sys.stderr)
            if width(line) > room:
                first, *rest = wrap(line.lstrip(" "), room - 2 * len(_INDENT))
                indent = line[: len(line) - len(line.lstrip(" "))]
                line = "\n".join((indent + first, *(f"{indent}{_INDENT}{each}" for each in rest)))
        if start:
            line = self._paint(sys.stderr)(tone, start) + line.removeprefix(start)
        sys.stderr.write(line + "\n")


def _cells(
    items: Sequence[Mapping[str, Any]], columns: Sequence[Column], *, for_terminal: bool
) -> list[list[str]]:
    return [[column.text(item, for_terminal=for_terminal) for column in columns] for item in items]


def terminal_width(stream: TextIO) -> int:
    """Return the width of the terminal `stream`; the variable COLUMNS takes precedence."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _FALLBACK
    except (OSError, ValueError):
        return _FALLBACK
