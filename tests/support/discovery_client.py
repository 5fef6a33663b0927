"""The client of `support.discovery_process`, which runs discovery in its own process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from support.repositories import fake_repository
from support.subprocesses import UNPRIVILEGED

_HANG_S = 60


class DiscoveryClient:
    """Discovery of some parents, without capabilities.

    `barrier` is the last of the parents, in which nothing else happens. The event of a folder
    moved there arrives after all earlier events.
    """

    def __init__(self, fault: str, index: Path, parents: Sequence[Path], barrier: Path) -> None:
        """Start the process. Raises nothing: a process that cannot start answers that it ended."""
        self._process = subprocess.Popen(
            [*UNPRIVILEGED, sys.executable, "-m", "support.discovery_process", fault, index],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.pid = self._process.pid
        self._barrier = barrier
        self._still = fake_repository(barrier / "still-0")
        self._turn = 0
        nested = {"vcs": "vcs"}
        self.ask(json.dumps([(str(p), nested.get(p.name, "none")) for p in (*parents, barrier)]))

    def settled(self, *, sweep: bool) -> list[str]:
        """Let discovery process all events, and return the differences."""
        self._turn += 1
        self._still = self._still.rename(self._barrier / f"still-{self._turn}")
        return self.ask(f"{'sweep' if sweep else 'look'} {self._still}")

    def ask(self, line: str) -> list[str]:
        """Send a command, and return the answer, or that the process ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            return [f"discovery ended with {self._process.wait(_HANG_S)}"]
        found: list[str] = json.loads(line)
        return found

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait(_HANG_S)
