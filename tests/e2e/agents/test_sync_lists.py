"""`rootsd sync` and agents that read its lists at their start: the lists have an effect there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.agent_programs import Codex, CopilotCli
from support.agent_world import AgentWorld
from support.polling import until
from support.scripted_model import Call, Shell

pytestmark = pytest.mark.needs("user-namespaces", "npm")


class ProfiledCodex(Codex):
    """Codex in its own sandbox, with the profile that rootsd writes."""

    def command(self, prompt: str) -> list[str]:
        """Return the words that run one prompt."""
        return ["codex", "exec", "--skip-git-repo-check", "-p", "rootsd", prompt]


class SandboxedCodex(Codex):
    """Codex in its own sandbox, without the profile."""

    def command(self, prompt: str) -> list[str]:
        """Return the words that run one prompt."""
        return ["codex", "exec", "--skip-git-repo-check", "-s", "workspace-write", prompt]


class SandboxedCopilot(CopilotCli):
    """Copilot CLI in its own sandbox, which also holds its file tools to the lists."""

    def command(self, prompt: str) -> list[str]:
        """Return the words that run one prompt."""
        copilot, *words = super().command(prompt)
        return [copilot, "--experimental", "--sandbox", *words]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder that is not below /tmp, which the sandboxes of agents leave writable."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        yield Path(name)


def test_commands_of_codex_are_held_to_the_profile(folder: Path) -> None:
    """The kernel refuses them. A sandbox without the profile is the control."""
    with AgentWorld(folder, ["api", "lib", "secret"]) as world:
        world.rootsd("approve", "api")
        world.rootsd("approve", "lib", "--tag", "work")
        world.rootsd("deny", "secret")
        (world.home / ".codex").mkdir()
        world.rootsd("sync", "add", "codex", "--only", "tag:work")
        profile = world.home / ".codex" / "rootsd.config.toml"
        until(lambda: profile.exists() and "workspace_roots" in profile.read_text())
        read = Shell(f"cat {world.parent}/secret/README.md")
        write = Shell(f"echo x >{world.parent}/lib/made && echo wrote")
        results = [
            world.play(program, [read, write], {}, world.parent / "api").results
            for program in (SandboxedCodex(), ProfiledCodex())
        ]
        world.rootsd("sync", "rm", "codex")
        assert not profile.exists()
    without, with_profile = results
    assert "the text of secret" in without[0]
    assert "wrote" not in without[1]
    assert "Permission denied" in with_profile[0]
    assert "wrote" in with_profile[1]


def test_file_tools_of_copilot_are_held_to_the_lists(folder: Path) -> None:
    """The sandbox opens the working directory alone. The lists change that, for odd names, too."""
    denied, granted = "work/s(e)[c]ret", "lib*{x}"
    with AgentWorld(folder, ["work/api", denied, granted]) as world:
        world.rootsd("approve", str(world.parent / "work" / "api"))
        world.rootsd("approve", str(world.parent / granted), "--tag", "work")
        world.rootsd("deny", str(world.parent / denied))
        script = [
            Call("view", {"path": str(world.parent / name / "README.md")})
            for name in (denied, granted)
        ]
        before = world.play(SandboxedCopilot(), script, {}, world.parent / "work").results
        world.rootsd("sync", "add", "copilot", "--only", "tag:work")
        settings = world.home / ".copilot" / "settings.json"
        until(lambda: settings.exists() and "readwritePaths" in settings.read_text())
        after = world.play(SandboxedCopilot(), script, {}, world.parent / "work").results
    blocked = "sandbox is active and blocked"
    assert [blocked in before[step] for step in (0, 1)] == [False, True], before
    assert [blocked in after[step] for step in (0, 1)] == [True, False], after
    assert ("the text of" in before[0], "the text of" in after[1]) == (True, True)
