"""The dialogs: approve, confirm, focus, and text to read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Checkbox, Input, Label

from rootsd.cli.answers.decisions import confirmable_git_directories, confirmable_worktrees
from rootsd.cli.text.projects import describe_session_request
from rootsd.cli.text.theme import Tone
from rootsd.cli.ui.approval_facts import ApprovalFacts
from rootsd.cli.ui.details import Paragraph, about_plan
from rootsd.cli.ui.ordered_input import Job
from rootsd.cli.ui.orders import ApprovalForm, BadInput, Target, approval, effect_of
from rootsd.cli.ui.widgets import Bar, TextView, Word
from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label
from rootsd.wire.decisions import DecideRequest, FocusTarget, SetFocusRequest
from rootsd.wire.request import ControlRequest

Facts = TypeVar("Facts")
Reader = Callable[[], Awaitable[Facts]]
"""Reads what a dialog shows. Raises RootsdError."""

_CLOSE = Word(" Esc close ", "screen.dismiss(None)", Tone.COMMAND)
_READING = Paragraph("", "Reading. Keys that you type now wait. Esc cancels.")


def _keys(*words: Word) -> Bar:
    return Bar(lambda _: [word for each in words for word in (each, Word("  "))], "dialog-keys")


class Dialog(ModalScreen[None], Generic[Facts]):
    """A dialog that opens at once, and then reads what it shows.

    It takes no input before `is_ready`, and posts `Ready` then. If the reading fails, it shows the
    error and stays, because the rest of what a person typed is meant for the dialog. An answer is
    given in a call, before the dialog closes, so it comes before the next key.
    """

    AUTO_FOCUS: ClassVar[str | None] = ""

    class Ready(Message):
        """The dialog takes input from now on."""

    def __init__(
        self, title: str, read: Reader[Facts], show: Callable[[Facts], Awaitable[None]]
    ) -> None:
        """`show` shows what `read` returned."""
        super().__init__()
        self._title, self._read, self._show_facts = title, read, show
        self.is_ready = False
        self.has_failed = False

    def compose(self) -> ComposeResult:
        """Make the widgets that need no facts."""
        with Vertical(classes="dialog large"):
            yield Label(self._title, classes="title", markup=False)
            yield TextView([_READING])
            yield Vertical(id="fields")
            yield _keys(*self.key_words())

    def on_mount(self) -> None:
        """Begin to read."""
        begin: Job = self._fill
        self.run_worker(begin)

    async def _fill(self) -> None:
        try:
            facts = await self._read()
            if self.is_current:  # otherwise, Escape has closed it
                await self._show_facts(facts)
        except RootsdError as error:
            self.has_failed = True
            if self.is_current:
                problem = Paragraph("problem", described(error), Tone.BAD)
                self.query_one(TextView).show([problem])
        if not self.is_current:
            return
        self.set_focus(self.query_one(TextView) if self.has_failed else self.first_field())
        self.is_ready = True
        self.post_message(self.Ready())

    def key_words(self) -> Sequence[Word]:
        """Return the words of the last line."""
        return (_CLOSE,)

    def first_field(self) -> Widget:
        """Return the widget that gets the focus."""
        return self.query_one(TextView)


def described(error: RootsdError) -> str:
    """Return the message of an error, with the command that helps."""
    return f"{error.message}; try: {error.remedy}" if error.remedy else error.message


class TextDialog(Dialog[Sequence[Paragraph]]):
    """Text to read. Any of `q`, Enter and Escape closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss(None)", show=False)
    ]

    def __init__(self, title: str, read: Reader[Sequence[Paragraph]]) -> None:
        super().__init__(title, read, self._show_text)

    async def _show_text(self, text: Sequence[Paragraph]) -> None:
        self.query_one(TextView).show(text)


Order = TypeVar("Order", bound=ControlRequest)


class Question(Struct, Generic[Order], frozen=True):
    """A question about `order`, which is confirmed for what it lists."""

    title: str
    paragraphs: Sequence[Paragraph]
    order: Order


class ConfirmDialog(Dialog[Question[Order]]):
    """A question that `y` or Enter answers with yes. Escape and `n` answer it with no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "yes", show=False),
        Binding("escape,n,q", "dismiss(None)", show=False),
    ]

    def __init__(
        self, title: str, read: Reader[Question[Order]], confirmed: Callable[[Order], None]
    ) -> None:
        super().__init__(title, read, self._show_question)
        self._confirmed = confirmed
        self._question: Question[Order] | None = None

    def key_words(self) -> Sequence[Word]:
        """Return the words of the last line."""
        return (
            Word(" y yes ", "screen.yes", Tone.COMMAND),
            Word(" n no ", "screen.dismiss(None)", Tone.COMMAND),
        )

    async def _show_question(self, question: Question[Order]) -> None:
        self._question = question
        self.query_one(".title", Label).update(question.title)
        self.query_one(TextView).show(question.paragraphs)

    def action_yes(self) -> None:
        """Answer with yes, unless there is nothing to confirm."""
        if not self.is_ready:
            return
        if self._question is not None:
            self._confirmed(self._question.order)
        self.dismiss()


class Tick(Checkbox, inherit_bindings=False):
    """A checkbox that says its state in a letter, and not only in a color. Space toggles it."""

    BUTTON_INNER = " "
    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "toggle_button", show=False)]

    def on_mount(self) -> None:
        """Draw the letter of the first value."""
        self.watch_value()

    def watch_value(self) -> None:
        """Draw the letter of the new value."""
        self.BUTTON_INNER = "x" if self.value else " "
        super().watch_value()


class Choice(Tick):
    """A checkbox. Checking one clears the others in its group."""


class ApproveDialog(Dialog[ApprovalFacts]):
    """The fields of an approval, below its plan. Enter approves, Escape changes nothing.

    A line above the keys says for how long Enter approves, and whether for writing. If several
    sessions request the folder, Enter approves nothing before the person has chosen.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", show=False),
        Binding("enter", "approve", show=False),
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    class BadField(Message):
        """Enter approved nothing, because a field is wrong."""

    class Unexpected(Message):
        """The approval is about more than the person chose, or asks who gets the folder."""

    def __init__(
        self,
        targets: Sequence[Target],
        read: Reader[ApprovalFacts],
        approved: Callable[[DecideRequest, Mapping[str, Any]], None],
    ) -> None:
        super().__init__(_title(len(targets)), read, self._show_plan)
        self._targets, self._approved = targets, approved
        self._plan: Mapping[str, Any] = {}
        self._asking: Sequence[Mapping[str, Any]] = ()

    def key_words(self) -> Sequence[Word]:
        """Return the words of the last line."""
        return (
            Word(" Enter approve ", "screen.approve", Tone.COMMAND),
            Word(" Tab next field ", "app.focus_next", Tone.COMMAND),
            Word(" Esc cancel ", "screen.dismiss(None)", Tone.COMMAND),
        )

    async def _show_plan(self, facts: ApprovalFacts) -> None:
        """Show the plan, and make the fields that have a use in it."""
        self._plan, self._asking = facts.plan, facts.asking
        asking = [
            Paragraph(f"session {number}", describe_session_request(each), Tone.ATTENTION)
            for number, each in enumerate(facts.asking, 1)
        ]
        self.query_one(TextView).show([*asking, *facts.risks, *about_plan(facts.plan)])
        if asking or facts.has_more_than(self._targets):
            self.post_message(self.Unexpected())
        await self.query_one("#fields").mount(*self._fields())
        self._show_effect()

    def _fields(self) -> Iterator[Widget]:
        is_answer = any(target.row.request for target in self._targets)
        if len(self._targets) == 1:
            yield _field("name", "as proposed")
        yield _field("tags", "none")
        yield _field("duration", "8h, 2d; empty: for ever")
        yield Tick("read only", value=is_answer, id="read-only", compact=True)
        for number, each in enumerate(self._asking, 1):
            by = safe_label(each["by"])
            yield Choice(
                Content(f"only for session {number}: {by}"), name=each["session"], compact=True
            )
        if self._asking:
            yield Choice("for every session, until you revoke it", id="always", compact=True)
        elif is_answer:
            yield Tick("for all sessions, not only this one", id="always", compact=True)
        if confirmable_worktrees(self._plan):
            yield Tick("also its older worktrees", id="worktrees", compact=True)
        if confirmable_git_directories(self._plan):
            yield Tick("also the Git data of the other checkout", id="git", compact=True)
        if self._plan.get("incomplete"):
            yield Tick("publish it although it is incomplete", id="incomplete", compact=True)
        yield Label("", id="effect", markup=False)

    def first_field(self) -> Widget:
        """Return the tags, since most approvals need no other field, or the choice to make."""
        if self._asking:
            return self.query(Choice).first()
        return self.query_one("#tags", Input)

    def on_input_changed(self) -> None:
        """Say what Enter does now."""
        self._show_effect()

    def on_checkbox_changed(self, event: Checkbox.Changed) -> None:
        """Take back another choice, and say what Enter does now."""
        if isinstance(event.checkbox, Choice) and event.value:
            for other in self.query(Choice):
                other.value = other is event.checkbox
        self._show_effect()

    def _show_effect(self) -> None:
        try:
            effect = f"Enter approves: {effect_of(self._targets, self._plan, self._form())}"
            is_wrong = False
        except BadInput as error:
            effect, is_wrong = error.message, True
        label = self.query_one("#effect", Label)
        label.set_class(is_wrong, "wrong")
        label.update(effect)

    def on_input_submitted(self) -> None:
        """Approve."""
        self.action_approve()

    def action_approve(self) -> None:
        """Give the approval, unless a field is wrong or there is no plan."""
        if not self.is_ready:
            return
        if not self.has_failed:
            try:
                order = approval(self._targets, self._plan, self._form())
            except BadInput:
                self._show_effect()
                self.post_message(self.BadField())
                return
            self._approved(order, self._plan)
        self.dismiss()

    def _form(self) -> ApprovalForm:
        return ApprovalForm(
            self._text("name"),
            self._text("tags"),
            self._text("duration"),
            is_read_only=self._is_on("read-only"),
            is_for_all_sessions=self._is_on("always"),
            has_worktrees=self._is_on("worktrees"),
            has_git=self._is_on("git"),
            asking=tuple(each["session"] for each in self._asking),
            session=next((each.name for each in self.query(Choice) if each.value), None),
            accepts_incomplete=self._is_on("incomplete"),
        )

    def _text(self, field: str) -> str:
        return "".join(found.value for found in self.query(f"#{field}").results(Input))

    def _is_on(self, field: str) -> bool:
        return any(found.value for found in self.query(f"#{field}").results(Checkbox))


def _title(count: int) -> str:
    return "Approve this project" if count == 1 else f"Approve {count:,} projects"


def _field(name: str, hint: str) -> Horizontal:
    return Horizontal(
        Label(name, classes="label"),
        Input(placeholder=hint, id=name, compact=True),
        classes="field",
    )


class FocusDialog(Dialog[None]):
    """The tag to focus on. The start of a known tag is enough."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", show=False)]

    def __init__(
        self,
        tags: Sequence[str],
        focus: str | None,
        chosen: Callable[[SetFocusRequest], None],
    ) -> None:
        super().__init__("Focus on a tag", _nothing_to_read, self._show_tags)
        self._tags, self._focus, self._chosen = tags, focus, chosen

    def key_words(self) -> Sequence[Word]:
        """Return the words of the last line."""
        return (
            Word(" Enter focus ", "screen.focus_on_tag", Tone.COMMAND),
            Word(" Esc cancel ", "screen.dismiss(None)", Tone.COMMAND),
        )

    async def _show_tags(self, _: None) -> None:
        """Show the tags, and make the fields."""
        self.query_one(TextView).show(
            [
                Paragraph("focus", self._focus or "none: sessions see all roots"),
                Paragraph("tags", " ".join(self._tags) or "no project has a tag"),
            ]
        )
        await self.query_one("#fields").mount(
            _field("tag", "empty: no focus"),
            Tick("also in running sessions", value=True, id="now", compact=True),
        )

    def first_field(self) -> Widget:
        """Return the input."""
        return self.query_one("#tag", Input)

    def on_input_submitted(self) -> None:
        """Set the focus."""
        self.action_focus_on_tag()

    def action_focus_on_tag(self) -> None:
        """Give the request."""
        if not self.is_ready:
            return
        typed = self.query_one("#tag", Input).value.strip().lstrip("#")
        is_now = self.query_one("#now", Checkbox).value
        reach = FocusTarget.ALL if is_now else FocusTarget.LATER
        self._chosen(SetFocusRequest(self._known(typed) or None, reach))
        self.dismiss()

    def _known(self, typed: str) -> str:
        if typed in self._tags or not typed:
            return typed
        starting = [tag for tag in self._tags if tag.startswith(typed)]
        return starting[0] if len(starting) == 1 else typed


async def _nothing_to_read() -> None:
    return
