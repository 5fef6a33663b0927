"""The widgets of the screen: lists, text, and bars of words to click.

They draw line by line, and only the visible lines. A line consists of segments of plain text, so
no name is ever parsed as markup. Each text becomes a label before it becomes a segment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from rootsd.cli.text.layout import Paragraph, hanging_indent
from rootsd.cli.text.phrases import shown_path
from rootsd.cli.text.projects import PATH
from rootsd.cli.text.theme import STYLES, Tone
from rootsd.cli.ui.board import GroupRow, PanelKind, ProjectRow, Row, SessionRow, search
from rootsd.cli.ui.columns import PROJECT_FITS, SESSION_FITS, Fit, fitted_columns
from rootsd.cli.ui.details import label_of
from rootsd.cli.ui.orders import Target
from rootsd.core.labels import safe_label

_TONES = {tone: Style.parse(text) for tone, text in STYLES.items()}
_PLAIN = Style()
_CURSOR = Style(reverse=True)
_QUIET_CURSOR = Style(bold=True)
_MARK_WIDTH = 2
_TITLES = 1  # the first line of a list has the titles of its columns

CellsOf = Callable[[ProjectRow | SessionRow], Mapping[str, Any]]


def fitted(text: str, cells: int) -> str:
    """Return the label of a text in exactly so many cells, cut at its end."""
    return _sized(safe_label(text, limit=None), cells)


def _sized(label: str, cells: int) -> str:
    return _cut(label, cells) if cell_len(label) > cells else set_cell_size(label, cells)


def fitted_path(path: str, cells: int) -> str:
    """Return the label of a path in exactly so many cells, cut at its start."""
    label = shown_path(path)
    if cell_len(label) <= cells:
        return set_cell_size(label, cells)
    while label and cell_len(label) >= cells:
        label = label[max(cell_len(label) - cells, 1) :]
    return set_cell_size("…" + label, cells)


def _cut(label: str, cells: int) -> str:
    return set_cell_size(label, max(cells - 1, 0)) + "…" if cells > 0 else ""


class PassedRows(Struct, frozen=True):
    """What `RowList.pass_over` changed: the marks, and the rows that had and got the cursor."""

    marks: Mapping[str, str]
    before: str | None
    after: str | None


class RowList(ScrollView, can_focus=True):
    """One of the three lists, with a cursor, marks, and a search. `cells_of` has what a row shows.

    A mark keeps the identity that the folder had when it was marked. If another folder takes its
    place, the mark is dropped.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home,g", "move(-1000000000)", show=False),
        Binding("end,G", "move(1000000000)", show=False),
        Binding("space", "mark", show=False),
        Binding("asterisk", "mark_all", show=False),
    ]

    @dataclass
    class Moved(Message):
        """The cursor is on another row, the row has changed, or the marks have."""

        rows: RowList

    def __init__(self, kind: PanelKind, cells_of: CellsOf) -> None:
        super().__init__(id=kind.name.lower())
        self._cells_of = cells_of
        self.kind = kind
        self.typed = ""
        self.rows: Sequence[Row] = ()
        self.marks: dict[str, str] = {}
        self._all: Sequence[Row] = ()
        self._cursor = 0

    @property
    def words(self) -> str:
        """The name of the list, with the number of its rows and of those that are selected."""
        shown = [row for row in self.rows if not isinstance(row, GroupRow)]
        total = sum(1 for row in self._all if not isinstance(row, GroupRow))
        count = f"{len(shown):,} of {total:,}" if self.typed else f"{total:,}"
        chosen = f", {len(self.marks):,} selected" if self.marks else ""
        return f"{self.kind.value} {count}{chosen}"

    @property
    def on_screen(self) -> list[ProjectRow]:
        """The projects whose rows are visible."""
        top = round(self.scroll_y)
        return [*_projects(self.rows[top : top + self.size.height])]

    @property
    def current(self) -> Row | None:
        """The row under the cursor."""
        return self.rows[self._cursor] if self._cursor < len(self.rows) else None

    @property
    def marked(self) -> list[Target]:
        """The marked projects, in order."""
        if not self.marks:
            return []
        return [
            Target(row, self.marks[row.id])
            for row in self._all
            if isinstance(row, ProjectRow) and row.id in self.marks
        ]

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows. The cursor stays on its project, or else on its line.

        A search ends when the last row that it found is gone.
        """
        if self.typed and self.rows and not search(rows, self.typed):
            self.typed = ""
        self._all = rows
        identities = {row.id: row.identity for row in rows if isinstance(row, ProjectRow)}
        self.marks = {
            id_: identity
            for id_, identity in self.marks.items()
            if identities.get(id_) == identity
        }
        self._select()

    def search(self, typed: str) -> None:
        """Show only the rows that contain the typed words."""
        self.typed = typed
        self._select()

    def unmark(self) -> None:
        """Remove all marks."""
        self.marks.clear()
        self._changed()

    def pass_over(self, ids: Collection[str]) -> PassedRows:
        """Remove all marks, and move the cursor off these rows, which are about to go.

        So the next key is about the next row, whether or not the daemon has answered by then.
        """
        before, marks = self.current, dict(self.marks)
        self.marks.clear()
        if before is not None and before.id in ids:
            later = range(self._cursor + 1, len(self.rows))
            earlier = range(self._cursor - 1, -1, -1)
            left = (at for at in (*later, *earlier) if self.rows[at].id not in ids)
            self._cursor = next(left, self._cursor)
        self._move_to(self._cursor)
        after = self.current
        return PassedRows(
            marks,
            None if before is None else before.id,
            None if after is None else after.id,
        )

    def take_back(self, passed: PassedRows) -> None:
        """Undo `pass_over`, because the rows stay. A cursor that moved on stays where it is."""
        now = {row.id: row.identity for row in self._all if isinstance(row, ProjectRow)}
        marks = {id_: seen for id_, seen in passed.marks.items() if now.get(id_) == seen}
        self.marks = {**marks, **self.marks}
        if self.current is not None and self.current.id == passed.after:
            places = (at for at, row in enumerate(self.rows) if row.id == passed.before)
            self._cursor = next(places, self._cursor)
        self._move_to(self._cursor)

    def _select(self) -> None:
        before = self.current
        self.rows = search(self._all, self.typed) if self.typed else self._all
        if before is not None:
            places = (at for at, row in enumerate(self.rows) if row.id == before.id)
            self._cursor = next(places, self._cursor)
        self._cursor = max(min(self._cursor, len(self.rows) - 1), 0)
        self.virtual_size = Size(self.size.width, len(self.rows) + _TITLES)
        self._changed()

    def _changed(self) -> None:
        self.border_title = self.words
        self.refresh()
        self.post_message(self.Moved(self))

    def action_move(self, by: int) -> None:
        """Move the cursor by so many rows."""
        self._move_to(self._cursor + by)

    def action_page(self, by: int) -> None:
        """Move the cursor by so many pages."""
        self._move_to(self._cursor + by * max(self.size.height - _TITLES - 1, 1))

    def action_mark(self) -> None:
        """Mark the row, or remove its mark, and go to the next one."""
        row = self.current
        if row is not None and not isinstance(row, SessionRow):
            self._toggle([row])
            self._move_to(self._cursor + 1)

    def action_mark_all(self) -> None:
        """Mark all rows that are shown, or remove their marks if all have one."""
        self._toggle(self.rows)
        self._changed()

    def _toggle(self, rows: Iterable[Row]) -> None:
        """Mark the projects of these rows, or remove their marks if all have one."""
        shown = {row.id: row.identity for row in _projects(rows)}
        if shown.keys() <= self.marks.keys():
            self.marks = {id_: each for id_, each in self.marks.items() if id_ not in shown}
        else:
            self.marks = {**shown, **self.marks}

    def _move_to(self, index: int) -> None:
        self._cursor = max(min(index, len(self.rows) - 1), 0)
        top, height = round(self.scroll_y), self.size.height - _TITLES
        if not top <= self._cursor < top + height:
            below = self._cursor - height + 1
            self.scroll_to(y=self._cursor if self._cursor < top else below, animate=False)
        self._changed()

    def on_click(self, event: Click) -> None:
        """Move the cursor to a row. A click on its start, or a second click, marks it."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        index = offset.y - _TITLES + round(self.scroll_y)
        if not 0 <= index < len(self.rows) or offset.y < _TITLES:
            return
        self._move_to(index)
        if offset.x < _MARK_WIDTH or event.chain > 1:
            self.action_mark()

    def on_resize(self, event: Resize) -> None:
        """Keep the cursor visible."""
        del event
        self.virtual_size = Size(self.size.width, len(self.rows) + _TITLES)
        self._move_to(self._cursor)

    def render_line(self, y: int) -> Strip:
        """Draw the titles of the columns, or one row."""
        width = self.size.width
        fits = PROJECT_FITS if self.kind is not PanelKind.SESSIONS else SESSION_FITS
        columns = fitted_columns(fits, width - _MARK_WIDTH)
        if y == 0:
            titles = " ".join(_sized(each.column.title, each.cells) for each in columns)
            return Strip([Segment(" " * _MARK_WIDTH + titles, _TONES[Tone.LABEL])]).crop_extend(
                0, width, _PLAIN
            )
        index = y - _TITLES + round(self.scroll_y)
        if index >= len(self.rows):
            return Strip.blank(width)
        row = self.rows[index]
        if isinstance(row, GroupRow):
            heading = f"{shown_path(row.name)}: {len(row.members):,}"
            cells = [Segment(fitted(heading, width - _MARK_WIDTH), _TONES[Tone.HEADING])]
        else:
            cells = list(_cells(self._cells_of(row), columns))
        mark = Segment("* " if self._is_marked(row) else "  ", _PLAIN)
        line = Strip([mark, *cells]).crop_extend(0, width, _PLAIN)
        if index != self._cursor:
            return line
        return line.apply_style(_CURSOR if self.has_focus else _QUIET_CURSOR)

    def _is_marked(self, row: Row) -> bool:
        return all(each.id in self.marks for each in _projects([row])) and not isinstance(
            row, SessionRow
        )


def _projects(rows: Iterable[Row]) -> Iterator[ProjectRow]:
    """Yield the projects of rows, and those of groups."""
    for row in rows:
        if isinstance(row, ProjectRow):
            yield row
        elif isinstance(row, GroupRow):
            yield from row.members


def _cells(item: Mapping[str, Any], columns: Sequence[Fit]) -> Iterator[Segment]:
    for fit in columns:
        column = fit.column
        text = column.text(item, for_terminal=True)
        tone = column.tones.get(text, column.tone)
        cell = _sized(text, fit.cells)
        if column is PATH:
            cell = fitted_path(column.cell(item), fit.cells)
        yield Segment(cell, _TONES[tone] if tone and text else _PLAIN)
        yield Segment(" ", _PLAIN)


class TextView(ScrollView, can_focus=True):
    """Paragraphs of untrusted text, wrapped to the width."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "scroll_up", show=False),
        Binding("j", "scroll_down", show=False),
    ]

    def __init__(self, paragraphs: Iterable[Paragraph] = (), id_: str | None = None) -> None:
        super().__init__(id=id_)
        self._paragraphs = [*paragraphs]
        self._lines: list[Segment] = []

    def show(self, paragraphs: Iterable[Paragraph]) -> None:
        """Show other paragraphs, from their start."""
        self._paragraphs = [*paragraphs]
        self.scroll_to(y=0, animate=False)
        self._wrap()

    def on_resize(self, event: Resize) -> None:
        """Wrap the text to the new width."""
        del event
        self._wrap()

    def _wrap(self) -> None:
        room = max(self.size.width, 1)
        self._lines = [
            piece_line
            for paragraph in self._paragraphs
            for piece_line in _wrapped(paragraph, room)
        ]
        self.virtual_size = Size(self.size.width, len(self._lines))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        index, width = y + round(self.scroll_y), self.size.width
        if index >= len(self._lines):
            return Strip.blank(width)
        return Strip([self._lines[index]]).crop_extend(0, width, _PLAIN)


def _wrapped(paragraph: Paragraph, room: int) -> Iterable[Segment]:
    style = _TONES.get(paragraph.tone, _PLAIN) if paragraph.tone else _PLAIN
    text = safe_label(paragraph.text, limit=None) if paragraph.text else ""
    for line in hanging_indent(_safe_spaced(label_of(paragraph)), text, room):
        yield Segment(line, style)


def _safe_spaced(label: str) -> str:
    """Return a label that is safe, with the spaces at its end."""
    word = label.rstrip(" ")
    return (safe_label(word, limit=None) if word else "") + " " * (len(label) - len(word))


class Word(Struct, frozen=True):
    """A word of a bar. A click on it runs `action`, an action of the app."""

    text: str
    action: str = ""
    tone: Tone | None = None
    style: Style = _PLAIN


class Bar(Widget):
    """One line of words, which `words` returns for a width."""

    DEFAULT_CSS = "Bar { height: 1; }"

    def __init__(self, words: Callable[[int], Sequence[Word]], id_: str) -> None:
        super().__init__(id=id_)
        self._words = words

    def render_line(self, y: int) -> Strip:
        """Draw the line."""
        del y
        segments = []
        for word in self._words(self.size.width):
            style = _TONES.get(word.tone, _PLAIN) if word.tone else _PLAIN
            segments.append(Segment(word.text, style + word.style))
        return Strip(segments).crop_extend(0, self.size.width, _PLAIN)

    async def on_click(self, event: Click) -> None:
        """Run the action of the word. The second click of two may be on another screen's word."""
        if event.chain > 1:
            return
        end = 0
        for word in self._words(self.size.width):
            end += cell_len(word.text)
            if event.x < end:
                if word.action:
                    await self.app.run_action(word.action)
                return
