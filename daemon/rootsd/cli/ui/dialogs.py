"""The dialogs: approve, confirm, focus, and text to read."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Checkbox, Input, Label

from rootsd.cli.answers.decision_flow import Facts, OrderT, Send, question_of
from rootsd.cli.text.layout import Paragraph
from rootsd.cli.text.projects import describe_session_request, path_of
from rootsd.cli.text.theme import Tone
from rootsd.cli.ui.details import about_approval, risks_of, risks_of_several
from rootsd.cli.ui.orders import (
    ApprovalForm,
    BadInput,
    Target,
    approval,
    approval_of,
    effect_of,
)
from rootsd.cli.ui.widgets import Bar, TextView, Word
from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label
from rootsd.wire.decisions import DecideRequest, FocusTarget, SetFocusRequest
from rootsd.wire.projects import ProjectsQuery, RiskReading, ShowQuery

Answer = TypeVar("Answer")

_CLOSE = Word(" Esc close ", "screen.dismiss(None)", Tone.COMMAND)
_READING = Paragraph("", "Reading. Keys that you type now wait. Esc cancels.")


def _keys(*words: Word) -> Bar:
    return Bar(lambda _: [word for each in words for word in (each, Word("  "))], "dialog-keys")


class Dialog(ModalScreen[None], Generic[Answer]):
    """A dialog that opens at once, and then shows what was read.

    It takes no input before `is_ready`, and posts `Ready` then. If the reading fails, it shows the
    error and stays, because the rest of what a person typed is meant for the dialog. An answer is
    given before the dialog closes, so it comes before the next key.
    """

    AUTO_FOCUS: ClassVar[str | None] = ""

    class Ready(Message):
        """The dialog takes input from now on."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title
        self._mounted = asyncio.Event()
        self._answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        self.is_opened = False
        self.is_ready = False
        self.has_failed = False

    def open_on(self, app: App[Any]) -> None:
        """Open."""
        self.is_opened = True
        app.push_screen(self)

    def compose(self) -> ComposeResult:
        """Make the widgets that need no facts."""
        with Vertical(classes="dialog large"):
            yield Label(self._title, classes="title", markup=False)
            yield TextView([_READING])
            yield Vertical(id="fields")
            yield _keys(*self.key_words())

    def on_mount(self) -> None:
        """Let `show` go on."""
        self._mounted.set()

    def on_unmount(self) -> None:
        """End the wait for an answer."""
        if not self._answer.done():
            self._answer.set_result(None)

    async def show(self, paragraphs: Iterable[Paragraph], *fields: Widget) -> None:
        """Show what was read above these fields, and take input, unless the dialog is closed."""
        await self._mounted.wait()
        if not self.is_current:
            return
        self.query_one(".title", Label).update(self._title)
        self.query_one(TextView).show([*paragraphs])
        await self.query_one("#fields").mount(*fields)
        self.set_focus(self.query_one(TextView) if self.has_failed else self.first_field())
        self.is_ready = True
        self.post_message(self.Ready())

    async def fail(self, error: RootsdError) -> None:
        """Show why there is nothing to answer."""
        self.has_failed = True
        await self.show([Paragraph("problem", described(error), Tone.BAD)])

    async def answer(self) -> Answer | None:
        """Return the answer, or None if a person closes the dialog."""
        return await self._answer

    def close_with(self, answer: Answer) -> None:
        """Give an answer, and close. There is no second one."""
        self.is_ready = False
        self._answer.set_result(answer)
        self.dismiss()

    def key_words(self) -> Sequence[Word]:
        """Return the words of the last line."""
        return (_CLOSE,)

    def first_field(self) -> Widget:
        """Return the widget that gets the focus."""
        return self.query_one(TextView)


def described(error: RootsdError) -> str:
    """Return the message of an error, with the command that helps."""
    return f"{error.message}; try: {error.remedy}" if error.remedy else error.message


class TextDialog(Dialog[None]):
    """Text to read. Any of `q`, Enter and Escape closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss(None)", show=False)
    ]


class ConfirmDialog(Dialog[bool], Generic[OrderT]):
    """A question that `y` or Enter answers with yes. Escape and `n` answer it with no.

    `describe` returns what an order would do.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "yes", show=False),
        Binding("escape,n,q", "dismiss(None)", show=False),
    ]

    def __init__(
        self, title: str, describe: Callable[[Facts[OrderT]], Iterable[Paragraph]]
    ) -> None:
        super().__init__(title)
        self._describe = describe

    def key_words(self) -> Sequence[Word]:
        """Return the words of the last line."""
        return (
            Word(" y yes ", "screen.yes", Tone.COMMAND),
            Word(" n no ", "screen.dismiss(None)", Tone.COMMAND),
        )

    async def confirm(self, facts: Facts[OrderT]) -> OrderT | None:
        """Ask about an order. Return it as confirmed, or None."""
        self._title = question_of(facts)
        await self.show(self._describe(facts))
        return facts.confirmed(facts.order) if await self.answer() else None

    def action_yes(self) -> None:
        """Answer with yes."""
        if self.is_ready:
            self.close_with(answer=True)


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


class ApproveDialog(Dialog[DecideRequest]):
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

    def __init__(self, targets: Sequence[Target], read: Send) -> None:
        super().__init__(_title(len(targets)))
        self._targets, self._read = targets, read
        self._facts = self._with_worktrees = Facts(approval_of(targets), {})

    def key_words(self) -> Sequence[Word]:
        """Return the words of the last line."""
        return (
            Word(" Enter approve ", "screen.approve", Tone.COMMAND),
            Word(" Tab next field ", "app.focus_next", Tone.COMMAND),
            Word(" Esc cancel ", "screen.dismiss(None)", Tone.COMMAND),
        )

    async def confirm(self, facts: Facts[DecideRequest]) -> DecideRequest | None:
        """Show what the approval would publish, and its risks, above the fields that have a use.

        Return it as confirmed, or None. Raises RootsdError.
        """
        self._facts = self._with_worktrees = facts
        if facts.worktrees:
            self._with_worktrees = await facts.with_worktrees(self._read)
        asking = [
            Paragraph(f"session {number}", describe_session_request(each), Tone.ATTENTION)
            for number, each in enumerate(facts.requests, 1)
        ]
        risks = await self._risks()
        if self.is_current and (asking or self._is_about_more_than_chosen()):
            self.post_message(self.Unexpected())
        about = about_approval(facts, self._with_worktrees)
        await self.show([*asking, *risks, *about], *self._fields())
        if self.is_current:
            self._show_effect()
        return await self.answer()

    async def _risks(self) -> Sequence[Paragraph]:
        refs = self._facts.order.refs
        if len(refs) > 1:
            query = ProjectsQuery("/", refs=refs, risks=RiskReading.THOROUGH)
            return [*risks_of_several(await self._read(query))]
        (item,) = (await self._read(ShowQuery("/", refs)))["items"]
        return risks_of(item)

    def _is_about_more_than_chosen(self) -> bool:
        chosen = {target.row.path for target in self._targets}
        confirmation = self._facts.confirmation
        return confirmation is not None and bool(
            confirmation["parents"]
            or confirmation["unsearched"]
            or any(path_of(each) not in chosen for each in self._facts.listed)
        )

    def _fields(self) -> Iterator[Widget]:
        is_answer = any(target.row.request for target in self._targets)
        if len(self._targets) == 1:
            yield _field("name", "as proposed")
        yield _field("tags", "none")
        yield _field("duration", "8h, 2d; empty: for ever")
        yield Tick("read only", value=is_answer, id="read-only", compact=True)
        requests = self._facts.requests
        for number, each in enumerate(requests, 1):
            by = safe_label(each["by"])
            yield Choice(
                Content(f"only for session {number}: {by}"), name=each["session"], compact=True
            )
        if requests:
            yield Choice("for every session, until you revoke it", id="always", compact=True)
        elif is_answer:
            yield Tick("for all sessions, not only this one", id="always", compact=True)
        if self._facts.worktrees:
            yield Tick("also its older worktrees", id="worktrees", compact=True)
        if self._facts.git_directories:
            yield Tick("also the Git data of the other checkout", id="git", compact=True)
        if self._facts.incomplete:
            yield Tick("publish it although it is incomplete", id="incomplete", compact=True)
        yield Label("", id="effect", markup=False)

    def first_field(self) -> Widget:
        """Return the tags, since most approvals need no other field, or the choice to make."""
        if self._facts.requests:
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
            effect = f"Enter approves: {effect_of(self._targets, self._facts, self._form())}"
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
        if self.has_failed:
            self.dismiss()
        if not self.is_ready or self.has_failed:
            return
        form = self._form()
        try:
            order = approval(self._targets, self._facts, form)
        except BadInput:
            self._show_effect()
            self.post_message(self.BadField())
            return
        listed = self._with_worktrees if form.has_worktrees else self._facts
        self.close_with(listed.confirmed(order))

    def _form(self) -> ApprovalForm:
        return ApprovalForm(
            self._text("name"),
            self._text("tags"),
            self._text("duration"),
            is_read_only=self._is_on("read-only"),
            is_for_all_sessions=self._is_on("always"),
            has_worktrees=self._is_on("worktrees"),
            has_git=self._is_on("git"),
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


class NameDialog(Dialog[Answer]):
    """A field for one of these names. The start of a name is enough."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", show=False)]

    def __init__(self, title: str, verb: str, names: Sequence[str]) -> None:
        super().__init__(title)
        self._verb, self._names = verb, names

    def key_words(self) -> Sequence[Word]:
        """Return the words of the last line."""
        return (
            Word(f" Enter {self._verb} ", "screen.take", Tone.COMMAND),
            Word(" Esc cancel ", "screen.dismiss(None)", Tone.COMMAND),
        )

    def first_field(self) -> Widget:
        """Return the input."""
        return self.query_one(Input)

    def on_input_submitted(self) -> None:
        """Take the name."""
        self.action_take()

    def action_take(self) -> None:
        """Answer with the name."""
        if self.is_ready:
            self.take(self._known(self.query_one(Input).value.strip().lstrip("#")))

    @abstractmethod
    def take(self, name: str) -> None:
        """Answer with this name, which is empty if nothing was typed."""

    def _known(self, typed: str) -> str:
        if typed in self._names or not typed:
            return typed
        starting = [name for name in self._names if name.startswith(typed)]
        return starting[0] if len(starting) == 1 else typed


class AddRootDialog(NameDialog[str]):
    """The root that a program behind the wall gets."""

    def __init__(self, program: str, names: Sequence[str]) -> None:
        super().__init__("Add a root to a program behind the wall", "add", names)
        self._program = program

    async def ask(self) -> str | None:
        """Return the name of the root, or None."""
        await self.show(
            [
                Paragraph("program", self._program),
                Paragraph("roots", " ".join(self._names) or "there is none"),
            ],
            _field("root", "its name"),
        )
        return await self.answer()

    def take(self, name: str) -> None:
        """Give the name."""
        if name:
            self.close_with(name)


class FocusDialog(NameDialog[SetFocusRequest]):
    """The tag to focus on."""

    def __init__(self, tags: Sequence[str], focus: str | None) -> None:
        super().__init__("Focus on a tag", "focus", tags)
        self._focus = focus

    async def ask(self) -> SetFocusRequest | None:
        """Ask for a tag, and return the order for it, or None."""
        await self.show(
            [
                Paragraph("focus", self._focus or "none: sessions see all roots"),
                Paragraph("tags", " ".join(self._names) or "no project has a tag"),
            ],
            _field("tag", "empty: no focus"),
            Tick("also in running sessions", value=True, id="now", compact=True),
        )
        return await self.answer()

    def take(self, name: str) -> None:
        """Give the request."""
        is_now = self.query_one("#now", Checkbox).value
        reach = FocusTarget.ALL if is_now else FocusTarget.LATER
        self.close_with(SetFocusRequest(name or None, reach))
