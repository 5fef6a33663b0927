"""A scripted day of real agent programs: behind the wall, it ends as it does outside."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from support.agent_programs import FIVE, OTHERS, AgentProgram
from support.agent_world import AgentWorld
from support.confined_agents import ConfinedProgram
from support.scripted_model import LATER, Shell
from support.sizes import Size
from support.workloads import state_of

pytestmark = pytest.mark.needs("user-namespaces", "npm", "wall")

_PREPARE = """
set -e
git config --global user.name 'A Person'; git config --global user.email person@example.org
git config --global init.defaultBranch main; git config --global pull.rebase true
cd ~/../src/api
git symbolic-ref HEAD refs/heads/main
printf 'def add(a, b):\\n    return a - b\\n' > calc.py
cat > test_calc.py <<'X'
import unittest
from calc import add
class Calc(unittest.TestCase):
    def test_add(self): self.assertEqual(add(1, 2), 3)
X
echo 1 > .envrc; printf '__pycache__\\n.worktrees\\n' > .gitignore
git add -A; git commit -qm first
git branch feature; git clone -q --bare . ~/api.git; git branch -qD feature
git remote add origin ~/api.git
git fetch -q; git branch -qu origin/main
git clone -q ~/api.git ~/theirs; cd ~/theirs
echo 2 > .envrc; git commit -qam theirs; git push -q; rm -rf ~/theirs
"""
_DATE = "2026-01-02T03:04:05Z"
_STAMP = f"export GIT_AUTHOR_DATE={_DATE} GIT_COMMITTER_DATE={_DATE}"
# Some agents hide the settings of the person's git from their shell.
_STEP = (
    f"{_STAMP} GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org"
    " GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.org"
)
_DAY = (
    "python3 -B -m unittest 2>&1 | tail -1; sed -i 's/a - b/a + b/' calc.py; git diff --stat",
    "python3 -B -m unittest 2>&1 | tail -1; git add -A; git commit -qm 'repair add'",
    "git switch -qc topic; echo '# topic' >> calc.py; git commit -qam topic; git switch -q main",
    "git switch -q feature; git status -sb; git switch -q main; git branch -d feature",
    "git pull -q --rebase; cat .envrc; git log --format=%s",
    "git worktree add -q .worktrees/fix -b fix; cd .worktrees/fix; echo fix > fix;"
    " git add fix; git commit -qm fix; cd ../..; git worktree remove .worktrees/fix",
    "git merge -q fix; git rebase -q main topic; git switch -q main; git stash list; git fsck",
    "git push -q origin main topic; git status -sb; git branch",
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have Claude Code and Codex take part in CI, and the others in `make soak`.

    Cline starts here by a shell, and so without what the wall shows to Cline.
    """
    if "program" in metafunc.fixturenames:
        is_soak = metafunc.config.getoption("--sizes") == Size.SOAK
        others = (each for each in OTHERS if each.name != "cline")
        programs = (*FIVE, *others) if is_soak else FIVE[:2]
        metafunc.parametrize("program", programs, ids=[program.name for program in programs])


class Day(NamedTuple):
    """What each step printed, the state of the project, and the branches of its remote."""

    printed: list[str]
    project: dict[str, str]
    remote: str


def day_of(program: AgentProgram, folder: Path) -> Day:
    """Let the program work in a new world, in which the project is approved."""
    folder.mkdir()
    with AgentWorld(folder, ["api"]) as world:
        done = world.run_as_person("bash", "-c", f"{_STAMP}; {_PREPARE}")
        assert done.status == 0, done.output
        world.rootsd("approve", "api", "--yes")
        script = [Shell(f"{_STEP}; echo step:; ({step}) 2>&1; echo status $?") for step in _DAY]
        model = world.play(program, script, {}, world.parent / "api")
        left = state_of(world.parent / "api")
        remote = world.run_as_person("git", "-C", remote_in(folder), "for-each-ref").output
    printed = [_printed_by_step(model.results[number]) for number in range(len(script))]
    return Day(
        printed, {name: text.replace(str(folder), "") for name, text in left.items()}, remote
    )


def _printed_by_step(result: str) -> str:
    """Return what a step printed, without what some agents add, such as the time, or as JSON."""
    found = re.search(r"step:\n(.*?status \d+)", result.replace("\\n", "\n"), re.DOTALL)
    return found[1] if found else result


def remote_in(folder: Path) -> Path:
    """Return the remote of the project, which lies beside the roots."""
    return folder / "home" / "api.git"


def behind_the_wall(program: AgentProgram, folder: Path, *options: str) -> Day:
    confined = ConfinedProgram(program, "--write", str(remote_in(folder)), *options)
    return day_of(confined, folder)


def test_its_day_behind_the_wall_ends_as_outside(program: AgentProgram, tmp_path: Path) -> None:
    outside = day_of(program, tmp_path / "outside")
    assert all("status 0" in step for step in outside.printed), outside.printed
    assert outside.printed[4].startswith("2\nrepair add\ntheirs\n"), outside.printed
    assert behind_the_wall(program, tmp_path / "inside") == outside


def test_control_a_day_that_ends_otherwise_is_noticed(tmp_path: Path) -> None:
    """With --protect, the pull leaves the old file."""
    day = behind_the_wall(FIVE[0], tmp_path / "inside", "--protect")
    assert "status 0" in day.printed[0]
    assert not day.printed[4].startswith("2\nrepair add\ntheirs\n"), day.printed


def test_it_goes_on_after_its_own_project_was_denied_and_approved(
    program: AgentProgram, tmp_path: Path
) -> None:
    """At the latest with its second command: the folder is there a moment after `approve` ends,
    and Claude Code works in the home folder until then.
    """
    with AgentWorld(tmp_path, ["api"]) as world:
        world.rootsd("approve", "api", "--yes")
        read = f"cat {world.parent}/api/README.md || echo refused; {LATER}"
        script = [
            Shell(read),
            Shell(read, lambda: world.rootsd("deny", "api")),
            Shell(read, lambda: world.rootsd("approve", "api", "--yes")),
            Shell(read),
            Shell(f"echo more >> README.md; cat README.md; {LATER}"),
        ]
        model = world.play(ConfinedProgram(program), script, {}, world.parent / "api")
        written = (world.parent / "api" / "README.md").read_text()
    results = [model.results[number] for number in (0, 1, 3, 4)]
    assert ["the text of api" in each for each in results] == [True, False, True, True], results
    assert written == "the text of api\nmore\n"
