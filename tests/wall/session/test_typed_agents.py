"""The shell functions of agents, with the real `rootsd confine`."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rootsd.core.mount_plan import ConfinedRoot
from rootsd.service.shell_scripts import SHELLS, script

pytestmark = [pytest.mark.needs("wall"), pytest.mark.usefixtures("publisher")]

_HANG_GUARD_S = 120
START = {"bash": ("--norc", "--noprofile"), "zsh": ("-f",), "fish": ("--no-config",)}
AGENT = """\
#!/bin/sh
printf '%s' "agent inside ${ROOTSD_CONFINED-nothing}"; printf ' <%s>' "$@"; echo
cat "$SECRET" 2>/dev/null
exit 3
"""


class Person:
    """A person in a root, whose shell starts `claude` behind the wall."""

    def __init__(self, shell: str, folder: Path, home: Path) -> None:
        self.shell = shell
        self.folder = folder
        self.functions = folder / "functions"
        (folder / "bin").mkdir()
        rootsd = folder / "bin" / "rootsd"
        rootsd.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m rootsd "$@"\n')
        (folder / "bin" / "claude").write_text(AGENT)
        for program in (folder / "bin").iterdir():
            program.chmod(0o755)
        (home / "secret").write_text("secret\n")
        name = "__rootsd_behind_wall" if shell == "fish" else "_rootsd_behind_wall"
        self.functions.write_text(f"{script('shell-init', shell)}\n{name} {rootsd} claude\n")
        self.environment = {
            **os.environ, "PATH": f"{folder}/bin:/usr/bin:/bin", "SECRET": str(home / "secret"),
        }  # fmt: skip

    def words(self, text: str) -> list[str]:
        """Return the words that run a script in the shell with the functions."""
        load = f". {self.functions}\n{text}"
        return [shutil.which(self.shell) or "", *START[self.shell], "-c", load]

    def types(self, text: str, *before: str, **variables: str) -> tuple[int, list[str], str]:
        """Run a script. Return its exit status, its lines, and what it said."""
        done = subprocess.run(
            [*before, *self.words(text)], capture_output=True, check=False, text=True,
            timeout=_HANG_GUARD_S, cwd=self.folder, env={**self.environment, **variables},
        )  # fmt: skip
        return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.needs(name)) for name in SHELLS])
def person(
    request: pytest.FixtureRequest, root: ConfinedRoot, home: Path, tmp_path: Path
) -> Person:
    return Person(request.param, tmp_path / "root", home)


def test_a_typed_agent_runs_behind_the_wall_and_its_status_comes_back(person: Person) -> None:
    status, lines, _ = person.types("claude 'a b' ''")
    assert (status, lines) == (3, ["agent inside claude <a b> <>"])
    status, lines, _ = person.types("command claude 'a b'")
    assert (status, lines) == (3, ["agent inside nothing <a b>", "secret"])


@pytest.mark.parametrize("flags", [(), ("--static",)])
def test_behind_the_wall_it_runs_the_program_itself(
    person: Person, flags: tuple[str, ...]
) -> None:
    confine = (str(person.folder / "bin" / "rootsd"), "confine", *flags, "--")
    status, lines, _ = person.types("claude --outside; claude x", *confine)
    inside = f"agent inside {person.shell}"
    assert (status, lines) == (3, [f"{inside} <--outside>", f"{inside} <x>"])


def test_the_variable_alone_does_not_start_it_outside(person: Person) -> None:
    status, lines, said = person.types("claude x", ROOTSD_CONFINED="1")
    assert (status, lines) == (7, [])
    assert "confined already" in said


def test_without_a_daemon_it_does_not_start(person: Person, tmp_path: Path) -> None:
    status, lines, said = person.types("claude x", ROOTSD_DIR="/proc/nothing")
    assert status != 3
    assert lines == []
    assert "try: " in said
