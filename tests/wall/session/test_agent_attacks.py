"""A confined agent plants each kind of file that agents load at their next start outside.

The agents are stand-ins with the right names. The real ones are in tests/e2e/agents.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from rootsd.agents import files_with, with_program
from rootsd.agents.forms.state import AgentState
from support import preloaded
from support.roots_publisher import RootsPublisher
from support.sizes import Sizes

pytestmark = [pytest.mark.needs("wall")]

PROGRAMS = sorted(agent.PROGRAMS[0] for agent in files_with("state"))
_HANG_GUARD_S = 120
_STAND_IN = """
import os, shutil
for path in os.environ["PLANT"].split(":"):
    try:
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write("planted\\n")
    except OSError:
        pass
print("done")
"""


@pytest.fixture
def home(home: Path) -> Path:
    """Return a home with a stand-in for each agent."""
    (home / "bin").mkdir()
    for name in [*PROGRAMS, "unknown"]:
        program = home / "bin" / name
        program.write_text(f"#!{sys.executable}\n{_STAND_IN}")
        program.chmod(0o755)
    return home


def kinds_of(program: str) -> list[str]:
    """Return every file below the home folder that an agent loads or copies."""
    agent = with_program(program, "state")
    assert agent is not None
    state: AgentState = agent.state()
    paths = [*state.reads]
    for folder in state.folders:
        names = [*folder.loads, *folder.credentials, *(each.path for each in folder.copies)]
        paths += [f"{folder.place.linux}/{name.replace('*', 'x')}" for name in names]
        paths += [each.beside for each in folder.copies if each.beside]
    return paths


def confine(home: Path, program: str, paths: list[str], *options: str) -> None:
    """Have a program inside replace each of `paths` by a file of its own."""
    targets = ":".join(str(home / path) for path in paths)
    words = ("confine", *options, "--", str(home / "bin" / program))
    done = preloaded.run(words, {**os.environ, "PLANT": targets}, _HANG_GUARD_S, home)
    assert done.stdout == "done\n", done.stderr


def planted(home: Path, paths: list[str]) -> set[str]:
    """Return those of `paths` that are planted outside."""
    return {
        path
        for path in paths
        if (home / path).is_file() and (home / path).read_text() == "planted\n"
    }


def test_no_file_planted_by_an_agent_appears_outside(
    publisher: RootsPublisher, home: Path, sizes: Sizes
) -> None:
    """Every second file exists outside. Those are read-only inside, or copies."""
    for program in sizes.pick(test=PROGRAMS[::6], check=PROGRAMS, soak=PROGRAMS):
        paths = kinds_of(program)
        for path in paths[::2]:
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text("{}")
        before = _files(home)
        confine(home, program, paths)
        assert _files(home) == before
        assert planted(home, paths) == set()


def _files(home: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_control_without_a_profile_planted_files_appear_outside(
    publisher: RootsPublisher, home: Path
) -> None:
    """The control: a program of another name, to which a person opens the agents' folders."""
    paths = sorted({path for program in PROGRAMS for path in kinds_of(program)})
    options = []
    for path in paths:
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        if path.count("/") == 0:
            (home / path).write_text("{}")
            options += ["--write", str(home / path)]
        else:
            options += ["--write", str((home / path).parent)]
    confine(home, "unknown", paths, *options)
    assert planted(home, paths) == set(paths)
