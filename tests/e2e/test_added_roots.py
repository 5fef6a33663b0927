"""`rootsd confine --add` and `--tag`: one session over several repositories."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rootsd.core.errors import Exit
from support.person import Resident

pytestmark = [pytest.mark.needs("wall")]

_AGENT = "#!/bin/sh\nprintf '%s\\n' \"$@\"\nls {parent}\n"


class World:
    """A person with three projects, of which `lib` is pending, and a program called `claude`."""

    def __init__(self, person: Resident) -> None:
        self.person = person
        self.api, self.web, _ = (person.clone(name) for name in ("api", "web", "lib"))
        person.run("up", str(person.parent))
        assert person.run("approve", "api", "web", "--yes").returncode == Exit.OK
        self.agent = person.home / "bin" / "claude"
        self.agent.parent.mkdir()
        self.agent.write_text(_AGENT.format(parent=person.parent))
        self.agent.chmod(0o755)

    def confine(self, *flags: str, program: Path | str, part: str = "") -> tuple[list[str], str]:
        """Run a program in `api`. Return the lines that it printed, and what the front said."""
        words = ["confine", *flags, *(() if "--" in flags else ("--",)), str(program), "hello"]
        done = subprocess.run(
            [sys.executable, "-m", "rootsd", *words], env=self.person.environment(),
            cwd=self.api / part, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout.split("\n")[:-1], " ".join(done.stderr.split())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(Resident(tmp_path_factory.mktemp("world")))
    yield world
    world.person.run("down")


def test_an_agent_sees_added_roots_and_is_told_about_them(world: World) -> None:
    printed, said = world.confine("--add", "web,lib", program=world.agent)
    assert printed == ["hello", f"--add-dir={world.web}", "api", "web"]
    assert "lib is no root now, so it is closed; try: rootsd approve lib" in said
    printed, _ = world.confine(program=world.agent)  # the control
    assert printed == ["hello", "api"]


def test_roots_with_a_tag_are_added(world: World) -> None:
    world.person.run("tag", "web", "work")
    printed, _ = world.confine("--tag", "work", program=world.agent)
    assert printed == ["hello", f"--add-dir={world.web}", "api", "web"]


def test_a_program_without_an_option_for_folders_gets_the_wall_alone(world: World) -> None:
    program = world.agent.with_name("program")
    program.write_bytes(world.agent.read_bytes())
    program.chmod(0o755)
    printed, said = world.confine("--add", "web", "--read", str(program), program=program)
    assert printed == ["hello", "api", "web"]
    assert (
        f"rootsd knows no option of program for more folders, so name them to it: {world.web}"
        in said
    )
    assert world.confine("--add", "nosuch", program=program)[0] == []


def test_of_a_project_only_the_working_directory_is_shown(world: World) -> None:
    part = world.api / "part"
    part.mkdir()
    (part / "file").touch()
    look = f"ls {world.api}; ls; ls {world.person.parent}; touch new && ls; git status -s 2>&1"
    words = ("--add", "web", "--", "sh", "-c")
    shown, _ = world.confine("--subfolder", *words, program=look, part="part")
    assert shown[:6] == ["part", "file", "api", "web", "file", "new"]
    assert shown[6].startswith("fatal: not a git repository")
    whole, _ = world.confine("--", "sh", "-c", program=look, part="part")  # the control
    assert "README" in whole
