"""A service manager's programs that write down what they are told and answer as laid down."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rootsd.host.service.manager import QUESTIONS, Finished


class Recorder:
    """Takes the place of `run_program`.

    `answers` are given to the commands that begin with their words, the longest first; what
    `refuses` is true for fails; all others succeed and say nothing.
    """

    def __init__(self) -> None:
        self.told: list[str] = []
        self.answers: dict[str, Finished] = {}
        self.refuses: Callable[[str], bool] = lambda line: False

    def __call__(self, words: Sequence[str]) -> Finished:
        line = " ".join(words)
        self.told.append(line)
        if self.refuses(line):
            return Finished(1, "", "refused")
        fitting = [start for start in self.answers if line.startswith(start)]
        return self.answers[max(fitting, key=len)] if fitting else Finished(0)

    def orders(self) -> list[str]:
        """What was told and is no question."""
        return [line for line in self.told if QUESTIONS.isdisjoint(line.split())]
