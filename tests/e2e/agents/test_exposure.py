"""`rootsd exposure` and the real clients: they read the same settings in the same way."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from support.agent_access import CarefulClaude
from support.agent_world import ROOTSD, AgentWorld
from support.isolated_user import Finished
from support.scripted_model import Call, Shell, Step

pytestmark = pytest.mark.needs("user-namespaces", "npm")
GONE = "/opt/gone/server"
LISTINGS = {
    "claude-code": ("claude", "mcp", "list"),
    "codex": ("codex", "mcp", "list"),
    "gemini": ("gemini", "mcp", "list"),
    "opencode": ("opencode", "mcp", "list"),
}
SETTINGS = {
    "claude-code": ".claude.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
}
SERVERS: dict[str, dict[str, object] | str] = {
    "claude-code": {"mcpServers": {"gone": {"command": GONE}}, "mcpServer": {"lost": {}}},
    "codex": f'[mcp_servers.gone]\ncommand = "{GONE}"\n[mcp_server.lost]\ncommand = "{GONE}"\n',
    "gemini": {"mcpServers": {"gone": {"command": GONE}}, "mcpServer": {"lost": {}}},
    "opencode": {"mcp": {"gone": {"type": "local", "command": [GONE]}}},
}
# What each client says about a server whose program is gone, if its listing starts servers.
FAILED = {
    "claude-code": "gone: .*Failed to connect", "gemini": "gone: .*Disconnected",
    "opencode": "gone.*failed",
}  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> Iterator[AgentWorld]:
    """Yield a world with one project."""
    with AgentWorld(tmp_path, ["api"]) as made:
        yield made


def _write(world: AgentWorld, file: str, content: Mapping[str, object] | str) -> Path:
    path = world.home / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
    return path


def _run(world: AgentWorld, *words: str) -> Finished:
    variables = {
        **world.variables("five"), "ANTHROPIC_API_KEY": "dummy", "DISABLE_AUTOUPDATER": "1",
        "GEMINI_API_KEY": "dummy", "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }  # fmt: skip
    return world.user.run(words, variables, world.parent / "api")


def _findings(world: AgentWorld) -> dict[str, set[str]]:
    """Return the kinds of findings of each agent and server."""
    done = _run(world, str(ROOTSD), "exposure", "--json")
    items = json.loads(done.output)["items"]
    return {item["name"]: {each["kind"] for each in item["findings"]} for item in items}


@pytest.mark.parametrize("client", LISTINGS)
def test_a_client_lists_the_servers_that_exposure_lists(world: AgentWorld, client: str) -> None:
    _write(world, SETTINGS[client], SERVERS[client])
    found = _findings(world)
    shown = _run(world, *LISTINGS[client]).output
    servers = {name for name in found if name.startswith(f"{client}/")}
    assert servers == {f"{client}/gone"}
    assert "gone" in shown
    assert "lost" not in shown
    assert found[f"{client}/gone"] == {"program-gone"}
    assert re.search(FAILED.get(client, "gone"), shown)


@pytest.mark.parametrize("client", LISTINGS)
def test_a_client_refuses_the_file_that_exposure_calls_invalid(
    world: AgentWorld, client: str
) -> None:
    broken = "sandbox_mode = read-only" if client == "codex" else '{"mcpServers": {'
    file = _write(world, SETTINGS[client], "" if client == "codex" else "{}")
    assert "invalid-file" not in _findings(world)[client]
    assert _run(world, *LISTINGS[client]).status == 0
    file.write_text(broken)
    assert "invalid-file" in _findings(world)[client]
    assert _run(world, *LISTINGS[client]).status != 0


# A rule that Claude Code allows, or its sandbox, and what then reads a file elsewhere.
RULES: list[tuple[str, Step]] = [
    ("Bash(git:*)", Shell("git -c alias.x='!cat FILE' x")),
    ("Bash(make *)", Shell("make --eval 'x:;@cat FILE' x")),
    ("Bash(timeout:*)", Shell("timeout 5 python3 -c 'print(open(\"FILE\").read())'")),
    ("Bash(tar:*)", Shell("tar cO FILE")),
    ("Bash(cat:*)", Shell("cat FILE")),
    ("Bash(cp:*)", Shell("cp FILE x && cat x")),
    ("Bash(git status)", Shell("git -c alias.x='!cat FILE' x")),
    ("Read(~/**)", Call("Read", {"file_path": "FILE"})),
    ("Edit(~/**)", Call("Read", {"file_path": "FILE"})),
    ("Read(**)", Call("Read", {"file_path": "FILE"})),
    ("Write(~/**)", Call("Read", {"file_path": "FILE"})),
]


_SCRIPT = Shell("python3 -c 'print(open(\"FILE\").read())'")
_BOXED, _NO_QUESTION = {"enabled": True}, {"autoAllowBashIfSandboxed": True}
SANDBOXES: list[tuple[Mapping[str, object], Step]] = [
    (_BOXED, _SCRIPT),
    (_NO_QUESTION, _SCRIPT),
    ({**_BOXED, **_NO_QUESTION}, _SCRIPT),
    ({**_BOXED, **_NO_QUESTION, "filesystem": {"denyRead": ["~/"]}}, _SCRIPT),
]


def _in_file(step: Step, file: Path) -> Step:
    if isinstance(step, Shell):
        return Shell(step.command.replace("FILE", str(file)))
    return Call("Read", {"file_path": str(file)})


def test_a_rule_of_claude_code_allows_what_exposure_says(world: AgentWorld) -> None:
    _compare_reads(world, [({"permissions": {"allow": [rule]}}, step) for rule, step in RULES])


@pytest.mark.needs("bubblewrap", "socat")
def test_the_sandbox_of_claude_code_reads_what_exposure_says(world: AgentWorld) -> None:
    _compare_reads(world, [({"sandbox": settings}, step) for settings, step in SANDBOXES])


def _compare_reads(world: AgentWorld, cases: Iterable[tuple[Mapping[str, object], Step]]) -> None:
    """Compare what Claude Code reads without a question with what exposure says, in each case."""
    file = _write(world, "elsewhere/notes.txt", "the text elsewhere")
    really, told = {}, {}
    for settings, step in cases:
        case = json.dumps(settings)
        _write(world, ".claude/settings.json", settings)
        model = world.play(CarefulClaude(), [_in_file(step, file)], {}, world.parent / "api")
        really[case] = "the text elsewhere" in model.results[0]
        items = json.loads(_run(world, str(ROOTSD), "exposure", "--json").output)["items"]
        told[case] = next(i for i in items if i["name"] == "claude-code")["reads"]["extent"]
    assert {case: extent == "everything" for case, extent in told.items()} == really
    assert set(really.values()) == {True, False}


@pytest.mark.parametrize("wins", ["deny", "allow"])
def test_opencode_merges_the_rules_as_exposure_reads_them(world: AgentWorld, wins: str) -> None:
    first = {"permission": {"external_directory": {"/srv/**": "deny"}}}
    second = {"permission": {"external_directory": {"*": wins}}}
    _write(world, SETTINGS["opencode"], first)
    _write(world, ".opencode/opencode.json", second)
    merged = json.loads(_run(world, "opencode", "debug", "config").output)
    assert list(merged["permission"]["external_directory"].items()) == [
        ("/srv/**", "deny"), ("*", wins),
    ]  # fmt: skip
    assert ("overridden" in _findings(world)["opencode"]) is (wins == "allow")
