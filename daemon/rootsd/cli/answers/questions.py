"""Ask a person before each step of a command, or take the answers from its flags."""

from __future__ import annotations

import click

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.text.terminal import Keyboard

_YES = ("y", "Y", "\r", "\n", "")


class Questions:
    """Questions before each step. With `--yes`, each answer is yes; in a dry run, no step is
    taken.
    """

    def __init__(self, invocation: Invocation, *, yes: bool, dry_run: bool) -> None:
        self.output = invocation.output
        self.dry_run = dry_run
        self.yes = yes
        self._keyboard = Keyboard()
        flags = invocation.flags
        self.has_person = not (flags.no_input or flags.json) and self._keyboard.is_there()

    def agrees(self, question: str) -> bool:
        """Return whether to take a step. Without a person, only `--yes` agrees."""
        if self.dry_run:
            self.output.message(f"It would ask: {question}")
            return False
        if self.yes or not self.has_person:
            return self.yes
        return self._press(f"{question} [Y/n] ") in _YES

    def agrees_to_decide(self, question: str) -> bool:
        """Return whether a person says yes. Neither `--yes` nor Enter is a decision."""
        if self.dry_run or not self.has_person:
            return False
        return self._press(f"{question} [y/N] ") in ("y", "Y")

    def chooses(self, question: str, keys: str) -> str:
        """Return which of `keys` a person presses, or an empty text. Enter chooses nothing."""
        if self.dry_run or not self.has_person:
            return ""
        key = self._press(f"{question} [{'/'.join(keys)}/N] ").lower()
        return key if key and key in keys else ""

    def _press(self, question: str) -> str:
        key = self._keyboard.press(question)
        if key == "q":
            raise click.Abort
        return key
