"""Worktrees that real agent programs make of an approved checkout, and their end."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from support.agent_programs import AgentProgram, ClaudeCode, Cline, Codex, Servers
from support.agent_world import AgentWorld
from support.polling import until
from support.scripted_model import Call, Shell, Step

pytestmark = pytest.mark.needs("user-namespaces", "npm", "birth-times")
LIMIT_S = 10
MARK = "(in this workspace)"


class InWorktree:
    """An agent program that makes a worktree at its start, because of the words `option`."""

    def __init__(self, program: AgentProgram, *option: str) -> None:
        self.name, self.label = program.name, program.label
        self.speaks_mcp = program.speaks_mcp
        self.packages, self.package = program.packages, program.package
        self.sets = program.sets
        self._program, self._option = program, option

    def configure(self, home: Path, servers: Servers, model: str) -> None:
        """Write the settings of the program."""
        self._program.configure(home, servers, model)

    def command(self, prompt: str) -> list[str]:
        """Return the words that run one prompt in a new worktree."""
        return [*self._program.command(prompt), *self._option]

    def environment(self, model: str) -> dict[str, str]:
        """Return the variables of the program."""
        return self._program.environment(model)


class MadeByRootsd(ClaudeCode):
    """Claude Code whose worktrees rootsd makes and deletes."""

    def __init__(self, world: AgentWorld) -> None:
        self._world = world

    def configure(self, home: Path, servers: Servers, model: str) -> None:
        """Write the settings, and connect the client as a person does."""
        super().configure(home, servers, model)
        self._world.rootsd("connect", "claude-code", "--hook", "--make-worktrees")


IN_CLAUDE = ".claude/worktrees"
IN_CODEX = ".codex/worktrees"
IN_CLINE = ".cline/worktrees"


def commit(project: Path) -> None:
    """Commit what is in `project`, since a worktree needs a commit."""
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", "-C", project, "add", "."], check=True)
    subprocess.run(["git", "-C", project, *identity, "commit", "-qm", "first"], check=True)


def worktrees(project: Path) -> list[Path]:
    """Return the worktrees that git made of `project`."""
    listed = subprocess.run(
        ["git", "-C", project, "worktree", "list", "--porcelain"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    lines = listed.stdout.splitlines()
    return [Path(line.split(" ", 1)[1]) for line in lines if line.startswith("worktree ")][1:]


def roots(world: AgentWorld) -> set[Path]:
    """Return the paths of the published roots."""
    return {Path(item["path"]) for item in world.items("ls", "--published")}


def wait_for(world: AgentWorld, *expected: Path) -> None:
    """Wait until exactly these are the published roots. The sweep alone would take a minute."""
    began = time.monotonic()
    until(lambda: roots(world) == set(expected))
    assert time.monotonic() - began < LIMIT_S


def remove(project: Path, tree: Path) -> None:
    """Remove a worktree, even if an agent that has ended left a lock on it."""
    subprocess.run(["git", "-C", project, "worktree", "remove", "-f", "-f", tree], check=True)


@pytest.mark.parametrize(
    ("program", "folder"),
    [
        (InWorktree(ClaudeCode(), "--worktree", "fix"), f"src/api/{IN_CLAUDE}"),
        (InWorktree(Codex(), "--worktree"), f"home/{IN_CODEX}"),
        (InWorktree(Cline(), "--worktree"), f"home/{IN_CLINE}"),
    ],
    ids=["claude", "codex", "cline"],
)
def test_a_worktree_made_at_the_start_is_a_root_until_it_is_removed(
    program: InWorktree, folder: str, tmp_path: Path
) -> None:
    with AgentWorld(tmp_path, ["api"]) as world:
        api = world.parent / "api"
        commit(api)
        # Outside the checkout, a worktree needs a parent. The folder does not exist yet.
        world.rootsd("connect", "codex", "cline", "--yes")
        world.rootsd("approve", "api")
        wait_for(world, api)
        begins = Shell("pwd", before=lambda: wait_for(world, api, *worktrees(api)))
        script: list[Step] = [begins, Call("list_roots")]
        model = world.play(program, script, {"rootsd": world.bridge()}, api)
        (tree,) = worktrees(api)
        assert tree.is_relative_to(tmp_path / folder)
        assert str(tree) in model.results[0]
        assert str(tree) in model.results[1]
        remove(api, tree)
        wait_for(world, api)


def test_a_worktree_made_in_a_session_is_a_root_until_the_agent_leaves_it(tmp_path: Path) -> None:
    with AgentWorld(tmp_path, ["api"]) as world:
        api = world.parent / "api"
        tree = api / IN_CLAUDE / "fix"
        commit(api)
        world.rootsd("approve", "api")
        script = [
            Call("EnterWorktree", {"name": tree.name}),
            Call("list_roots", before=lambda: wait_for(world, api, tree)),
            Call("ExitWorktree", {"action": "remove"}),
            Call("list_roots", before=lambda: wait_for(world, api)),
        ]
        model = world.play(ClaudeCode(), script, {"rootsd": world.bridge()}, api)
        assert not tree.exists()
    assert [MARK in line for line in model.results[1].splitlines() if f"{api} " in line] == [False]
    assert [MARK in line for line in model.results[1].splitlines() if f"{tree} " in line] == [True]
    assert str(tree) not in model.results[3]
    assert [MARK in line for line in model.results[3].splitlines() if f"{api} " in line] == [True]


def test_claude_code_takes_its_worktrees_from_rootsd_and_its_refusals(tmp_path: Path) -> None:
    """Claude Code itself would take over a branch that is in use."""
    with AgentWorld(tmp_path, ["api"]) as world:
        api = world.parent / "api"
        tree = api / IN_CLAUDE / "fix"
        commit(api)
        subprocess.run(["git", "-C", api, "switch", "-qc", "worktree-taken"], check=True)
        world.rootsd("approve", "api")
        script = [
            Call("EnterWorktree", {"name": "taken"}),
            Call("EnterWorktree", {"name": tree.name}),
            Call("list_roots", before=lambda: wait_for(world, api, tree)),
            Call("ExitWorktree", {"action": "remove", "discard_changes": True}),
            Call("list_roots", before=lambda: wait_for(world, api)),
        ]
        model = world.play(MadeByRootsd(world), script, {"rootsd": world.bridge()}, api)
        assert not tree.exists()
    assert "rootsd: git worktree failed" in model.results[0]
    assert str(tree) in model.results[2]
    assert str(tree) not in model.results[4]
