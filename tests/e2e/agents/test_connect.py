"""`rootsd connect` and the real clients: connected, followed, and disconnected again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from support import node_packages
from support.agent_programs import PROGRAMS, AgentProgram, Server, Servers
from support.agent_world import ROOTSD, AgentWorld
from support.guard_settings import NO_GUARD
from support.scripted_model import Call, Responses, Shell

pytestmark = pytest.mark.needs("user-namespaces", "npm")
# The name of each program in `rootsd connect`, and its settings.
CLIENTS = {
    "claude": ("claude-code", ".claude.json"),
    "codex": ("codex", ".codex/config.toml"),
    "gemini": ("gemini", ".gemini/settings.json"),
    "copilot": ("copilot", ".copilot/mcp-config.json"),
    "opencode": ("opencode", ".config/opencode/opencode.json"),
    "qwen": ("qwen", ".qwen/settings.json"),
    "cline": ("cline", ".cline/data/settings/cline_mcp_settings.json"),
}
# The listings of these programs start no server.
ONLY_LISTED = ("codex", "copilot", "cline")


class DefaultPlaces(AgentWorld):
    """A world in which rootsd finds its daemon without a variable, as for most people."""

    def __init__(self, folder: Path, projects: Sequence[str]) -> None:
        super().__init__(folder, projects)
        settings = self.home / ".config/rootsd/config.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(NO_GUARD)

    def variables(self, packages: str = "") -> dict[str, str]:
        """Return the environment without ROOTSD_DIR, which some clients withhold from servers."""
        found = super().variables(packages)
        del found["ROOTSD_DIR"]
        return found


class Connected:
    """An agent program that `connect` configures after its own settings were written."""

    def __init__(self, program: AgentProgram, connect: Callable[[], object]) -> None:
        self.name, self.label = program.name, program.label
        self.speaks_mcp = program.speaks_mcp
        self.packages, self.package = program.packages, program.package
        self.sets = program.sets
        self._program, self._connect = program, connect

    def configure(self, home: Path, servers: Servers, model: str) -> None:
        """Write the settings of the program, and connect it."""
        self._program.configure(home, servers, model)
        self._connect()

    def command(self, prompt: str) -> list[str]:
        """Return the words that run one prompt."""
        return self._program.command(prompt)

    def environment(self, model: str) -> dict[str, str]:
        """Return the variables of the program."""
        return self._program.environment(model)


def filesystem_server() -> Server:
    """Return server-filesystem of the MCP project, which takes its folders from the roots."""
    package = node_packages.packages() / "node_modules/@modelcontextprotocol/server-filesystem"
    return Server((str(node_packages.node()), str(package / "dist" / "index.js")))


def items(world: AgentWorld, program: AgentProgram, *words: str) -> list[dict[str, Any]]:
    """Return what a command prints with the agent programs on the PATH."""
    variables = {**world.variables(program.packages), **program.environment("http://127.0.0.1:1")}
    done = world.user.run(("rootsd", *words, "--json"), variables, world.parent)
    assert done.status == 0, done.output
    found: list[dict[str, Any]] = json.loads(done.output)["items"]
    return found


@pytest.mark.parametrize("name", CLIENTS)
def test_a_connected_client_follows_decisions_until_it_is_disconnected(
    name: str, tmp_path: Path
) -> None:
    program, (client, place) = PROGRAMS[name], CLIENTS[name]
    with DefaultPlaces(tmp_path, ["api", "old", "web"]) as world:
        settings = world.home / place
        world.rootsd("approve", "api", "old", "--yes")
        texts: list[bytes] = []
        answers: list[str] = []

        trust = world.home / ".gemini" / "trustedFolders.json"  # it starts no server elsewhere
        trust.parent.mkdir()
        trust.write_text(json.dumps({str(world.parent): "TRUST_FOLDER"}))

        def connect() -> None:
            texts.append(settings.read_bytes())
            said = world.rootsd("connect", client, "--wrap", "--no-confine", "--yes")
            texts.append(settings.read_bytes())
            (item,) = (
                item for item in items(world, program, "clients") if item["client"] == client
            )
            answers.append(f"{item['answers']} {item['reason'] or ''}".strip())
            assert [each["name"] for each in item["wrapped"]] == ["files"], said

        def decide() -> None:
            world.rootsd("approve", "web")
            world.rootsd("deny", "old")

        script = [
            Call("list_roots"),
            Call("list_allowed_directories", before=decide),
            Call("list_roots"),
            Call("list_allowed_directories"),
        ]
        model = world.play(
            Connected(program, connect), script, {"files": filesystem_server()}, world.parent
        )
        texts.append(settings.read_bytes())
        world.rootsd("disconnect", client)
        left = settings.read_bytes()
    first, _, second, files = (model.results[step] for step in range(4))
    paths = [str(world.parent / name) for name in ("api", "old", "web")]
    assert [path in first for path in paths] == [True, True, False], first
    assert [path in second for path in paths] == [True, False, True], second
    assert [path in files for path in paths] == [True, False, True], files
    assert answers == ["listed" if name in ONLY_LISTED else "connected"]
    before, connected, used = texts
    command = str(ROOTSD).encode()  # the path of the checkout may have the word rootsd, too
    assert command in connected
    assert command not in left
    if used == connected:  # the client has not written its settings meanwhile
        assert left == before


@pytest.mark.parametrize("is_required", [True, False])
def test_the_first_request_of_codex_has_our_tools(tmp_path: Path, *, is_required: bool) -> None:
    """Codex waits for a slow start because the entry says so. Without that, it does not."""
    with DefaultPlaces(tmp_path, ["api"]) as world:
        settings = world.home / ".codex" / "config.toml"
        slow = world.home / "slow"
        slow.write_text(f'#!/bin/sh\nsleep 4\nexec {ROOTSD} "$@"\n')
        slow.chmod(0o755)

        def connect() -> None:
            world.rootsd("connect", "codex", "--yes")
            text = settings.read_text()
            assert "required = true\n" in text
            text = text if is_required else text.replace("required = true\n", "")
            settings.write_text(text.replace(f'"{ROOTSD}"', f'"{slow}"'))

        program = Connected(PROGRAMS["codex"], connect)
        first = world.play(program, [Shell("true")], {}, world.parent / "api").requests[0]
    offered = [tool.full_name for tool in Responses().tools(first)]
    assert any(name.endswith("list_roots") for name in offered) is is_required, offered
