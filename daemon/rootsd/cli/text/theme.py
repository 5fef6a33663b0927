"""The colors of everything that rootsd prints on a terminal: a name for each meaning.

The colors belong to the palette of the terminal, so they fit its background. Yellow and white are
hard to read on a light background, and blue and black on a dark one, so nothing uses these. No
color says more than the text does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import TextIO


class Tone(Enum):
    """What a piece of text means."""

    HEADING = auto()
    LABEL = auto()
    COMMAND = auto()
    """Something to type."""
    GOOD = auto()
    ATTENTION = auto()
    """A person should look at it."""
    BAD = auto()
    REFUSED = auto()


# In the notation of rich. All colors are among the first eight of ECMA-48.
STYLES: Mapping[Tone, str] = {
    Tone.HEADING: "bold",
    Tone.LABEL: "bold",
    Tone.COMMAND: "cyan",
    Tone.GOOD: "green",
    Tone.ATTENTION: "magenta",
    Tone.BAD: "red",
    Tone.REFUSED: "bold red",
}

Paint = Callable[[Tone, str], str]


def no_paint(_: Tone, text: str) -> str:
    """Return `text` as it is."""
    return text


def paint_for(stream: TextIO) -> Paint:
    """Return a function that adds the color of a tone to text for `stream`.

    The text stays plain if `stream` is no terminal, if the terminal knows no colors
    (`TERM=dumb`), or if the variable NO_COLOR is set.
    """
    # A command in a pipe never loads these.
    from rich.color import ColorSystem
    from rich.console import Console
    from rich.style import Style

    console = Console(file=stream)
    if console.color_system is None or console.no_color:
        return no_paint
    styles = {tone: Style.parse(text) for tone, text in STYLES.items()}
    return lambda tone, text: styles[tone].render(text, color_system=ColorSystem.STANDARD)
