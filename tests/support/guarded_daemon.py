"""A guarded daemon for end-to-end tests, with agents and people who give it commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from support import fake_agent as agent_script
from support.person import Person
from support.process_launcher import Completed, ProcessLauncher

KNOWN, UNKNOWN = "goose", "my-agent"
MARKER = {"GOOSE_TERMINAL": "1"}
ROOTSD = [sys.executable, "-m", "rootsd"]
AGENT = Path(agent_script.__file__)
APPROVE = (*ROOTSD, "approve", "one")
TMUX = {"TMUX_TMPDIR": "/tmp"}


class Outcome(StrEnum):
    """The outcome of an attempt."""

    REFUSED = "refused"
    PASSED = "passed"
    ASKED_AND_PASSED = "asked for a word, typed it, passed"


class GuardedDaemon:
    """A daemon with the guard on, one project, programs under chosen names, and a process
    launcher.
    """

    def __init__(self, person: Person, folder: Path, group: Path | None = None) -> None:
        self.person = person
        self._folder = folder
        environment = {**person.environment(), "TERM": "xterm", "NO_COLOR": "1"}
        environment["PYTHON"] = sys.executable
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        # The pid keeps a server that a killed run left behind from serving the next run.
        server = f"{folder.name}-{os.getpid()}"
        environment |= {**TMUX, "TMUX_SERVER": server}
        self.launcher = ProcessLauncher(folder, environment, group)
        self.tmux = ("tmux", "-L", server, "-f", "/dev/null")

    def named(self, name: str) -> Path:
        """Return a Python interpreter with this program name."""
        program = self._folder / name
        if not program.exists():
            program.symlink_to(os.path.realpath(sys.executable))
        return program

    def outcome(self, completed: Completed) -> Outcome:
        """Return the outcome of an approval, and revoke it."""
        (item,) = self.person.items("ls")
        if item["verdict"] != "approved":
            assert item["verdict"] == "pending", completed.output
            return Outcome.REFUSED
        self.launcher.run_on_terminal(*ROOTSD, "forget", "one")
        asked = " to go on: " in completed.output
        return Outcome.ASKED_AND_PASSED if asked else Outcome.PASSED

    def log(self) -> list[dict[str, str]]:
        """Return all events of the history."""
        return self.person.items("log")

    def typed_into_bash(self, *lines: str) -> Completed:
        """Type lines into a shell on its own terminal."""
        typed = [("$ ", f"{line}\n") for line in lines]
        return self.launcher.run_on_terminal(
            "bash", "--norc", "-i", typed=[*typed, ("$ ", "exit\n")], PS1="$ "
        )


@contextmanager
def guarded_daemon(folder: Path, group: Path | None = None) -> Iterator[GuardedDaemon]:
    """Run a guarded daemon. If `group` is given, its processes are in that control group."""
    person = Person(folder, guard="agents")
    person.clone("one")
    person.rootsd("up", str(person.parent))
    person.wait_until_listed("one", "pending")
    scene = GuardedDaemon(person, folder, group)
    with scene.launcher:
        yield scene
    person.run("down")
