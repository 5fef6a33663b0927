"""A fake service manager that records commands and returns prepared answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rootsd.service.manager import QUERY_VERBS, ProgramResult


class FakeServiceManager:
    """Replaces `run_program`.

    `answers` apply to the commands that begin with their words; the longest match wins. Commands
    for which `refuses` returns true fail. All others succeed without output.
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
        """Return the recorded commands that are not queries."""
        return [line for line in self.told if QUERY_VERBS.isdisjoint(line.split())]
