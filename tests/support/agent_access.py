"""Run Claude Code, which reads a file again and again while a person decides about it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from support.agent_programs import PROMPT, ClaudeCode
from support.agent_world import AgentWorld
from support.isolated_user import Group
from support.polling import until
from support.scripted_model import Call, ScriptedModel

REFUSED = re.compile(r"permission|not allowed|denied", re.IGNORECASE)
HANG_GUARD_S = 600


class CarefulClaude(ClaudeCode):
    """Claude Code with its own permission checks, which the other tests turn off."""

    def command(self, prompt: str) -> list[str]:
        """Return the words that run one prompt."""
        return ["claude", "-p", prompt, "--model", "claude-sonnet-4-5"]


class Access(Enum):
    """The result of a read."""

    GIVEN = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class Change:
    """The latency of a decision, in seconds after the command ended: until the access list was
    written, and until the next read obeyed it.
    """

    access: Access
    written: float
    followed: float


class Reader:
    """The script: read until the access matches the decision, then change the decision. `changes`
    has the latencies.
    """

    def __init__(self, file: Path, rounds: int, decide: Callable[[Access], float]) -> None:
        self.changes: list[Change] = []
        self.reads: list[Access] = []
        self._decide, self._file = decide, file
        self._expected = [Access.REFUSED, *([Access.GIVEN, Access.REFUSED] * rounds)]
        self._written = 0.0
        self._decided = time.monotonic()
        self._model: ScriptedModel | None = None

    def play(self, world: AgentWorld, folder: Path) -> None:
        """Run Claude Code in `folder` until all rounds are done."""
        model = self._model = world.model([self._step(0)])
        try:
            running = world.start(CarefulClaude(), model, {}, folder, Group.OWN)
            done = running.wait(HANG_GUARD_S)
        finally:
            model.close()
        assert not self._expected, f"{PROMPT} {model.problems} {done.output[-2000:]}"

    def _step(self, number: int) -> Call:
        return Call("Read", {"file_path": str(self._file)}, before=lambda: self._before(number))

    def _before(self, number: int) -> None:
        """Look at the last read, decide if it was as expected, and plan one more read."""
        assert self._model is not None
        if number:
            text = self._model.results[number - 1]
            access = Access.REFUSED if REFUSED.search(text) else Access.GIVEN
            self.reads.append(access)
            if access is self._expected[0]:
                self._note(access)
        if self._expected:
            self._model.script.append(self._step(number + 1))

    def _note(self, access: Access) -> None:
        if len(self.reads) > 1 or self.changes:
            followed = time.monotonic() - self._decided
            self.changes.append(Change(access, self._written, followed))
        del self._expected[0]
        if self._expected:
            self._written = self._decide(self._expected[0])
            self._decided = time.monotonic() - self._written


def decider(world: AgentWorld, project: str, settings: Path) -> Callable[[Access], float]:
    """Return the person's side: approve or deny `project`, and wait for the client's list."""
    place = str(world.parent / project)

    def decide(access: Access) -> float:
        words = (
            ("approve", project, "--tag", "work") if access is Access.GIVEN else ("deny", project)
        )
        world.rootsd(*words)
        began = time.monotonic()
        key = '"additionalDirectories"' if access is Access.GIVEN else f"Read(/{place}/**)"
        until(lambda: key in settings.read_text())
        return time.monotonic() - began

    return decide
