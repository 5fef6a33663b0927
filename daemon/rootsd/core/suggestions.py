"""Find the known words that somebody probably meant, for "did you mean"."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LIKENESS = 0.6
"""How alike two words must be, from 0 to 1, before a person is asked whether one is the other."""
_OPTION_LIKENESS = 0.7  # all options begin with two hyphens, which makes them more alike


def nearest(
    word: str, known: Iterable[str], count: int = 1, likeness: float = LIKENESS
) -> list[str]:
    """Return up to `count` of the `known` words that are most like `word`, the best one first."""
    from difflib import get_close_matches  # noqa: PLC0415 - only after a mistake

    return get_close_matches(word, known, count, likeness)


def unknown_option(typed: str, known: Iterable[str]) -> str:
    """Return what is wrong with an option that a command does not have."""
    return f"there is no option {typed!a}{did_you_mean(nearest_options(typed, known))}"


def nearest_options(typed: str, known: Iterable[str]) -> list[str]:
    """Return the known option that is most like `typed`, if one is."""
    return nearest(typed, known, likeness=_OPTION_LIKENESS)


def did_you_mean(choices: Iterable[str]) -> str:
    """Return the end of a sentence that names the choices, or nothing if there are none."""
    shown = " or ".join(choices)
    return f"; did you mean {shown}?" if shown else ""
