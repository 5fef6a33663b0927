"""What the keys of the screen do: the bindings, the last line, and the help."""

from __future__ import annotations

from msgspec import Struct
from textual.binding import Binding, BindingType

from rootsd.cli.text.layout import Paragraph
from rootsd.cli.text.theme import Tone
from rootsd.cli.ui.widgets import Word


class _Key(Struct, frozen=True):
    """A key that a person sees as `label`, with its words in the last line and in the help."""

    label: str
    action: str
    word: str
    effect: str


# In the order in which the last line leaves them out on a narrow screen, the last one first.
_KEYS = (
    _Key("a", "approve", "approve", "approve: name, tags, read-only, duration"),
    _Key("d", "deny", "deny", "deny, or revoke an approval"),
    _Key("␣", "mark", "select", "select a project; * selects all that are shown"),
    _Key("/", "search", "search", "search: type words, then Enter; Esc ends the search"),
    _Key("u", "undo", "undo", "undo the last command"),
    _Key("w", "why", "why", "why: the reasons for a verdict"),
    _Key("?", "help", "help", "show these keys"),
    _Key("q", "quit", "quit", "quit"),
    _Key("s", "sort", "sort", "sort by name, age, risk, owner, or kind"),
    _Key(
        "o", "group", "group", "group by folder or by owner; space on a heading selects all of it"
    ),
    _Key("f", "focus_tag", "focus", "focus: narrow sessions to a tag"),
    _Key("D", "denied", "denied", "show or hide denied projects"),
    _Key("r", "rules", "rules", "rules: what they approve or deny"),
    _Key("e", "edit", "edit", "open the folder in $VISUAL or $EDITOR"),
    _Key("y", "copy", "copy", "copy the path"),
    _Key("+", "add_root", "add root", "add a root to the program behind the wall"),
    _Key("R", "report", "report", "report: what the last session of the program did"),
)
_TEXTUAL = {"/": "slash", "?": "question_mark", "+": "plus", "q": "q,ctrl+c"}

BINDINGS: list[BindingType] = [
    *(
        Binding(_TEXTUAL.get(key.label, key.label), key.action, show=False)
        for key in _KEYS
        if key.action != "mark"  # the lists bind it
    ),
    Binding("ctrl+z", "suspend_process", show=False),
    Binding("escape", "end_search", show=False),
    Binding("h,left", "go(-1)", show=False),
    Binding("l,right", "go(1)", show=False),
    *(Binding(str(n), f"go_to({n - 1})", show=False) for n in (1, 2, 3)),
]


def key_words(room: int) -> list[Word]:
    """Return the words of the last line that have room in it."""
    shown: list[Word] = []
    for key in _KEYS:
        label, word = Word(key.label, key.action, Tone.COMMAND), Word(f" {key.word}  ", key.action)
        room -= len(label.text) + len(word.text)
        if room >= 0:
            shown += [label, word]
    return shown


def help_text() -> list[Paragraph]:
    """Return a line for each key."""
    lines = [
        ("arrows, j k", "move"),
        ("Tab, h l, 1 2 3", "go to another list"),
        *((key.label, key.effect) for key in _KEYS),
        ("mouse", "click a row, its start to select it, or a word of the bars"),
    ]
    return [Paragraph(f"{label:<18}", effect) for label, effect in lines]
