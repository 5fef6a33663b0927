"""The screen: the lists, the details, and what the keys do."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, ClassVar

from msgspec import Struct
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.events import Resize
from textual.message import Message
from textual.widgets import Input
from textual.worker import Worker, get_current_worker

from rootsd.cli.answers import control_client
from rootsd.cli.answers.decision_flow import Decided, Facts, OrderT, decide
from rootsd.cli.answers.decisions import also_published
from rootsd.cli.text.layout import width
from rootsd.cli.text.phrases import pluralize, shorten_home
from rootsd.cli.text.projects import path_of
from rootsd.cli.text.theme import Tone
from rootsd.cli.ui import details, orders
from rootsd.cli.ui.board import Board, PanelKind, ProjectRow, Row, SessionRow
from rootsd.cli.ui.details import Paragraph
from rootsd.cli.ui.dialogs import (
    ApproveDialog,
    ConfirmDialog,
    Dialog,
    FocusDialog,
    TextDialog,
    described,
)
from rootsd.cli.ui.live import LiveLink
from rootsd.cli.ui.ordered_input import Job, OrderedInputApp
from rootsd.cli.ui.orders import Target
from rootsd.cli.ui.screen_face import Confirm, ScreenFace
from rootsd.cli.ui.styles import CSS, PLAIN, REVERSE
from rootsd.cli.ui.widgets import Bar, RowList, TextView, Word
from rootsd.core.errors import DaemonUnreachable, RootsdError
from rootsd.core.labels import safe_label, safe_text
from rootsd.link import rpc
from rootsd.wire.decisions import DecideRequest, DecisionVerb
from rootsd.wire.feed import Away, Changed, Connected, FeedEvent
from rootsd.wire.follow import SessionRootsQuery
from rootsd.wire.guard import UndoRequest
from rootsd.wire.projects import ShowQuery, WhyQuery
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

    def __init__(self, event: FeedEvent) -> None:
        super().__init__()
        self.event = event


class Status(Struct, frozen=True):
    """The line above the keys."""

    text: str
    tone: Tone | None = None


class RootsdScreen(OrderedInputApp[RootsdError | None]):
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
        self._turn = asyncio.Lock()  # commands reach the daemon in the order of their keys
        self._shown: Sequence[Paragraph] = ()
        self._problem = ""
        self._denying: Worker[object] | None = None
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
        self.screen.set_focus(self._rows)
        self.link.start()

    def on_unmount(self) -> None:
        """End the connections."""
        self.link.close()

    def on_resize(self, event: Resize) -> None:
        """Put the lists side by side, or one above the details."""
        self.set_class(event.size.width < WIDE, "narrow")

    # What a person types

    @property
    def takes_input(self) -> bool:
        """Whether the screen that is shown can take the next event."""
        if isinstance(self.screen, Dialog):
            return self.screen.is_ready
        return self._denying is None

    def on_dialog_ready(self) -> None:
        """Hand over what was typed for the dialog."""
        self.wake()

    def on_approve_dialog_bad_field(self) -> None:
        """Drop what was typed ahead, for a list that is not there yet."""
        self.drop_burst()

    def on_approve_dialog_unexpected(self) -> None:
        """Drop what was typed ahead, for an approval of one project and for one session."""
        self.drop_burst()

    # What the daemon sends

    def on_live(self, message: Live) -> None:
        """Handle an event of the link."""
        match message.event:
            case Connected():
                self._incoming, self._away = Board(), None
            case Changed(change):
                self._incoming.apply(change)
                # After a restart of the daemon, the old lists stay until the new ones are whole.
                if self._incoming.is_complete or not self.board.projects:
                    self.board = self._incoming
            case Away(why):
                self._away = why
                if not isinstance(why, DaemonUnreachable):  # it is too old, or refuses
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
        match selected:
            case None:
                self._describe([Paragraph("", self._why_empty())])
            case ProjectRow():
                self._describe(details.about_row(selected, "reading the folder"))
            case SessionRow():
                self._describe(details.about_session(selected, ()))
            case _:
                self._describe(details.about_marked([target.row for target in marked]))
        if isinstance(selected, ProjectRow | SessionRow) and not self._is_reading:
            self._is_reading = True
            begin: Job = self._read_details
            self.run_worker(begin)

    def _describe(self, paragraphs: Sequence[Paragraph]) -> None:
        """Show these details, below a problem that has no room in the status line."""
        self._shown = paragraphs
        problem = [Paragraph("problem", self._problem, Tone.BAD)] if self._problem else []
        self._details.show([*problem, *paragraphs])

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
                self._describe(paragraphs)
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

    async def _read(self, request: ControlRequest) -> dict[str, Any]:
        """Send a request after the commands before it. Raises RootsdError."""
        async with self._turn:
            return await self._ask(request)

    async def _order(self, order: ControlRequest) -> dict[str, Any]:
        """Send an order in its turn. If the guard asks for a word, leave the screen for it.

        The word of the first challenge was drawn over the screen. So the order is sent again, and
        the daemon shows another word on the plain terminal.
        """
        async with self._turn:
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
            with self._reporting():
                await command()

        begin: Job = reporting
        self.run_worker(begin)

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except RootsdError as error:
            self._say(described(error), Tone.BAD)
        except KeyboardInterrupt:
            self._say("Nothing was changed.", Tone.BAD)

    def _say(self, text: str, tone: Tone | None = None) -> None:
        """Show a text in the status line, and a long problem also above the details.

        No dialog opens by itself, because it would get the next keys.
        """
        label = safe_text(text)  # which keeps the escapes of the daemon
        self.status = Status(label, tone)
        self._status_bar.refresh()
        is_long = tone is Tone.BAD and width(label) >= self.size.width
        if is_long or self._problem:
            self._problem = text if is_long else ""
            self._describe(self._shown)

    @contextmanager
    def _plain_terminal(
        self, on_interrupt: Callable[[int, FrameType | None], Any] | signal.Handlers
    ) -> Iterator[None]:
        """Leave the screen, so that another program or a question has the terminal.

        What was typed ahead is dropped, because it may have been meant for that program.
        """
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
                    self.drop_typed_ahead()
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
            order = orders.approval_of(targets)
            dialog = ApproveDialog(targets, self._read)
            dialog.open_on(self)
            leaving = () if self._rows.kind is PanelKind.ROOTS else order.refs
            self._decide(order, dialog, dialog.confirm, leaving)

    def action_deny(self) -> None:
        """Deny the selection. Several projects need a yes."""
        if targets := self._targets_or_say():
            rows = [target.row for target in targets]
            order = DecideRequest(DecisionVerb.DENY, cwd="/", refs=tuple(row.id for row in rows))
            describe = partial(details.about_denial, rows)
            dialog = ConfirmDialog[DecideRequest]("Deny these projects?", describe)
            if len(rows) > 1:
                dialog.open_on(self)
                self._decide(order, dialog, dialog.confirm, order.refs)
            else:
                confirm = partial(self._confirm_denial, dialog)
                self._denying = self._decide(order, dialog, confirm, order.refs)

    async def _confirm_denial(
        self, dialog: ConfirmDialog[DecideRequest], facts: Facts[DecideRequest]
    ) -> DecideRequest | None:
        """Ask about the denial of one project only if it decides about others, too.

        Keys wait until it is known whether there is a question. Nobody expects it, so it drops
        them.
        """
        if facts.confirmation is not None:
            self.drop_burst()
            dialog.open_on(self)
        self._stop_denying()
        return facts.order if facts.confirmation is None else await dialog.confirm(facts)

    def _stop_denying(self) -> None:
        self._denying = None
        self.wake()

    def action_undo(self) -> None:
        """Undo the last command, after a yes."""
        dialog = ConfirmDialog[UndoRequest]("Undo this?", details.about_undo)
        dialog.open_on(self)
        self._decide(UndoRequest(), dialog, dialog.confirm)

    def _decide(
        self,
        order: OrderT,
        dialog: Dialog[Any],
        confirm: Confirm[OrderT],
        leaving: Collection[str] | None = None,
    ) -> Worker[object]:
        """Begin a decision. An error goes to its dialog until the person has answered that."""
        face = ScreenFace(self._read, self._order, confirm, self._rows, leaving)

        async def deciding() -> None:
            with self._reporting():
                try:
                    decided = await decide(face, order)
                except RootsdError as error:
                    if face.is_confirmed or not dialog.is_opened:
                        raise
                    await dialog.fail(error)
                    return
                finally:
                    if self._denying is get_current_worker():
                        self._stop_denying()
                if decided is not None:
                    self._say(_outcome(decided), Tone.GOOD)

        begin: Job = deciding
        return self.run_worker(begin)

    def action_why(self) -> None:
        """Show the reasons for the verdict on the row under the cursor."""
        row = self._rows.current
        if isinstance(row, ProjectRow):
            dialog = TextDialog("Why")
            dialog.open_on(self)
            self._run(partial(self._why, row, dialog))

    async def _why(self, row: ProjectRow, dialog: TextDialog) -> None:
        try:
            await dialog.show(details.about_why(await self._read(WhyQuery(row.path))))
        except RootsdError as error:
            await dialog.fail(error)

    def action_focus_tag(self) -> None:
        """Ask for the tag to focus on."""
        dialog = FocusDialog(self.board.tags(), self.board.focus)
        dialog.open_on(self)
        self._run(partial(self._focus_tag, dialog))

    async def _focus_tag(self, dialog: FocusDialog) -> None:
        request = await dialog.ask()
        if request is None:
            return
        focus = await self._order(request)
        count = pluralize(len(focus["roots"]), "root")
        on = f"Focus on {safe_label(focus['tag'])}" if focus["tag"] else "No focus"
        self._say(f"{on}: sessions see {count}.", Tone.GOOD)

    def action_edit(self) -> None:
        """Open the folder of the row in the editor."""
        row = self._rows.current
        if isinstance(row, ProjectRow):
            with self._reporting():
                self._edit(row)

    def _edit(self, row: ProjectRow) -> None:
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
        dialog = TextDialog("Keys")
        dialog.open_on(self)
        keys = [Paragraph(f"{key:<18}", effect) for key, effect in _HELP]
        self._run(partial(dialog.show, keys))

    # Moving and searching

    def action_go(self, by: int) -> None:
        """Go to the list that is so many places to the right."""
        kinds = [*PanelKind]
        self.action_go_to((kinds.index(self.active) + by) % len(kinds))

    def action_go_to(self, number: int) -> None:
        """Go to a list by its place."""
        self.active = [*PanelKind][number]
        self._mark_active()
        self.screen.set_focus(self._rows)

    def action_mark(self) -> None:
        """Select the row under the cursor."""
        self._rows.action_mark()

    def action_search(self) -> None:
        """Ask for the words to search for."""
        self._search.value = self._rows.typed
        self._search.add_class("shown")
        self.screen.set_focus(self._search)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search while the person types."""
        if event.input is self._search and self._search.has_class("shown"):
            self._rows.search(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keep the search, and go back to the list."""
        if event.input is self._search:
            self._leave_search()

    def action_end_search(self) -> None:
        """Cancel a denial, or end the search, or remove the marks."""
        if self._denying is not None:
            self._denying.cancel()
            self._say("Nothing was changed.", Tone.BAD)
        elif self._rows.typed or self._search.has_class("shown"):
            self._leave_search()
            self._rows.search("")
        else:
            self._rows.unmark()

    def _leave_search(self) -> None:
        self.screen.set_focus(self._rows)  # first, because the focus leaves a hidden widget
        self._search.remove_class("shown")


def _run_editor(editor: str, folder: str) -> None:
    """Run the command line `editor` on a folder, and wait for it. Raises RootsdError."""
    try:
        # The person chose this program, and the folder is one argument.
        done = subprocess.run([*shlex.split(editor), folder], check=False)  # noqa: S603
    except (OSError, ValueError) as error:
        raise RootsdError(f"the editor cannot be started: {error}") from error
    if done.returncode:
        raise RootsdError(f"the editor ended with status {done.returncode}")


def _outcome(decided: Decided[Any]) -> str:
    """Return a sentence about the effect of a decision."""
    order, answer = decided.order, decided.answer
    if isinstance(order, UndoRequest):
        return f"Undone: {pluralize(len(answer['undone']), 'decision')}."
    verb = "Approved" if order.verb is DecisionVerb.APPROVE else "Denied"
    items = answer["items"]
    if not items:
        return f"{verb} before: {pluralize(len(answer['unchanged']), 'project')}."
    first = safe_label(shorten_home(path_of(items[0])), limit=None)
    what = pluralize(len(items), "project") if len(items) > 1 else first
    more = len(also_published(answer))
    also = f", and {pluralize(more, 'more folder')}" if more else ""
    warnings = "".join(f" {warning}" for warning in answer["warnings"])
    return f"{verb} {what}{also}. u takes it back.{warnings}"
