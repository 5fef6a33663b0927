"""`rootsd sync` and agents that read its lists at their start: the lists have an effect there."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rootsd.sync.overrides import AllSettings, WrittenDenials
from rootsd.sync.targets import TARGETS
from support.agent_programs import (
    ClaudeCode,
    Codex,
    CopilotCli,
    OpenCode,
    Servers,
)
from support.agent_world import AgentWorld
from support.polling import until
from support.scripted_model import Call, Shell

pytestmark = pytest.mark.needs("user-namespaces", "npm")
ODD = "R&D, it's s{e}(cr)et"


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


class SyncedOpenCode(OpenCode):
    """opencode, whose own settings get the lists after they were written."""

    def __init__(self, world: AgentWorld) -> None:
        self._world = world

    def configure(self, home: Path, servers: Servers, model: str) -> None:
        """Write the settings, and wait for the lists in them."""
        super().configure(home, servers, model)
        file = home / ".opencode" / "opencode.json"
        before = file.read_text() if file.exists() else None
        self._world.rootsd("sync", "add", self.name)
        until(lambda: file.exists() and file.read_text() != before)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder that is not below /tmp, which the sandboxes of agents leave writable."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        yield Path(name)


def test_commands_of_codex_are_held_to_the_profile(folder: Path) -> None:
    """The kernel refuses them. A sandbox without the profile is the control."""
    odd = """R&D, it's s{e}(cr)et #1 "x" a\\b $HOME"""
    with AgentWorld(folder, ["api", odd]) as world:
        world.rootsd("approve", "api")
        world.rootsd("deny", str(world.parent / odd))
        (world.home / ".codex").mkdir()
        world.rootsd("sync", "add", "codex")
        profile = world.home / ".codex" / "rootsd.config.toml"
        until(lambda: profile.exists() and "filesystem" in profile.read_text())
        read = Shell(f"cat {shlex.quote(f'{world.parent}/{odd}/README.md')}")
        write = Shell(f"echo x >{world.parent}/api/made && echo wrote")
        results = [
            world.play(program, [read, write], {}, world.parent / "api").results
            for program in (SandboxedCodex(), ProfiledCodex())
        ]
        world.rootsd("sync", "rm", "codex")
        assert not profile.exists()
    without, with_profile = results
    assert "the text of R&D" in without[0]
    assert "Permission denied" in with_profile[0]
    assert ("wrote" in without[1], "wrote" in with_profile[1]) == (True, True)


def test_a_trusted_project_of_codex_that_replaces_the_profile_is_named(folder: Path) -> None:
    """Each of these keys does it in the real program. An untrusted project is the control."""
    with AgentWorld(folder, ["api", "secret"]) as world:
        api, home = world.parent / "api", world.home / ".codex"
        world.rootsd("approve", "api")
        world.rootsd("deny", "secret")
        home.mkdir()
        trust = f'[projects."{api}"]\ntrust_level = "trusted"\n'
        (api / ".codex").mkdir()
        read = [
            "codex",
            "-p",
            "rootsd",
            "sandbox",
            "--",
            "cat",
            f"{world.parent}/secret/README.md",
        ]
        opened, said = [], []
        for level, text in (
            ("", 'sandbox_mode = "workspace-write"\n'),
            (trust, 'model = "x"\n'),
            (trust, 'sandbox_mode = "workspace-write"\n'),
            (trust, 'default_permissions = ":workspace"\n'),
            (trust, f'[permissions.rootsd.filesystem]\n"{world.parent}/secret" = "read"\n'),
        ):
            (home / "config.toml").write_text(level)
            (api / ".codex" / "config.toml").write_text(text)
            said.append("can open denied folders" in world.rootsd("sync", "add", "codex"))
            done = world.user.run(read, world.variables(Codex.packages), api)
            opened.append("the text of secret" in done.output)
    assert opened == [False, False, True, True, True]
    assert said == [True, False, True, True, True]  # whether it is trusted is not known


def test_the_settings_of_opencode_are_merged_as_rootsd_merges_them(folder: Path) -> None:
    """`opencode debug config` prints the rules that we compute, in the same order."""
    with AgentWorld(folder, ["api"]) as world:
        api, home = world.parent / "api", world.home
        places = [
            home / ".config/opencode/config.json", home / ".config/opencode/opencode.jsonc",
            home / "added.json", api / "opencode.json", api / "opencode.jsonc",
            api / ".opencode/opencode.json", home / ".opencode/opencode.json",
            home / ".opencode/opencode.jsonc", home / "last/opencode.json",
        ]  # fmt: skip
        settings = [
            {
                "permission": {
                    "external_directory": {f"/{number % 4}": action, f"/x{number}": "ask"}
                }
            }
            for number, action in enumerate(("allow", "deny", "ask") * 3)
        ]
        settings.append({"permission": {"external_directory": {"/1": "deny"}}})
        for place, value in zip(places, settings, strict=False):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(json.dumps(value))
        variables = {
            **world.variables(OpenCode.packages), **OpenCode().environment(""),
            "OPENCODE_CONFIG": str(places[2]), "OPENCODE_CONFIG_DIR": str(places[-1].parent),
            "OPENCODE_CONFIG_CONTENT": json.dumps(settings[-1]),
            "OPENCODE_PERMISSION": '{"external_directory": {"/0": "deny", "/last": "ask"}}',
        }  # fmt: skip
        done = world.user.run(["opencode", "debug", "config"], variables, api)
    merged = json.loads(done.output)["permission"]["external_directory"]
    target = TARGETS["opencode"]
    written = WrittenDenials(target, target.settings_file(str(home), variables), (), variables)
    own = AllSettings(written, str(home)).rules(str(api))
    assert [(rule.pattern, rule.action) for rule in own] == list(merged.items())


def test_file_tools_of_copilot_are_held_to_the_lists(folder: Path) -> None:
    """The sandbox opens the working directory alone. The lists change that, for odd names, too."""
    denied, other = "work/s(e)[c]ret", "work/lib*{x}"
    with AgentWorld(folder, ["work/api", denied, other]) as world:
        world.rootsd("approve", str(world.parent / "work" / "api"))
        world.rootsd("deny", str(world.parent / denied))
        script = [
            Call("view", {"path": str(world.parent / name / "README.md")})
            for name in (denied, other)
        ]
        before = world.play(SandboxedCopilot(), script, {}, world.parent / "work").results
        world.rootsd("sync", "add", "copilot")
        settings = world.home / ".copilot" / "settings.json"
        until(lambda: settings.exists() and "deniedPaths" in settings.read_text())
        after = world.play(SandboxedCopilot(), script, {}, world.parent / "work").results
    blocked = "sandbox is active and blocked"
    assert [blocked in before[step] for step in (0, 1)] == [False, False], before
    assert [blocked in after[step] for step in (0, 1)] == [True, False], after
    assert ("the text of" in before[0], "the text of" in after[1]) == (True, True)


def test_claude_code_denies_odd_names_and_no_others(folder: Path) -> None:
    """The settings of the project allow everything, and do not win."""
    names = [ODD, "st*r[x]", "star"]
    with AgentWorld(folder, ["api", *names]) as world:
        for name in names[:2]:
            world.rootsd("deny", str(world.parent / name))
        script = [
            Call("Read", {"file_path": str(world.parent / name / "README.md")}) for name in names
        ]
        theirs = {"permissions": {"allow": ["Read"], "additionalDirectories": [str(world.parent)]}}
        for name in ("settings.json", "settings.local.json"):
            (world.parent / ".claude").mkdir(exist_ok=True)
            (world.parent / ".claude" / name).write_text(json.dumps(theirs))
        before = world.play(ClaudeCode(), script, {}, world.parent).results
        (world.home / ".claude").mkdir(exist_ok=True)
        world.rootsd("sync", "add", "claude-code")
        after = world.play(ClaudeCode(), script, {}, world.parent).results
    opened = ["the text of" in results[step] for results in (before, after) for step in range(3)]
    assert opened == [True, True, True, False, False, True], (before, after)


def test_file_tools_of_opencode_are_held_to_the_lists(folder: Path) -> None:
    """It opens everything that nobody denies.

    The project's own settings for opencode open every folder, and do not win.
    """
    with AgentWorld(folder, ["api", "lib", ODD]) as world:
        world.rootsd("approve", "api")
        world.rootsd("deny", str(world.parent / ODD))
        theirs = {"permission": {"external_directory": "allow"}}
        (world.parent / "api" / "opencode.json").write_text(json.dumps(theirs))
        script = [
            Call("read", {"filePath": str(world.parent / name / "README.md")})
            for name in ("lib", ODD)
        ]
        before = world.play(OpenCode(), script, {}, world.parent / "api").results
        synced = SyncedOpenCode(world)
        after = world.play(synced, script, {}, world.parent / "api").results
    opened = ["the text of" in results[step] for results in (before, after) for step in (0, 1)]
    assert opened == [True, True, True, False], (before, after)
