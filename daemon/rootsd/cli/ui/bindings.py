"""What the keys of the screen do: the bindings, the last line, and the help."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from rootsd.cli.text.layout import Paragraph
from rootsd.cli.text.theme import Tone
from rootsd.cli.ui.widgets import Word

BINDINGS: list[BindingType] = [
    Binding("q,ctrl+c", "quit", show=False),
    Binding("ctrl+z", "suspend_process", show=False),
    Binding("a", "approve", show=False),
    Binding("d", "deny", show=False),
    Binding("u", "undo", show=False),
    Binding("w", "why", show=False),
    Binding("e", "edit", show=False),
    Binding("y", "copy", show=False),
    Binding("f", "focus_tag", show=False),
    Binding("s", "sort", show=False),
    Binding("o", "group", show=False),
    Binding("D", "denied", show=False),
    Binding("r", "rules", show=False),
    Binding("plus", "add_root", show=False),
    Binding("R", "report", show=False),
    Binding("slash", "search", show=False),
    Binding("escape", "end_search", show=False),
    Binding("question_mark", "help", show=False),
    Binding("h,left", "go(-1)", show=False),
    Binding("l,right", "go(1)", show=False),
    *(Binding(str(n), f"go_to({n - 1})", show=False) for n in (1, 2, 3)),
]
_HELP = (
    ("arrows, j k", "move"),
    ("Tab, h l, 1 2 3", "go to another list"),
    ("/", "search: type words, then Enter; Esc ends the search"),
    ("space, *", "select a project, or all that are shown"),
    ("a", "approve: name, tags, read-only, duration"),
    ("d", "deny, or revoke an approval"),
    ("u", "undo the last command"),
    ("w", "why: the reasons for a verdict"),
    ("s", "sort by name, age, risk, owner, or kind"),
    ("o", "group by folder or by owner; space on a heading selects its projects"),
    ("D", "show or hide denied projects"),
    ("r", "rules: what they approve or deny"),
    ("f", "focus: narrow sessions to a tag"),
    ("+", "add a root to the program behind the wall"),
    ("R", "report: what the last session of the program did"),
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
    Word("s sort", "sort"),
    Word("o group", "group"),
    Word("f focus", "focus_tag"),
    Word("D denied", "denied"),
    Word("r rules", "rules"),
    Word("e edit", "edit"),
    Word("y copy", "copy"),
    Word("+ add root", "add_root"),
    Word("R report", "report"),
)


def key_words(room: int) -> list[Word]:
    """Return the words of the last line that have room in it."""
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


def help_text() -> list[Paragraph]:
    """Return a line for each key."""
    return [Paragraph(f"{key:<18}", effect) for key, effect in _HELP]
