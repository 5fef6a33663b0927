"""Find the known words that somebody probably meant, for "did you mean"."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LIKENESS = 0.6
"""How alike two words must be, from 0 to 1, before a person is asked whether one is the other."""


def nearest(
    word: str, known: Iterable[str], count: int = 1, likeness: float = LIKENESS
) -> list[str]:
    """Return up to `count` of the `known` words that are most like `word`, the best one first."""
    from difflib import get_close_matches  # noqa: PLC0415 - only after a mistake

    return get_close_matches(word, known, count, likeness)


def did_you_mean(choices: Iterable[str]) -> str:
    """Return the end of a sentence that names the choices, or nothing if there are none."""
    shown = " or ".join(choices)
    return f"; did you mean {shown}?" if shown else ""
