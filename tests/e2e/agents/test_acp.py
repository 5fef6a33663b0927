"""Real agents that speak ACP behind `rootsd acp`, with and without the wall."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import acp_driver
from support.agent_programs import EDITORS, Servers
from support.agent_world import ROOTSD, AgentWorld
from support.confined_agents import ConfinedProgram, draw_dot, editing, reading
from support.polling import until
from support.real_servers import SERVERS
from support.scripted_model import LATER, Call, Json, Shell, Step
from support.sizes import Size

pytestmark = pytest.mark.needs("user-namespaces", "npm", "wall")


@dataclass(frozen=True)
class Speaker:
    """A program that speaks ACP: its words, and the package set with it.

    `takes_folders` says whether a session can have more folders than its own, and `uses_client`
    whether it reads and writes files through the client.
    """

    words: tuple[str, ...]
    packages: str
    takes_folders: bool = False
    uses_client: bool = False


SPEAKERS = {
    "claude": Speaker(("claude-agent-acp",), "acp", takes_folders=True),
    "codex": Speaker(("codex-acp",), "acp", takes_folders=True),
    "opencode": Speaker(("opencode", "acp"), "five"),
    "gemini": Speaker(
        ("gemini", "-m", "gemini-2.5-pro", "--skip-trust", "--acp"), "five", uses_client=True
    ),
    "qwen": Speaker(("qwen", "--acp", "--auth-type", "openai"), "qwen", uses_client=True),
}
COMMIT = "git -c user.name=a -c user.email=a@b commit -m edited"


class RelayedProgram(ConfinedProgram):
    """A program that speaks ACP behind the relay, and its client in front.

    Each session has `servers`.
    """

    def __init__(self, name: str, world: AgentWorld, *options: str, **servers: list[str]) -> None:
        super().__init__(EDITORS[name], *options)
        self.packages = SPEAKERS[name].packages
        variables = {"name": "ROOTSD_DIR", "value": str(world.directory)}
        folders = ("api", "secret") if servers else ("api", "secret", "late")
        self._plan = {
            "result": str(world.folder / "result.json"),
            "servers": [
                {"name": name, "command": words[0], "args": words[1:], "env": [variables]}
                for name, words in servers.items()
            ],
            **{name: str(world.parent / name) for name in folders},
        }

    def command(self, prompt: str) -> list[str]:
        """Return the words that start the client."""
        relay = [str(ROOTSD), "acp", *self._options, "--", *SPEAKERS[self.name].words]
        plan = json.dumps({**self._plan, "prompt": prompt})
        return [sys.executable, acp_driver.__file__, plan, *relay]

    def environment(self, model: str) -> dict[str, str]:
        """Return the variables of the program."""
        endpoint = {"OPENAI_API_KEY": "dummy", "OPENAI_BASE_URL": f"{model}/v1"}
        return {**super().environment(model), **endpoint, "OPENAI_MODEL": "scripted-1"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let most agents take part only in `make soak`."""
    if "name" in metafunc.fixturenames:
        is_soak = metafunc.config.getoption("--sizes") == Size.SOAK
        metafunc.parametrize("name", list(SPEAKERS) if is_soak else ["claude", "opencode"])


@pytest.mark.parametrize("flags", [(), ("--confine",)], ids=["relay", "wall"])
def test_an_agent_works_in_approved_folders_only(
    name: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    """A folder that is approved later joins the session. Without the wall, the relay bounds no
    reads of the agent's own tools. That is the control, too.
    """
    speaker = SPEAKERS[name]
    with AgentWorld(tmp_path, ["api", "secret", "late"]) as world:
        world.rootsd("approve", "api")
        api, secret, late = (world.parent / each for each in ("api", "secret", "late"))
        draw_dot(api / "dot.png")
        script: list[Step] = [
            *reading(EDITORS[name], api)[1:],
            editing(EDITORS[name], api),
            Shell(f"grep edited README.md && git add . && {COMMIT}; {LATER}"),
            Shell(f"cat {secret}/README.md; {LATER}"),
            Shell(f"cat {late}/README.md; {LATER}"),
        ]
        if speaker.takes_folders:
            threading.Thread(target=approve_when_asked, args=(world, late)).start()
        model = world.play(RelayedProgram(name, world, *flags), script, {}, world.parent)
        found = json.loads((tmp_path / "result.json").read_text())
    assert found["refused"]["error"]["code"] == -32602
    assert f"rootsd approve {secret}" in found["refused"]["error"]["message"]
    assert found["stopped"]["result"]["stopReason"] == "end_turn"
    assert " changed" in model.results[2]
    assert ("the text of secret" in model.results[3]) == (not flags)
    assert ("resumed" in found) == speaker.takes_folders
    if speaker.takes_folders:
        assert f"rootsd approve {late}" in found["early"]["error"]["message"]
        assert "result" in found["resumed"], found["resumed"]
    is_open = speaker.takes_folders or not flags
    assert ("the text of late" in model.results[4]) == is_open
    assert bool(found["served"]) == (speaker.uses_client and not flags)


def approve_when_asked(world: AgentWorld, folder: Path) -> None:
    """Approve a folder as soon as a session asks for it."""

    def is_asked_for() -> bool:
        found = [item for item in world.items("pending") if item["path"] == str(folder)]
        return "asks for it" in str(found)

    until(is_asked_for)
    world.rootsd("approve", folder.name)


def test_codex_asks_behind_the_wall_before_a_command_gets_the_network(tmp_path: Path) -> None:
    """The second command is the control: the network is there, if the person allows it."""
    with AgentWorld(tmp_path, ["api", "secret"]) as world:
        world.rootsd("approve", "api")
        command = connecting(world)
        wanted: dict[str, Json] = {"cmd": command, "sandbox_permissions": "require_escalated"}
        script: list[Step] = [
            Shell(command),
            Call("exec_command", {**wanted, "justification": "a test"}),
            Shell("echo edited > README.md && git add . && git status --short"),
        ]
        program = RelayedProgram("codex", world, "--confine", tools=["true"])
        model = world.play(program, script, {}, world.parent)
        asked = json.loads((tmp_path / "result.json").read_text())["asked"]
    assert "PermissionError" in model.results[0], model.results
    assert len(asked) == 1, asked
    assert "open" in model.results[1]
    assert "A  README.md" in model.results[2]


def connecting(world: AgentWorld) -> str:
    """Return a command that connects to the model."""
    host, port = world.user.listening.getsockname()
    opening = f'import socket; socket.create_connection(("{host}", {port})); print("open")'
    return f"python3 -c '{opening}'"


class LaterSession(RelayedProgram):
    """A program whose settings outside are as they were."""

    def configure(self, home: Path, servers: Servers, model: str) -> None:
        """Leave the settings alone."""


def test_a_command_of_codex_opens_no_network_for_later_sessions(tmp_path: Path) -> None:
    with AgentWorld(tmp_path, ["api", "secret"]) as world:
        world.rootsd("approve", "api")
        own, opened = "~/.codex/config.toml", "network.enabled = true"
        plant: list[Step] = [
            Shell(
                f"sed -i 's/enabled = false/enabled = true/' {own}; grep 'enabled = true' {own}"
            ),
            Shell(f"mkdir .codex; echo permissions.rootsd-wall.{opened} > .codex/config.toml"),
        ]
        first = RelayedProgram("codex", world, "--confine", tools=["true"])
        assert "enabled = true" in world.play(first, plant, {}, world.parent).results[0]
        later = LaterSession("codex", world, "--confine", tools=["true"])
        script: list[Step] = [Shell("cat .codex/config.toml"), Shell(connecting(world))]
        model = world.play(later, script, {}, world.parent)
    assert opened in model.results[0]
    assert "PermissionError" in model.results[1], model.results


@pytest.mark.parametrize("flags", [("--wrap-servers",), ()], ids=["wrapped", "control"])
def test_the_servers_of_a_session_follow_it(flags: tuple[str, ...], tmp_path: Path) -> None:
    """In the control, the server stays in the checkout where the session began."""
    status = Call("git_status", {"repo_path": "."})
    with AgentWorld(tmp_path, ["api", "secret"]) as world:
        world.rootsd("approve", "api")
        api = world.parent / "api"
        world.run_as_person("sh", "-c", f"cd {api} && git add . && {COMMIT}")
        script: list[Step] = [status, Call("EnterWorktree", {"name": "fix"}), status]
        place = "{root}" if flags else "."
        words = [word.replace("{root}", place) for word in SERVERS["mcp-server-git"].command()]
        program = RelayedProgram("claude", world, *flags, git=words)
        model = world.play(program, script, {}, world.parent)
    assert "On branch worktree-fix" not in model.results[0]
    assert ("On branch worktree-fix" in model.results[2]) == bool(flags), model.results
