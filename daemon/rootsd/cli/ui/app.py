"""The screen: the lists, the details, and what the keys do."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, ClassVar

from msgspec import Struct
from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.events import Resize
from textual.message import Message
from textual.widgets import Input

from rootsd.cli import control_client
from rootsd.cli.confirm import with_tokens
from rootsd.cli.formatting import path_of, pluralize, shorten_home
from rootsd.cli.layout import width
from rootsd.cli.theme import Tone
from rootsd.cli.ui import details, orders
from rootsd.cli.ui.board import Board, PanelKind, ProjectRow, Row, SessionRow
from rootsd.cli.ui.details import Paragraph
from rootsd.cli.ui.dialogs import ApproveDialog, ConfirmDialog, FocusDialog, TextDialog
from rootsd.cli.ui.live import Away, Changed, Connected, LiveEvent, LiveLink, Unusable
from rootsd.cli.ui.orders import Target
from rootsd.cli.ui.styles import CSS, PLAIN, REVERSE
from rootsd.cli.ui.widgets import Bar, RowList, TextView, Word
from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label, safe_text
from rootsd.system.ipc import rpc
from rootsd.wire.decisions import DecideRequest, DecisionVerb
from rootsd.wire.follow import SessionRootsQuery
from rootsd.wire.guard import UndoRequest
from rootsd.wire.projects import ProjectsQuery, RiskReading, ShowQuery, WhyQuery
from rootsd.wire.request import ControlRequest

CHALLENGE_NOTICE = "Confirm the command of the screen here, or press ^C:"
WIDE = 110
"""From this width on, the three lists are side by side."""

_HELP = (
    ("arrows, j k", "move"),
    ("Tab, h l, 1 2 3", "go to another list"),
    ("/", "search: type words, then Enter; Esc ends the search"),
    ("space, *", "select a project, or all that are shown"),
    ("a", "approve: name, tags, read-only, duration"),
    ("d", "deny, or revoke an approval"),
    ("u", "undo the last command"),
    ("w", "why: the reasons for a verdict"),
    ("f", "focus: narrow sessions to a tag"),
    ("e", "open the folder in $VISUAL or $EDITOR"),
    ("y", "copy the path"),
    ("q", "quit"),
    ("mouse", "click a row, its start to select it, or a word of the bars"),
)
# In the order in which they are left out on a narrow screen, the last one first.
_KEYS = (
    Word("a approve", "approve"),
    Word("d deny", "deny"),
    Word("␣ select", "mark"),
    Word("/ search", "search"),
    Word("u undo", "undo"),
    Word("w why", "why"),
    Word("? help", "help"),
    Word("q quit", "quit"),
    Word("f focus", "focus_tag"),
    Word("e edit", "edit"),
    Word("y copy", "copy"),
)

_NOTHING: Mapping[PanelKind, str] = {
    PanelKind.PENDING: "No project needs a decision.",
    PanelKind.ROOTS: "There is no root. Approve a pending project to publish it.",
    PanelKind.SESSIONS: "No client is connected.",
}


class Live(Message):
    """An event of the daemon link."""

    def __init__(self, event: LiveEvent) -> None:
        super().__init__()
        self.event = event


class Status(Struct, frozen=True):
    """The line above the keys."""

    text: str
    tone: Tone | None = None


class RootsdScreen(App[RootsdError | None]):
    """The app. It returns an error if the daemon cannot serve it."""

    CSS = CSS
    TITLE: str | None = "rootsd ui"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c", "quit", show=False),
        Binding("ctrl+z", "suspend_process", show=False),
        Binding("a", "approve", show=False),
        Binding("d", "deny", show=False),
        Binding("u", "undo", show=False),
        Binding("w", "why", show=False),
        Binding("e", "edit", show=False),
        Binding("y", "copy", show=False),
        Binding("f", "focus_tag", show=False),
        Binding("slash", "search", show=False),
        Binding("escape", "end_search", show=False),
        Binding("question_mark", "help", show=False),
        Binding("h,left", "go(-1)", show=False),
        Binding("l,right", "go(1)", show=False),
        *(Binding(str(n), f"go_to({n - 1})", show=False) for n in (1, 2, 3)),
    ]

    def __init__(self) -> None:
        super().__init__(ansi_color=True)
        self.link = LiveLink(lambda event: self.post_message(Live(event)))
        self.board = Board()
        self.active = PanelKind.PENDING
        self.status = Status("")
        self._incoming = self.board
        self._away: RootsdError | None = None
        self._is_drawing = False
        self._selected: Row | Sequence[Target] | None = None
        self._is_reading = False
        self._identities: dict[ProjectRow, str] = {}
        self._lists = {kind: RowList(kind) for kind in PanelKind}
        self._details = TextView(id_="details")
        self._details.border_title = "Details"
        self._search = Input(placeholder="words to search for", id="search", compact=True)
        self._heading = Bar(self._heading_words, "heading")
        self._status_bar = Bar(self._status_words, "status")

    def compose(self) -> ComposeResult:
        """Make the widgets."""
        yield self._heading
        with Horizontal(id="lists"):
            yield from self._lists.values()
        yield self._details
        yield self._search
        yield self._status_bar
        yield Bar(self._key_words, "keys")

    def on_mount(self) -> None:
        """Begin to follow the daemon."""
        self._rows.focus()
        self.link.start()

    def on_unmount(self) -> None:
        """End the connections."""
        self.link.close()

    def on_resize(self, event: Resize) -> None:
        """Put the lists side by side, or one above the details."""
        self.set_class(event.size.width < WIDE, "narrow")

    # What the daemon sends

    def on_live(self, message: Live) -> None:
        """Handle an event of the link."""
        match message.event:
            case Connected():
                self._incoming, self._away = Board(), None
            case Changed(update):
                self._incoming.apply(update)
                # After a restart of the daemon, the old lists stay until the new ones are whole.
                if self._incoming.is_complete or not self.board.projects:
                    self.board = self._incoming
            case Away(why):
                self._away = why
            case Unusable(why):
                self.exit(why)
        if not self._is_drawing:
            # Events that have arrived by then are drawn together.
            self._is_drawing = True
            self.call_later(self._draw)

    def _draw(self) -> None:
        self._is_drawing = False
        for kind, rows in self._lists.items():
            rows.show(self.board.rows(kind))
        self._heading.refresh()

    def _heading_words(self, room: int) -> list[Word]:
        tabs = []
        for number, rows in enumerate(self._lists.values()):
            text = f" {rows.kind.value} {rows.total:,} "
            style = REVERSE if rows.kind is self.active else PLAIN
            tabs.append(Word(text, f"go_to({number})", style=style))
        focus = f"focus: {safe_label(self.board.focus)}" if self.board.focus else ""
        room -= sum(len(word.text) for word in tabs) + 1
        states = ("daemon away, connecting again", "away") if self._away else (focus,)
        state = next((each for each in states if width(each) <= room), "")
        room = max(room - width(state), 0)
        tone = Tone.REFUSED if self._away else Tone.GOOD
        return [*tabs, Word(" " * room), Word(state, "focus_tag" if focus else "", tone)]

    def _status_words(self, _: int) -> list[Word]:
        return [Word(" "), Word(self.status.text, tone=self.status.tone)]

    def _key_words(self, room: int) -> list[Word]:
        shown: list[Word] = []
        for word in _KEYS:
            cells = sum(len(each.text) for each in shown) + len(word.text) + 2
            if cells <= room:
                key, _, rest = word.text.partition(" ")
                shown += [
                    Word(key, word.action, Tone.COMMAND),
                    Word(f" {rest}  ", word.action),
                ]
        return shown

    # The lists and the details

    @property
    def _rows(self) -> RowList:
        """The active list."""
        return self._lists[self.active]

    def on_descendant_focus(self) -> None:
        """Make the list that has the focus the active one."""
        if isinstance(self.focused, RowList):
            self.active = self.focused.kind
            self._mark_active()
            self._heading.refresh()
            self._show_details()

    def _mark_active(self) -> None:
        """Show the active list on a narrow screen, which has room for one."""
        for kind, rows in self._lists.items():
            rows.set_class(kind is self.active, "active")

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        """Show the details of another row."""
        if message.rows is self._rows:
            self._show_details()

    def _show_details(self) -> None:
        """Show the marked projects, or the row under the cursor, and read its details."""
        marked = self._rows.marked
        selected = marked or self._rows.current
        if selected is not None and selected == self._selected:
            return
        self._selected = selected
        view = self._details
        match selected:
            case None:
                view.show([Paragraph("", self._why_empty())])
            case ProjectRow():
                view.show(details.about_row(selected, "reading the folder"))
            case SessionRow():
                view.show(details.about_session(selected, ()))
            case _:
                view.show(details.about_marked([target.row for target in marked]))
        if isinstance(selected, ProjectRow | SessionRow) and not self._is_reading:
            self._is_reading = True
            self.run_worker(self._read_details())

    def _why_empty(self) -> str:
        if self._rows.typed:
            return "The search finds nothing. Esc ends it."
        return _NOTHING[self.active] if self.board.is_complete else ""

    async def _read_details(self) -> None:
        """Read the details of the selected row. If it changes meanwhile, read again."""
        row = None
        while row is not self._selected and isinstance(self._selected, ProjectRow | SessionRow):
            row = self._selected
            try:
                paragraphs = await self._details_of(row)
            except RootsdError as error:
                paragraphs = [Paragraph("", error.message, Tone.BAD)]
                if isinstance(row, ProjectRow):
                    paragraphs += details.about_row(row, "the folder could not be read")
            if row is self._selected:
                self._details.show(paragraphs)
        self._is_reading = False

    async def _details_of(self, row: ProjectRow | SessionRow) -> list[Paragraph]:
        if isinstance(row, SessionRow):
            roots = await self._ask(SessionRootsQuery(row.id))
            return details.about_session(row, roots["items"])
        (item,) = (await self._ask(ShowQuery("/", (row.id,))))["items"]
        self._identities = {row: item.get("identity", "")}
        return details.about_project(item)

    # Commands

    async def _ask(self, request: ControlRequest) -> dict[str, Any]:
        """Send a request in a thread. Raises RootsdError."""
        return await asyncio.to_thread(self.link.call, request)

    async def _order(self, order: ControlRequest) -> dict[str, Any]:
        """Send an order. If the guard asks for a word, leave the screen for it.

        The word of the first challenge was drawn over the screen. So the order is sent again, and
        the daemon shows another word on the plain terminal.
        """
        try:
            return await self._ask(order)
        except rpc.DaemonError as error:
            if error.challenge is None:
                raise
            with self._plain_terminal(signal.default_int_handler):
                sys.stdout.write(f"{CHALLENGE_NOTICE}\n")
                sys.stdout.flush()
                return control_client.call(order)

    def _run(self, command: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a command. Its error goes to the status line."""

        async def reporting() -> None:
            try:
                await command()
            except RootsdError as error:
                remedy = f"; try: {error.remedy}" if error.remedy else ""
                self._say(f"{error.message}{remedy}", Tone.BAD)
            except KeyboardInterrupt:
                self._say("Nothing was changed.", Tone.BAD)

        self.run_worker(reporting())

    def _say(self, text: str, tone: Tone | None = None) -> None:
        label = safe_text(text)  # which keeps the escapes of the daemon
        self.status = Status(label, tone)
        self._status_bar.refresh()
        if tone is Tone.BAD and width(label) >= self.size.width:
            self.push_screen(TextDialog("Problem", [Paragraph("", text, tone)]))

    @contextmanager
    def _plain_terminal(
        self, on_interrupt: Callable[[int, FrameType | None], Any] | signal.Handlers
    ) -> Iterator[None]:
        """Leave the screen, so that another program or a question has the terminal."""
        before = signal.getsignal(signal.SIGINT)
        failure: RootsdError | KeyboardInterrupt | None = None
        try:
            with self.suspend():
                signal.signal(signal.SIGINT, on_interrupt)
                try:
                    yield
                except (RootsdError, KeyboardInterrupt) as error:
                    failure = (
                        error  # raised below: an error within `suspend` leaves the screen off
                    )
                finally:
                    signal.signal(signal.SIGINT, before)
        except SuspendNotSupported as error:
            raise RootsdError("this needs a terminal of its own", "rootsd review") from error
        if failure is not None:
            raise failure

    def _targets(self) -> list[Target]:
        """Return the marked projects, or the one under the cursor, as the person saw them."""
        if marked := self._rows.marked:
            return marked
        row = self._rows.current
        if not isinstance(row, ProjectRow):
            return []
        return [Target(row, self._identities.get(row, row.identity))]

    def _targets_or_say(self) -> list[Target]:
        targets = self._targets()
        if not targets:
            self._say("Choose a project first.", Tone.ATTENTION)
        return targets

    def action_approve(self) -> None:
        """Approve the selection, after a dialog."""
        if targets := self._targets_or_say():
            self._run(lambda: self._approve(targets))

    async def _approve(self, targets: list[Target]) -> None:
        plan = await self._ask(orders.plan_of(targets))
        order = await self.push_screen_wait(
            ApproveDialog(targets, plan, await self._risks_of(targets))
        )
        if order is not None:
            # The dialog listed the worktrees, so with those that were chosen, this is no surprise.
            again = await self._ask(orders.as_plan(order)) if order.worktrees else plan
            await self._decide(with_tokens(order, again))

    async def _risks_of(self, targets: list[Target]) -> list[Paragraph]:
        """Read what the person should look at before they approve the targets."""
        ids = tuple(target.row.id for target in targets)
        if len(ids) == 1:
            shown = await self._ask(ShowQuery("/", ids))
            return [risk for item in shown["items"] for risk in details.risks_of(item)]
        self._say(f"Reading {len(ids):,} folders")
        query = ProjectsQuery("/", refs=ids, risks=RiskReading.THOROUGH)
        risks = [*details.risks_of_several(await self._ask(query))]
        self._say("")
        return risks

    def action_deny(self) -> None:
        """Deny the selection. Several projects need a yes."""
        if targets := self._targets_or_say():
            self._run(lambda: self._deny([target.row for target in targets]))

    async def _deny(self, rows: list[ProjectRow]) -> None:
        order = orders.denial(rows)
        plan = await self._ask(orders.as_plan(order))
        listed = plan.get("confirmation")
        if listed is None and len(rows) == 1:
            await self._decide(order)
            return
        count = len(rows) if listed is None else len(listed["projects"])
        about = [*details.about_affected(plan)] or details.about_marked(rows)
        if await self.push_screen_wait(ConfirmDialog(f"Deny {count:,} projects?", about)):
            await self._decide(with_tokens(order, plan))

    async def _decide(self, order: DecideRequest) -> None:
        decided = await self._order(order)
        for rows in self._lists.values():
            rows.unmark()
        self._say(_outcome(order, decided), Tone.GOOD)

    def action_undo(self) -> None:
        """Undo the last command, after a yes."""
        self._run(self._undo)

    async def _undo(self) -> None:
        order = UndoRequest()
        plan = await self._ask(orders.as_plan(order))
        if await self.push_screen_wait(ConfirmDialog("Undo this?", details.about_undo(plan))):
            undone = await self._order(with_tokens(order, plan))
            self._say(f"Undone: {pluralize(len(undone['undone']), 'decision')}.", Tone.GOOD)

    def action_why(self) -> None:
        """Show the reasons for the verdict on the row under the cursor."""
        row = self._rows.current
        if isinstance(row, ProjectRow):
            self._run(lambda: self._why(row))

    async def _why(self, row: ProjectRow) -> None:
        why = await self._ask(WhyQuery(row.path))
        await self.push_screen_wait(TextDialog("Why", details.about_why(why)))

    def action_focus_tag(self) -> None:
        """Ask for the tag to focus on."""
        self._run(self._focus_tag)

    async def _focus_tag(self) -> None:
        request = await self.push_screen_wait(FocusDialog(self.board.tags(), self.board.focus))
        if request is not None:
            focus = await self._order(request)
            count = pluralize(len(focus["roots"]), "root")
            on = f"Focus on {safe_label(focus['tag'])}" if focus["tag"] else "No focus"
            self._say(f"{on}: sessions see {count}.", Tone.GOOD)

    def action_edit(self) -> None:
        """Open the folder of the row in the editor."""
        row = self._rows.current
        if isinstance(row, ProjectRow):
            self._run(lambda: self._edit(row))

    async def _edit(self, row: ProjectRow) -> None:
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if not editor:
            raise RootsdError("neither VISUAL nor EDITOR is set", "export EDITOR=vi")
        if not row.path.startswith("/"):
            raise RootsdError("this root is no folder")
        with self._plain_terminal(signal.SIG_IGN):
            _run_editor(editor, row.path)

    def action_copy(self) -> None:
        """Copy the path of the row to the clipboard of the terminal."""
        row = self._rows.current
        if not isinstance(row, ProjectRow):
            return
        try:
            row.path.encode()
        except UnicodeEncodeError:
            self._say("This path is not UTF-8, and cannot be copied.", Tone.BAD)
            return
        self.copy_to_clipboard(row.path)
        self._say(f"Copied {safe_label(row.path, limit=None)}")

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(TextDialog("Keys", [Paragraph(f"{k:<18}", v) for k, v in _HELP]))

    # Moving and searching

    def action_go(self, by: int) -> None:
        """Go to the list that is so many places to the right."""
        kinds = [*PanelKind]
        self.action_go_to((kinds.index(self.active) + by) % len(kinds))

    def action_go_to(self, number: int) -> None:
        """Go to a list by its place."""
        self.active = [*PanelKind][number]
        self._mark_active()  # first, because a hidden list takes no focus
        self._rows.focus()

    def action_mark(self) -> None:
        """Select the row under the cursor."""
        self._rows.action_mark()

    def action_search(self) -> None:
        """Ask for the words to search for."""
        self._search.value = self._rows.typed
        self._search.add_class("shown")
        self._search.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search while the person types."""
        if event.input is self._search and self._search.has_class("shown"):
            self._rows.search(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keep the search, and go back to the list."""
        if event.input is self._search:
            self._leave_search()

    def action_end_search(self) -> None:
        """Show all rows again, or remove the marks if there is no search."""
        if self._rows.typed or self._search.has_class("shown"):
            self._leave_search()
            self._rows.search("")
        else:
            self._rows.unmark()

    def _leave_search(self) -> None:
        self._search.remove_class("shown")
        self._rows.focus()


def _run_editor(editor: str, folder: str) -> None:
    """Run the command line `editor` on a folder, and wait for it. Raises RootsdError."""
    try:
        # The person chose this program, and the folder is one argument.
        done = subprocess.run([*shlex.split(editor), folder], check=False)  # noqa: S603
    except (OSError, ValueError) as error:
        raise RootsdError(f"the editor cannot be started: {error}") from error
    if done.returncode:
        raise RootsdError(f"the editor ended with status {done.returncode}")


def _outcome(order: DecideRequest, decided: Mapping[str, Any]) -> str:
    """Return a sentence about the effect of a decision."""
    verb = "Approved" if order.verb is DecisionVerb.APPROVE else "Denied"
    items = decided["items"]
    if not items:
        return f"{verb} before: {pluralize(len(decided['unchanged']), 'project')}."
    first = safe_label(shorten_home(path_of(items[0])), limit=None)
    what = pluralize(len(items), "project") if len(items) > 1 else first
    named = {path_of(item) for item in (*items, *decided["unchanged"])}
    more = sum(path not in named for path in decided.get("published", ()))
    also = f", and {more} more folders with them" if more else ""
    warnings = "".join(f" {warning}" for warning in decided["warnings"])
    return f"{verb} {what}{also}. u takes it back.{warnings}"
