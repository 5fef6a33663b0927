"""The dialogs: approve, confirm, focus, and text to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Checkbox, Input, Label

from rootsd.cli.decisions import confirmable_git_directories, confirmable_worktrees
from rootsd.cli.theme import Tone
from rootsd.cli.ui.details import Paragraph, about_plan
from rootsd.cli.ui.orders import ApprovalForm, BadInput, Target, approval
from rootsd.cli.ui.widgets import Bar, TextView, Word
from rootsd.wire.decisions import DecideRequest, FocusTarget, SetFocusRequest

_CLOSE = Word(" Esc close ", "screen.dismiss(None)", Tone.COMMAND)


def _keys(*words: Word) -> Bar:
    return Bar(lambda _: [word for each in words for word in (each, Word("  "))], "dialog-keys")


class TextDialog(ModalScreen[None]):
    """Text to read. Any of `q`, Enter and Escape closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss(None)", show=False)
    ]

    def __init__(self, title: str, paragraphs: Iterable[Paragraph]) -> None:
        super().__init__()
        self._title, self._paragraphs = title, [*paragraphs]

    def compose(self) -> ComposeResult:
        """Make the widgets."""
        with Vertical(classes="dialog large"):
            yield Label(self._title, classes="title", markup=False)
            yield TextView(self._paragraphs)
            yield _keys(_CLOSE)


class ConfirmDialog(ModalScreen[bool]):
    """A question that `y` or Enter answers with yes. Escape and `n` answer it with no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "dismiss(True)", show=False),
        Binding("escape,n,q", "dismiss(False)", show=False),
    ]

    def __init__(self, title: str, paragraphs: Iterable[Paragraph]) -> None:
        super().__init__()
        self._title, self._paragraphs = title, [*paragraphs]

    def compose(self) -> ComposeResult:
        """Make the widgets."""
        with Vertical(classes="dialog large"):
            yield Label(self._title, classes="title", markup=False)
            yield TextView(self._paragraphs)
            yield _keys(
                Word(" y yes ", "screen.dismiss(True)", Tone.COMMAND),
                Word(" n no ", "screen.dismiss(False)", Tone.COMMAND),
            )


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


class ApproveDialog(ModalScreen[DecideRequest | None]):
    """The fields of an approval, below its plan. Enter approves, Escape changes nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", show=False),
        Binding("enter", "approve", show=False),
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    def __init__(
        self, targets: Sequence[Target], plan: Mapping[str, Any], risks: Sequence[Paragraph]
    ) -> None:
        super().__init__()
        self._targets, self._plan, self._risks = targets, plan, risks

    def compose(self) -> ComposeResult:
        """Make the widgets. Fields that have no use here are left out."""
        count = len(self._targets)
        is_answer = any(target.row.request for target in self._targets)
        with Vertical(classes="dialog large"):
            yield Label(_title(count), classes="title", markup=False)
            yield TextView(self._paragraphs(), id_="plan")
            if count == 1:
                yield _field("name", "as proposed")
            yield _field("tags", "none")
            yield _field("duration", "8h, 2d; empty: until you revoke it")
            yield Tick("read only", value=is_answer, id="read-only", compact=True)
            if is_answer:
                yield Tick("for all sessions, not only this one", id="always", compact=True)
            if confirmable_worktrees(self._plan):
                yield Tick("also its older worktrees", id="worktrees", compact=True)
            if confirmable_git_directories(self._plan):
                yield Tick("also the Git data of the other checkout", id="git", compact=True)
            yield Label("", id="wrong", markup=False)
            yield _keys(
                Word(" Enter approve ", "screen.approve", Tone.COMMAND),
                Word(" Tab next field ", "app.focus_next", Tone.COMMAND),
                Word(" Esc cancel ", "screen.dismiss(None)", Tone.COMMAND),
            )

    def on_mount(self) -> None:
        """Begin in the tags, since most approvals need no other field."""
        self.query_one("#tags", Input).focus()

    def on_input_submitted(self) -> None:
        """Approve."""
        self.action_approve()

    def action_approve(self) -> None:
        """Return the approval, or say which field is wrong."""
        try:
            order = approval(self._targets, self._plan, self._form())
        except BadInput as error:
            self.query_one("#wrong", Label).update(error.message)
            return
        self.dismiss(order)

    def _form(self) -> ApprovalForm:
        return ApprovalForm(
            self._text("name"),
            self._text("tags"),
            self._text("duration"),
            is_read_only=self._is_on("read-only"),
            is_for_all_sessions=self._is_on("always"),
            has_worktrees=self._is_on("worktrees"),
            has_git=self._is_on("git"),
        )

    def _text(self, field: str) -> str:
        return "".join(found.value for found in self.query(f"#{field}").results(Input))

    def _is_on(self, field: str) -> bool:
        return any(found.value for found in self.query(f"#{field}").results(Checkbox))

    def _paragraphs(self) -> list[Paragraph]:
        return [*self._risks, *about_plan(self._plan)]


def _title(count: int) -> str:
    return "Approve this project" if count == 1 else f"Approve {count:,} projects"


def _field(name: str, hint: str) -> Horizontal:
    return Horizontal(
        Label(name, classes="label"),
        Input(placeholder=hint, id=name, compact=True),
        classes="field",
    )


class FocusDialog(ModalScreen[SetFocusRequest | None]):
    """The tag to focus on. The input proposes known tags."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", show=False)]

    def __init__(self, tags: Sequence[str], focus: str | None) -> None:
        super().__init__()
        self._tags, self._focus = tags, focus

    def compose(self) -> ComposeResult:
        """Make the widgets."""
        with Vertical(classes="dialog"):
            yield Label("Focus on a tag", classes="title", markup=False)
            yield TextView(
                [
                    Paragraph("focus", self._focus or "none: sessions see all roots"),
                    Paragraph("tags", " ".join(self._tags) or "no project has a tag"),
                ]
            )
            yield _field("tag", "empty: no focus")
            yield Tick("also in running sessions", value=True, id="now", compact=True)
            yield _keys(
                Word(" Enter focus ", "screen.focus_on_tag", Tone.COMMAND),
                Word(" Esc cancel ", "screen.dismiss(None)", Tone.COMMAND),
            )

    def on_mount(self) -> None:
        """Begin in the input."""
        self.query_one("#tag", Input).focus()

    def on_input_submitted(self) -> None:
        """Set the focus."""
        self.action_focus_on_tag()

    def action_focus_on_tag(self) -> None:
        """Return the request. The start of a known tag is enough."""
        typed = self.query_one("#tag", Input).value.strip().lstrip("#")
        is_now = self.query_one("#now", Checkbox).value
        reach = FocusTarget.ALL if is_now else FocusTarget.LATER
        self.dismiss(SetFocusRequest(self._known(typed) or None, reach))

    def _known(self, typed: str) -> str:
        if typed in self._tags or not typed:
            return typed
        starting = [tag for tag in self._tags if tag.startswith(typed)]
        return starting[0] if len(starting) == 1 else typed
