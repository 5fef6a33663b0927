"""The screen: the lists, and the actions of the keys."""

from __future__ import annotations

import asyncio
from collections.abc import (
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, ClassVar, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.events import Resize
from textual.message import Message
from textual.widgets import Input
from textual.worker import Worker, get_current_worker

from rootsd.cli.answers.decision_flow import Decided, Facts, OrderT, decide
from rootsd.cli.answers.decisions import also_published
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.session_reports import DECISIONS, report_of, report_rows
from rootsd.cli.text.layout import Paragraph, width
from rootsd.cli.text.phrases import pluralize, shorten_home, shown_path
from rootsd.cli.text.projects import path_of
from rootsd.cli.text.theme import Tone
from rootsd.cli.ui import details, orders
from rootsd.cli.ui.bindings import BINDINGS, help_text, key_words
from rootsd.cli.ui.board import SORTS, Board, Grouping, Order, PanelKind, ProjectRow, SessionRow
from rootsd.cli.ui.daemon_turns import DaemonTurns
from rootsd.cli.ui.details_pane import DetailsPane
from rootsd.cli.ui.dialogs import (
    AddRootDialog,
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
from rootsd.cli.ui.plain_terminal import open_in_editor
from rootsd.cli.ui.screen_face import Confirm, ScreenFace
from rootsd.cli.ui.styles import CSS, PLAIN, REVERSE
from rootsd.cli.ui.widgets import Bar, RowList, Word
from rootsd.core.errors import DaemonUnreachable, RootsdError
from rootsd.core.labels import safe_label, safe_text
from rootsd.wire.decisions import DecideRequest, DecisionVerb, RulesQuery
from rootsd.wire.feed import Away, Changed, Connected, FeedEvent, Given, SessionMoved
from rootsd.wire.guard import UndoRequest
from rootsd.wire.projects import ProjectsQuery, RiskReading, WhyQuery
from rootsd.wire.request import ControlRequest
from rootsd.wire.wall import AddRootsRequest

T = TypeVar("T")

_READ_AT_ONCE = 100  # the daemon reads the risks of so many projects in 0.1 s

WIDE = 110
"""From this width on, the three lists are side by side."""

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
    BINDINGS: ClassVar[list[BindingType]] = BINDINGS

    def __init__(self) -> None:
        super().__init__(ansi_color=True)
        self.link = LiveLink(lambda event: self.post_message(Live(event)))
        self.board = Board()
        self.active = PanelKind.PENDING
        self.status = Status("")
        self._incoming = self.board
        self._away: RootsdError | None = None
        self._is_drawing = False
        self._daemon = DaemonTurns(self, self.link)
        self._denying: Worker[object] | None = None
        self._order = Order()
        self._is_reading = False
        self._lists = {kind: RowList(kind, self._cells_of) for kind in PanelKind}
        self._details = DetailsPane(self._daemon.ask)
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
        yield Bar(key_words, "keys")

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
            case Given() | SessionMoved():
                pass  # this is for walls
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
        self._show_rows()
        self._heading.refresh()
        self._read_facts()

    def _show_rows(self) -> None:
        for kind, rows in self._lists.items():
            rows.show(self.board.rows(kind, self._order))

    def _read_facts(self) -> None:
        """Begin to read the risks and owners that the lists show, or that their order needs."""
        if not self._is_reading and self._unread():
            self._is_reading = True
            begin: Job = self._reading_facts
            self.run_worker(begin)

    def _unread(self) -> list[str]:
        """Return the ids of the next projects to read: those on the screen first."""
        rows = [row for each in self._lists.values() for row in each.on_screen]
        if self._order.needs_facts:
            rows += self.board.projects.values()
        ids = dict.fromkeys(row.id for row in rows if row.id not in self.board.facts)
        return list(ids)[:_READ_AT_ONCE]

    async def _reading_facts(self) -> None:
        """Read facts until all are known. After an error, the next change begins again."""
        with suppress(RootsdError):
            while (ids := self._unread()) and self._away is None:
                query = ProjectsQuery("/", refs=tuple(ids), risks=RiskReading.THOROUGH)
                self.board.add_facts(ids, (await self._daemon.ask(query))["items"])
                if self._order.needs_facts:
                    self._show_rows()
                for rows in self._lists.values():
                    rows.refresh()
        self._is_reading = False

    def _heading_words(self, room: int) -> list[Word]:
        tabs = []
        for number, rows in enumerate(self._lists.values()):
            text = f" {rows.words} "
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

    # The lists and the details

    def _cells_of(self, row: ProjectRow | SessionRow) -> Mapping[str, Any]:
        return self.board.cells_of(row)

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
            self._details.show_selected(self._rows, self._why_empty())

    def _mark_active(self) -> None:
        """Show the active list on a narrow screen, which has room for one."""
        for kind, rows in self._lists.items():
            rows.set_class(kind is self.active, "active")

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        """Show the details of another row."""
        self._read_facts()
        self._heading.refresh()
        if message.rows is self._rows:
            self._details.show_selected(self._rows, self._why_empty())

    def _why_empty(self) -> str:
        if self._rows.typed:
            return "The search finds nothing. Esc ends it."
        return _NOTHING[self.active] if self.board.is_complete else ""

    # Commands

    def _run(self, command: Callable[[], Coroutine[Any, Any, None]]) -> Worker[object]:
        """Run a command. Its error goes to the status line."""

        async def reporting() -> None:
            with self._reporting():
                await command()

        begin: Job = reporting
        return self.run_worker(begin)

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
        self._details.show_problem(text if is_long else "")

    def _targets(self) -> list[Target]:
        """Return the marked projects, or the one under the cursor, as the person saw them."""
        if marked := self._rows.marked:
            return marked
        row = self._rows.current
        if not isinstance(row, ProjectRow):
            return []
        return [Target(row, self._details.identity_of(row))]

    def _targets_or_say(self) -> list[Target]:
        targets = self._targets()
        if not targets:
            self._say("Choose a project first.", Tone.ATTENTION)
        return targets

    def action_approve(self) -> None:
        """Approve the selection, after a dialog."""
        if targets := self._targets_or_say():
            order = orders.approval_of(targets)
            dialog = ApproveDialog(targets, self._daemon.read)
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
        face = ScreenFace(self._daemon.read, self._daemon.order, confirm, self._rows, leaving)

        async def deciding() -> None:
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

        return self._run(deciding)

    def action_why(self) -> None:
        """Show the reasons for the verdict on the row under the cursor."""
        row = self._rows.current
        if isinstance(row, ProjectRow):
            self._read_text("Why", WhyQuery(row.path), details.about_why)

    def _read_text(
        self,
        title: str,
        query: ControlRequest,
        describe: Callable[[Mapping[str, Any]], Iterable[Paragraph]],
    ) -> None:
        """Show a text about the answer to a query in a dialog."""
        dialog = TextDialog(title)
        dialog.open_on(self)

        async def read() -> None:
            try:
                answer = await self._daemon.read(query)
                await dialog.show(await asyncio.to_thread(lambda: [*describe(answer)]))
            except RootsdError as error:
                await dialog.fail(error)

        self._run(read)

    def action_rules(self) -> None:
        """Show the rules."""
        self._read_text("Rules", RulesQuery(), details.about_rules)

    def action_sort(self) -> None:
        """Sort the projects by the next column, and after the last one in the usual order."""
        self._reorder(replace(self._order, sort=_next((None, *SORTS), self._order.sort)))

    def action_group(self) -> None:
        """Group the projects by folder, by owner, or not."""
        grouping = _next(tuple(Grouping), self._order.grouping)
        self._reorder(replace(self._order, grouping=grouping))

    def action_denied(self) -> None:
        """Show the denied projects below the pending ones, or hide them."""
        self._reorder(replace(self._order, shows_denied=not self._order.shows_denied))

    def _reorder(self, order: Order) -> None:
        self._order = order
        self._show_rows()
        self._rows.action_move(0)  # the cursor stays on its project, and comes into view
        self._read_facts()
        sort = f"by {order.sort}" if order.sort else "in the usual order"
        denied = ", with the denied ones" if order.shows_denied else ""
        self._say(f"Projects {sort}, {order.grouping.value}{denied}.")

    def action_focus_tag(self) -> None:
        """Ask for the tag to focus on."""
        dialog = FocusDialog(self.board.tags(), self.board.focus)
        dialog.open_on(self)
        self._run(partial(self._focus_tag, dialog))

    async def _focus_tag(self, dialog: FocusDialog) -> None:
        request = await dialog.ask()
        if request is None:
            return
        focus = await self._daemon.order(request)
        count = pluralize(len(focus["roots"]), "root")
        on = f"Focus on {safe_label(focus['tag'])}" if focus["tag"] else "No focus"
        self._say(f"{on}: sessions see {count}.", Tone.GOOD)

    def _program_or_say(self) -> SessionRow | None:
        """Return the program behind the wall that the cursor is on."""
        row = self._rows.current
        if isinstance(row, SessionRow) and row.is_confined:
            return row
        self._say("Choose a program behind the wall first, in Sessions.", Tone.ATTENTION)
        return None

    def action_add_root(self) -> None:
        """Ask for a root, and add it to the program under the cursor."""
        if program := self._program_or_say():
            dialog = AddRootDialog(program.name, self.board.roots())
            dialog.open_on(self)
            self._run(partial(self._add_root, program, dialog))

    async def _add_root(self, program: SessionRow, dialog: AddRootDialog) -> None:
        name = await dialog.ask()
        if name is None:
            return
        answer = await self._daemon.order(AddRootsRequest((name,), program.id))
        (item,) = answer["items"]
        if item["result"] != "added":
            self._say(f"{item['name']}: {item['result']}", Tone.ATTENTION)
            return
        where = shorten_home(item["path"])
        self._say(f"Added {item['name']} to {item['program']}. Tell the agent: {where}", Tone.GOOD)

    def action_report(self) -> None:
        """Show the last report about the program under the cursor."""
        if program := self._program_or_say():

            def describe(log: Mapping[str, Any]) -> list[Paragraph]:
                rows = report_rows(report_of(Invocation(), program.name), log["items"])
                return details.about_report([*rows])

            self._read_text("Report", DECISIONS, describe)

    def action_edit(self) -> None:
        """Open the folder of the row in the editor."""
        row = self._rows.current
        if isinstance(row, ProjectRow):
            with self._reporting():
                open_in_editor(self, row)

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
        self._run(partial(dialog.show, help_text()))

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


def _next(choices: Sequence[T], chosen: T) -> T:
    """Return the choice after the chosen one; after the last one, the first."""
    return choices[(choices.index(chosen) + 1) % len(choices)]


def _outcome(decided: Decided[Any]) -> str:
    """Return a sentence about the effect of a decision."""
    order, answer = decided.order, decided.answer
    if isinstance(order, UndoRequest):
        return f"Undone: {pluralize(len(answer['undone']), 'decision')}."
    verb = "Approved" if order.verb is DecisionVerb.APPROVE else "Denied"
    items = answer["items"]
    if not items:
        return f"{verb} before: {pluralize(len(answer['unchanged']), 'project')}."
    first = shown_path(path_of(items[0]))
    what = pluralize(len(items), "project") if len(items) > 1 else first
    more = len(also_published(answer))
    also = f", and {pluralize(more, 'more folder')}" if more else ""
    warnings = "".join(f" {warning}" for warning in answer["warnings"])
    return f"{verb} {what}{also}. u takes it back until your next decision.{warnings}"
