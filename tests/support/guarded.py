"""A guarded daemon for end-to-end tests, with agents and people who give it commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from support import agent as agent_script
from support.person import Person
from support.stage import Played, Stage

KNOWN, UNKNOWN = "goose", "my-agent"
MARKER = {"GOOSE_TERMINAL": "1"}
ROOTSD = [sys.executable, "-m", "rootsd"]
AGENT = Path(agent_script.__file__)
APPROVE = (*ROOTSD, "approve", "one")
TMUX = {"TMUX_TMPDIR": "/tmp"}


class Outcome(StrEnum):
    """What became of an attempt."""

    REFUSED = "refused"
    PASSED = "passed"
    ASKED_AND_PASSED = "asked for a word, typed it, passed"


class Scene:
    """A daemon that is guarded, one project, programs under names, and a stage for all."""

    def __init__(self, person: Person, folder: Path, group: Path | None = None) -> None:
        self.person = person
        self._folder = folder
        environment = {**person.environment(), "PYTHON": sys.executable, "TERM": "xterm"}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        environment |= {**TMUX, "TMUX_SERVER": folder.name}
        self.stage = Stage(folder, environment, group)
        self.tmux = ("tmux", "-L", folder.name, "-f", "/dev/null")

    def named(self, name: str) -> Path:
        """Return a Python that is called so."""
        program = self._folder / name
        if not program.exists():
            program.symlink_to(os.path.realpath(sys.executable))
        return program

    def outcome(self, played: Played) -> Outcome:
        """Return what became of an approval, and take it back."""
        (item,) = self.person.items("ls")
        if item["verdict"] != "approved":
            assert item["verdict"] == "pending", played.output
            return Outcome.REFUSED
        self.stage.play_on_terminal(*ROOTSD, "forget", "one")
        asked = " to go on: " in played.output
        return Outcome.ASKED_AND_PASSED if asked else Outcome.PASSED

    def log(self) -> list[dict[str, str]]:
        """Return all events."""
        return self.person.items("log")

    def typed_into_bash(self, *lines: str) -> Played:
        """Type lines into a shell in a tab of its own."""
        typed = [("$ ", f"{line}\n") for line in lines]
        return self.stage.play_on_terminal(
            "bash", "--norc", "-i", typed=[*typed, ("$ ", "exit\n")], PS1="$ "
        )


@contextmanager
def scene_in(folder: Path, group: Path | None = None) -> Iterator[Scene]:
    """A scene, whose stage is in a control group of its own if `group` is one."""
    person = Person(folder, guard="agents")
    person.clone("one")
    person.rootsd("up", str(person.parent))
    person.wait_until_listed("one", "pending")
    scene = Scene(person, folder, group)
    with scene.stage:
        yield scene
    person.run("down")
