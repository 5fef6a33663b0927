"""A service manager's programs that write down what they are told and answer as laid down."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rootsd.service.manager import QUERY_VERBS, ProgramResult


class Recorder:
    """Takes the place of `run_program`.

    `answers` are given to the commands that begin with their words, the longest first; what
    `refuses` is true for fails; all others succeed and say nothing.
    """

    def __init__(self) -> None:
        self.told: list[str] = []
        self.answers: dict[str, ProgramResult] = {}
        self.refuses: Callable[[str], bool] = lambda line: False

    def __call__(self, words: Sequence[str]) -> ProgramResult:
        line = " ".join(words)
        self.told.append(line)
        if self.refuses(line):
            return ProgramResult(1, "", "refused")
        fitting = [start for start in self.answers if line.startswith(start)]
        return self.answers[max(fitting, key=len)] if fitting else ProgramResult(0)

    def orders(self) -> list[str]:
        """What was told and is no question."""
        return [line for line in self.told if QUERY_VERBS.isdisjoint(line.split())]
