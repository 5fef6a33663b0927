"""Fit text to a terminal: measure widths, wrap text, and lay out tables. No I/O.

Nothing is cut off. Text wraps between words. A path that is longer than a line breaks after a
slash, so that each name in it stays whole. A name that is longer than a line stays whole too: the
terminal itself wraps it, and a person can still copy it.

A table that does not fit gives way in this order: its notes go below their rows, then the paths
that are too long, and last the cells of a row flow one after the other.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import partial
from typing import NamedTuple

from rootsd.cli.text.theme import Tone

GAP = "  "
MIN_WRAP_WIDTH = 20
"""The minimum number of columns for text beside a label. Narrower text starts below the label."""
_WIDEST_SHARE = 3  # a cell wider than 1/3 of a narrow line makes its row flow
_WIDEST_INDENT = 8
_NARROW_INDENT = 2
_WIDE = 2
_SPACED_WORD = r"\s*\S+"
_BEHIND_A_SLASH = r"[^/]*/+|[^/]+"
_BEHIND_A_MARK = r"[^-_. ]*[-_. ]+|[^-_. ]+"

CellPaint = Callable[[int, str], str]


class ColumnFit(Enum):
    """What a column does in a table that is too wide."""

    LINE = auto()
    """Stay on the line of the row."""
    PATH = auto()
    """Move to the end of the line, or below the row if the whole path does not fit."""
    NOTE = auto()
    """Move below the row, wrapped between words."""


class Paragraph(NamedTuple):
    """A label and a text, which wraps beside the label. `hint` is the command that comes next."""

    label: str
    text: str
    tone: Tone | None = None
    hint: str = ""


def width(text: str) -> int:
    """Return the terminal columns of `text`: 2 per wide letter, 0 per mark (UAX #11)."""
    if text.isascii():
        return len(text)
    return sum(map(_width_of_char, text))


def wrap(text: str, room: int) -> list[str]:
    """Return `text` as lines of at most `room` columns, broken between words and inside paths.

    A piece that is longer than a line gets its own line.
    """
    if width(text) <= room:
        return [text]
    lines = [""]
    for token in re.findall(_SPACED_WORD, text):
        if width(lines[-1] + token) <= room:
            lines[-1] += token
            continue
        word = token.lstrip()
        if width(word) <= room:
            lines.append(word)
            continue
        gap = token[: len(token) - len(word)] if lines[-1] else ""
        for piece in _pieces(word, room):
            if width(lines[-1] + gap + piece) <= room:
                lines[-1] += gap + piece
            else:
                lines.append(piece)
            gap = ""
    return [line for line in lines if line]


def hanging_indent(label: str, text: str, room: int) -> list[str]:
    """Return `label` and `text` as lines of `room` columns, the text indented by the label.

    In a narrow terminal the text begins below the label.
    """
    indent = width(label)
    if width(text) <= room - indent:
        return [(label + text).rstrip()]
    if room - indent >= MIN_WRAP_WIDTH:
        first, *rest = wrap(text, room - indent)
        return [label + first, *(" " * indent + line for line in rest)]
    below = wrap(text, room - _NARROW_INDENT)
    return [label.rstrip(), *(" " * _NARROW_INDENT + line for line in below)]


def table(
    titles: Sequence[str],
    fits: Sequence[ColumnFit],
    rows: Sequence[Sequence[str]],
    room: int,
    paint: CellPaint,
) -> Iterator[str]:
    """Yield the lines of a table that is at most `room` columns wide.

    Every row has one cell for each title. `paint` colors the text of a cell, given its column, or
    of a title (column -1). It does not change the width. If all titles are empty, there is no
    header.
    """
    header, lines_of = _lay_out(titles, fits, rows, room, paint)
    yield from header
    for row in rows:
        yield from lines_of(row)


def grouped_table(
    titles: Sequence[str],
    fits: Sequence[ColumnFit],
    groups: Sequence[tuple[str, str, Sequence[Sequence[str]]]],
    room: int,
    paint: CellPaint,
) -> Iterator[str]:
    """Yield the lines of a table as `table` does, with its rows below the headings of groups.

    A group has a heading, a remark beside it, and its rows. `paint` colors a heading as column -2.
    """
    rows = [row for _, _, each in groups for row in each]
    header, lines_of = _lay_out(titles, fits, rows, room - _NARROW_INDENT, paint)
    start = " " * _NARROW_INDENT
    yield from (start + line for line in header)
    for heading, remark, members in groups:
        is_short = width(heading) + len(GAP) + width(remark) <= room
        *above, last = wrap(heading, room)
        yield from (paint(-2, line) for line in above)
        yield paint(-2, last) + (GAP + remark if remark and is_short else "")
        if remark and not is_short:
            yield from (start + line for line in wrap(remark, room - _NARROW_INDENT))
        yield from (start + line for row in members for line in lines_of(row))


_LinesOf = Callable[[Sequence[str]], Iterable[str]]


def _lay_out(
    titles: Sequence[str],
    fits: Sequence[ColumnFit],
    rows: Sequence[Sequence[str]],
    room: int,
    paint: CellPaint,
) -> tuple[list[str], _LinesOf]:
    """Return the lines of the header, and a function that returns the lines of a row."""
    shown = [
        column
        for column, fit in enumerate(fits)
        if fit is not ColumnFit.NOTE or any(row[column] for row in rows)
    ]
    whole = [max(width(cells[c]) for cells in (titles, *rows)) for c in range(len(titles))]
    if sum(whole[c] for c in shown) + len(GAP) * (len(shown) - 1) > room:
        return _lay_out_narrow(titles, fits, rows, room, paint)
    header = [_row(titles, shown, whole, lambda _, cell: paint(-1, cell))] if any(titles) else []
    return header, lambda row: (_row(row, shown, whole, paint),)


def _lay_out_narrow(
    titles: Sequence[str],
    fits: Sequence[ColumnFit],
    rows: Sequence[Sequence[str]],
    room: int,
    paint: CellPaint,
) -> tuple[list[str], _LinesOf]:
    line = [column for column, fit in enumerate(fits) if fit is ColumnFit.LINE]
    paths = [column for column, fit in enumerate(fits) if fit is ColumnFit.PATH]
    notes = [column for column, fit in enumerate(fits) if fit is ColumnFit.NOTE]
    widths = _aligned_widths(titles, line, rows, room)
    indent = _NARROW_INDENT
    if line and widths.get(line[0], _WIDEST_INDENT) + len(GAP) <= _WIDEST_INDENT:
        indent = widths[line[0]] + len(GAP)
    elif not line:
        indent = 0
    header = list(_header(titles, [*line, *paths], widths, room, paint)) if any(titles) else []

    def lines_of(row: Sequence[str]) -> Iterator[str]:
        below = [row[column] for column in paths if row[column]]
        remarks = [(row[column], partial(paint, column)) for column in notes if row[column]]
        if any(width(row[column]) > widths.get(column, -1) for column in line):
            yield from _flowing(row, line, indent, room, paint)
            packed = _pack(remarks, 0, room - indent)
        else:
            left = room - sum(widths[column] + len(GAP) for column in line)
            end = below.pop() if len(below) == 1 and width(below[0]) <= left else ""
            packed = _pack(remarks, 0 if end or below else left, room - indent)
            if line or end or packed[0]:
                yield _row(row, line, widths, paint, end or packed[0])
        for text in below:
            yield from (" " * indent + part for part in wrap(text, room - indent))
        yield from (" " * indent + part for part in packed[1:])

    return header, lines_of


def _pack(cells: Iterable[tuple[str, Callable[[str], str]]], first: int, room: int) -> list[str]:
    """Return cells as lines of `room` columns. Cells share a line if they fit on it.

    Each cell comes with the function that colors it. The first line has `first` columns, and is
    empty if no cell fits there.
    """
    lines, left = [""], first
    for cell, paint in cells:
        gap = GAP if lines[-1] else ""
        if width(gap + cell) <= left:
            lines[-1] += gap + paint(cell)
            left -= width(gap + cell)
        else:
            parts = wrap(cell, room)
            lines += map(paint, parts)
            left = room - width(cell) if len(parts) == 1 else 0
    return lines


def _header(
    titles: Sequence[str],
    columns: Sequence[int],
    widths: Mapping[int, int],
    room: int,
    paint: CellPaint,
) -> Iterator[str]:
    aligned = sum(widths.get(column, width(titles[column])) for column in columns)
    if widths and aligned + len(GAP) * (len(columns) - 1) <= room:
        yield _row(titles, columns, widths, lambda _, title: paint(-1, title))
        return
    for part in wrap(GAP.join(titles[column] for column in columns), room):
        yield paint(-1, part)


def _aligned_widths(
    titles: Sequence[str], line: Sequence[int], rows: Sequence[Sequence[str]], room: int
) -> Mapping[int, int]:
    """Return the width of each column of `line`, or an empty mapping if these columns do not fit.

    Ignores cells that take too large a part of the line, because their rows flow.
    """
    most = room // _WIDEST_SHARE
    widths = {}
    for column in line:
        cells = [width(row[column]) for row in rows]
        widths[column] = max([width(titles[column]), *(cell for cell in cells if cell <= most)])
    return widths if sum(widths.values()) + len(GAP) * (len(widths) - 1) <= room else {}


def _row(
    cells: Sequence[str],
    columns: Sequence[int],
    widths: Sequence[int] | Mapping[int, int],
    paint: CellPaint,
    end: str = "",
) -> str:
    """Return the cells as one line, which ends with `end`."""
    parts = []
    for column in columns:
        is_last = column == columns[-1] and not end
        cell = cells[column]
        pad = "" if is_last else " " * (widths[column] - width(cell) + len(GAP))
        parts.append((paint(column, cell) if cell else "") + pad)
    return ("".join(parts) + end).rstrip(" ")


def _flowing(
    row: Sequence[str], columns: Sequence[int], indent: int, room: int, paint: CellPaint
) -> Iterator[str]:
    """Yield lines with the cells one after the other; break only cells longer than a line."""
    painted, taken = "", 0
    for column in columns:
        if not (cell := row[column]):
            continue
        if taken and taken + len(GAP) + width(cell) > room:
            yield painted
            painted, taken = " " * indent, indent
        elif taken:
            painted, taken = painted + GAP, taken + len(GAP)
        *full, last = wrap(cell, room - taken) if taken <= indent else [cell]
        for part in full:
            yield painted + paint(column, part)
            painted, taken = " " * indent, indent
        painted, taken = painted + paint(column, last), taken + width(last)
    yield painted


def _pieces(word: str, room: int) -> Iterator[str]:
    """Yield the pieces of a word that is longer than a line. The word may break between them."""
    for part in re.findall(_BEHIND_A_SLASH, word):
        if width(part) <= room:
            yield part
            continue
        for piece in re.findall(_BEHIND_A_MARK, part):
            if width(piece) <= room or piece.isascii():
                yield piece
            else:  # scripts that are written without spaces break between any two letters
                yield from _between_wide_letters(piece)


def _between_wide_letters(text: str) -> Iterator[str]:
    piece = ""
    for char in text:
        is_wide = _WIDE in (_width_of_char(char), _width_of_char(piece[-1]) if piece else 0)
        if piece and is_wide and _width_of_char(char):  # a mark stays with its letter
            yield piece
            piece = ""
        piece += char
    yield piece


def _width_of_char(char: str) -> int:
    if unicodedata.category(char).startswith("M"):
        return 0
    return _WIDE if unicodedata.east_asian_width(char) in ("W", "F") else 1
