"""`rootsd sync` and agents that read its lists at their start: the lists have an effect there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.agent_programs import Codex
from support.agent_world import AgentWorld
from support.polling import until
from support.scripted_model import Shell

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
