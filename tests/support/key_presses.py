"""The keys that a person presses on a terminal, without the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rootsd.cli.text.terminal import Keyboard


class Keys(Keyboard):
    """A person who presses these keys and types these lines; one more question fails the test."""

    def __init__(self, *answers: str, is_there: bool = True) -> None:
        self._answers: Iterator[str] = iter(answers)
        self._is_there = is_there
        self.questions: list[str] = []

    def is_there(self) -> bool:
        """Return whether there is a person."""
        return self._is_there

    def press(self, question: str) -> str:
        """Return the next answer, and write it behind the question, as a terminal does."""
        self.questions.append(question)
        answer = next(self._answers)
        sys.stderr.write(f"{question}{answer}\n")
        return answer

    def line(self, question: str) -> str:
        """Return the next answer."""
        return self.press(question)
