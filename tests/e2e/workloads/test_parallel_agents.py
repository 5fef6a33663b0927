"""Twenty agents at once, in worktrees of three repositories: each pushes and sees its own."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.agent_world import ROOTSD
from support.isolated_user import Running
from support.node_packages import TOP
from support.polling import until
from support.sizes import Sizes
from support.workloads import Workplace, workloads

pytestmark = pytest.mark.needs("sshd", "user-namespaces", "wall")

_REPOSITORIES = ("api", "web", "docs")
_MAKE = """
set -e
cd ~/src
for repo in api web docs; do
  git init -q $repo; cd $repo; echo $repo > README; git add .; git commit -qm first; cd ..
  git clone -q --bare $repo ~/git/$repo.git
  git -C $repo remote add origin "ssh://127.0.0.1:2222$HOME/git/$repo.git"
done
"""
# These are in docs/guide/wall.md.
_WORKTREE = "git -C ~/src/$repo worktree add ~/src/$repo-$n -b agent-$n"
_AGENT = "rootsd confine -- "
# What an agent does once all of them run: `.go` is a named pipe.
_DAY = """
set -e
read -r word < .go
echo "sees: $(cat ~/src/*/own ~/src/*/README | sort -u | xargs)"
echo $repo-$n > work; git add work; git commit -qm "work of $repo-$n"; git push -q origin HEAD
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workplace]:
    with Workplace(tmp_path) as place:
        server = workloads()["git-push-ssh"].home  # which starts an sshd
        done = place.run_as_person("bash", "-c", f"cd ~; {server} {_MAKE}")
        assert done.status == 0, done.output
        paths = [str(place.parent / name) for name in _REPOSITORIES]
        place.rootsd("approve", "--yes", *paths)
        yield place


def make_worktrees(place: Workplace, agents: list[tuple[str, int]]) -> None:
    """Make the worktrees, as the guide does, and wait until they are published."""
    for repo, number in agents:
        done = place.run_as_person("bash", "-c", f"repo={repo} n={number}; {_WORKTREE}")
        assert done.status == 0, done.output
        tree = place.parent / f"{repo}-{number}"
        (tree / "own").write_text(f"{tree.name}\n")
        os.mkfifo(tree / ".go")
    names = {f"{repo}-{number}" for repo, number in agents}
    until(lambda: names <= place.published())


def start(place: Workplace, repo: str, number: int, wall: str) -> Running:
    """Start an agent in its worktree."""
    tree = place.parent / f"{repo}-{number}"
    words = f"export repo={repo} n={number}; {wall}bash -c {shlex.quote(_DAY)}"
    command = words.replace("rootsd", str(ROOTSD), 1)
    return place.user.start(["bash", "-c", command], place.variables(), tree)


def play(place: Workplace, agents: list[tuple[str, int]], wall: str) -> dict[str, str]:
    """Run all agents at once, and return what each one printed."""
    running = {f"{repo}-{number}": start(place, repo, number, wall) for repo, number in agents}
    with ExitStack() as opened:
        # Opening a named pipe waits for its reader. So no agent goes on before all of them run.
        pipes = [opened.enter_context((place.parent / name / ".go").open("w")) for name in running]
        for pipe in pipes:
            pipe.write("go\n")
    printed = {}
    for name, each in running.items():
        done = each.wait()
        assert done.status == 0, (name, done.output)
        printed[name] = next(
            line.removeprefix("sees: ")
            for line in done.output.splitlines()
            if line.startswith("sees: ")
        )
    return printed


def test_each_pushes_its_branch_and_sees_nothing_of_the_others(
    place: Workplace, sizes: Sizes
) -> None:
    count = sizes.pick(test=2, check=20, soak=20)
    agents = [(_REPOSITORIES[each % 3], each // 3 + 1) for each in range(count)]
    make_worktrees(place, agents)
    seen = play(place, agents, _AGENT)
    expected = {f"{repo}-{number}": {repo, f"{repo}-{number}"} for repo, number in agents}
    assert {name: set(words.split()) for name, words in seen.items()} == expected
    for repo, number in agents:
        bare = place.home / "git" / f"{repo}.git"
        log = place.run_as_person("git", "-C", bare, "log", "--format=%s", f"agent-{number}")
        assert log.output.splitlines() == [f"work of {repo}-{number}", "first"]
    for repo in _REPOSITORIES:
        fsck = place.run_as_person("git", "-C", place.parent / repo, "fsck", "--strict")
        assert fsck.status == 0, fsck.output
        branches = place.run_as_person("git", "-C", place.parent / repo, "branch").output
        assert branches.count("agent-") == sum(each == repo for each, _ in agents)


def test_control_outside_an_agent_sees_the_others(place: Workplace) -> None:
    agents = [("api", 1), ("web", 1)]
    make_worktrees(place, agents)
    seen = play(place, agents, "")
    assert seen["api-1"] == seen["web-1"] == "api api-1 docs other web web-1"


def test_the_guide_shows_these_commands() -> None:
    guide = (TOP / "docs" / "guide" / "wall.md").read_text()
    assert _WORKTREE in guide
    assert _AGENT in guide
