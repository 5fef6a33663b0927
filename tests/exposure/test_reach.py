"""What an agent and a server can reach, by their settings."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from rootsd.exposure.servers import unpinned
from support.exposed_home import ExposedHome

EVERYTHING, ASKS_ELSEWHERE, PROJECT, ASKS = "everything", "project, asks", "project", "asks"
NOTHING = "nothing"


def _claude(**settings: object) -> tuple[str, str]:
    return ".claude/settings.json", json.dumps(settings)


def _codex(text: str) -> tuple[str, str]:
    return ".codex/config.toml", text


def _json(file: str, settings: dict[str, object]) -> tuple[str, str]:
    return file, json.dumps(settings)


OPENCODE, GEMINI = ".config/opencode/opencode.json", ".gemini/settings.json"
CURSOR = ".cursor/cli-config.json"
RULES, POLICY = ".codex/rules/default.rules", ".gemini/policies/auto-saved.toml"
SHELL_RULE = '[[rule]]\ndecision = "allow"\ntoolName = "run_shell_command"\n'
BOTH = (EVERYTHING, EVERYTHING)
BASH_ASKS = {"bash": "ask"}
NO_QUESTION = {"enabled": True, "autoAllowBashIfSandboxed": True}
SANDBOX = {"sandbox": NO_QUESTION}
NO_HOME = {"sandbox": {**NO_QUESTION, "filesystem": {"denyRead": ["~/"]}}}

REACH = [
    ("claude-code", _claude(), ASKS_ELSEWHERE, ASKS),
    ("claude-code", _claude(permissions={"defaultMode": "auto"}), EVERYTHING, EVERYTHING),
    ("claude-code", _claude(permissions={"defaultMode": "dontAsk"}), PROJECT, NOTHING),
    ("claude-code", _claude(permissions={"allow": ["Bash(cat:*)"]}), ASKS_ELSEWHERE, ASKS),
    ("claude-code", _claude(permissions={"allow": ["Bash(npm test:*)"]}), ASKS_ELSEWHERE, ASKS),
    ("claude-code", _claude(permissions={"allow": ["Read(**)"]}), ASKS_ELSEWHERE, ASKS),
    ("claude-code", _claude(permissions={"allow": ["Read(//**)"]}), EVERYTHING, ASKS),
    ("claude-code", _claude(permissions={"allow": ["Write(~/**)"]}), ASKS_ELSEWHERE, ASKS),
    ("claude-code", _claude(permissions={"allow": ["Edit(~/**)"]}), EVERYTHING, EVERYTHING),
    ("claude-code", _claude(permissions={"allow": ["Bash(* --version)"]}), EVERYTHING, EVERYTHING),
    ("claude-code", _claude(permissions={"allow": ["Bash(/bin/sh *)"]}), EVERYTHING, EVERYTHING),
    ("claude-code", _claude(permissions={"allow": ["Bash(python3:*)"]}), EVERYTHING, EVERYTHING),
    ("claude-code", _claude(permissions={"allow": ["Bash(git:*)"]}), EVERYTHING, EVERYTHING),
    ("claude-code", _claude(permissions={"allow": ["Read"]}), EVERYTHING, ASKS),
    ("claude-code", _claude(permissions={"allow": ["Edit"]}), ASKS_ELSEWHERE, EVERYTHING),
    ("claude-code", _claude(**SANDBOX), EVERYTHING, ASKS_ELSEWHERE),
    ("claude-code", _claude(sandbox={"enabled": True}), ASKS_ELSEWHERE, ASKS),
    ("claude-code", _claude(sandbox={**NO_QUESTION, "enabled": False}), ASKS_ELSEWHERE, ASKS),
    (
        "claude-code", _claude(permissions={"defaultMode": "bypassPermissions"}, **SANDBOX),
        EVERYTHING, EVERYTHING,
    ),
    ("claude-code", _claude(**NO_HOME), ASKS_ELSEWHERE, ASKS_ELSEWHERE),
    ("codex", _codex(""), EVERYTHING, ASKS_ELSEWHERE),
    ("codex", _codex('approval_policy = "never"'), EVERYTHING, PROJECT),
    ("codex", _codex('sandbox_mode = "read-only"'), EVERYTHING, ASKS),
    (
        "codex", _codex('default_permissions = "x"\n[permissions.x.filesystem]\n"~" = "deny"'),
        ASKS_ELSEWHERE, ASKS_ELSEWHERE,
    ),
    (
        "codex", _codex('sandbox_mode = "read-only"\napprovals_reviewer = "auto_review"'),
        EVERYTHING, EVERYTHING,
    ),
    ("codex", (RULES, 'prefix_rule(pattern=["python3"])'), EVERYTHING, EVERYTHING),
    (
        "codex", (RULES, 'prefix_rule(pattern=["sh"], decision="prompt")'),
        EVERYTHING, ASKS_ELSEWHERE,
    ),
    ("codex", (RULES, 'prefix_rule(pattern=["npm", "test"])'), EVERYTHING, ASKS_ELSEWHERE),
    ("gemini", _json(GEMINI, {}), ASKS_ELSEWHERE, ASKS),
    ("gemini", _json(GEMINI, {"tools": {"sandbox": {"enabled": False}}}), ASKS_ELSEWHERE, ASKS),
    ("gemini", _json(GEMINI, {"tools": {"sandbox": "sandbox-exec"}}), ASKS_ELSEWHERE, ASKS),
    ("gemini", _json(GEMINI, {"tools": {"allowed": ["ShellTool(cat)"]}}), EVERYTHING, ASKS),
    ("gemini", _json(GEMINI, {"general": {"defaultApprovalMode": "yolo"}}), ASKS_ELSEWHERE, ASKS),
    ("gemini", (POLICY, f'{SHELL_RULE}commandPrefix = ["ls", "git"]'), EVERYTHING, EVERYTHING),
    ("gemini", (POLICY, f'{SHELL_RULE}commandPrefix = "npm test"'), ASKS_ELSEWHERE, ASKS),
    ("qwen", _json(".qwen/settings.json", {}), EVERYTHING, EVERYTHING),
    (
        "qwen", _json(".qwen/settings.json", {"tools": {"approvalMode": "default"}}),
        ASKS_ELSEWHERE, ASKS,
    ),
    ("gemini", _json(GEMINI, {"tools": {"sandbox": "docker"}}), PROJECT, ASKS),
    (
        "gemini", _json(GEMINI, {"general": {"defaultApprovalMode": "auto_edit"}}),
        ASKS_ELSEWHERE, ASKS_ELSEWHERE,
    ),
    ("opencode", _json(OPENCODE, {}), EVERYTHING, EVERYTHING),
    ("opencode", _json(OPENCODE, {"permission": {"*": "ask"}}), ASKS, ASKS),
    ("opencode", _json(OPENCODE, {"permission": "ask"}), ASKS, ASKS),
    ("opencode", _json(OPENCODE, {"permission": {"bash": "ask", "*": "allow"}}), *BOTH),
    ("opencode", _json(OPENCODE, {"permission": BASH_ASKS}), ASKS_ELSEWHERE, ASKS_ELSEWHERE),
    (
        "opencode", _json(OPENCODE, {"permission": {"bash": {"*": "ask", "sh *": "allow"}}}),
        EVERYTHING, EVERYTHING,
    ),
    (
        "opencode", _json(OPENCODE, {"permission": {**BASH_ASKS, "external_directory": "allow"}}),
        EVERYTHING, EVERYTHING,
    ),
    (
        "opencode",
        _json(OPENCODE, {"permission": BASH_ASKS, "agent": {"build": {"permission": "allow"}}}),
        EVERYTHING, EVERYTHING,
    ),
    ("copilot", _json(".copilot/settings.json", {}), ASKS_ELSEWHERE, ASKS),
    (
        "copilot", _json(".copilot/settings.json", {"defaultPermissionMode": "allow-all"}),
        EVERYTHING, EVERYTHING,
    ),
    ("pi", (".pi/agent/settings.json", "{}"), EVERYTHING, EVERYTHING),
    ("goose", (".config/goose/config.yaml", "GOOSE_MODE: approve\n"), ASKS, ASKS),
    ("cursor", (CURSOR, '{"approvalMode": "unrestricted"}'), EVERYTHING, EVERYTHING),
    ("cursor", (CURSOR, '{"permissions": {"allow": ["Shell(ls)"]}}'), EVERYTHING, ASKS_ELSEWHERE),
    ("cursor", (CURSOR, '{"permissions": {"allow": ["Shell(**)"]}}'), EVERYTHING, EVERYTHING),
    ("droid", (".factory/settings.json", "{}"), "not known", "not known"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings", "reads", "writes"), REACH)
def test_an_agent_reaches_what_its_settings_say(
    home: ExposedHome, name: str, settings: tuple[str, str], reads: str, writes: str
) -> None:
    home.write(*settings)
    item = home.items()[name]
    assert (item["reads"]["extent"], item["writes"]["extent"]) == (reads, writes)


@pytest.mark.parametrize(
    ("name", "variable", "settings"),
    [
        ("goose", "GOOSE_MODE=auto", (".config/goose/config.yaml", "GOOSE_MODE: approve\n")),
        ("copilot", "COPILOT_ALLOW_ALL=Yes", _json(".copilot/settings.json", {})),
        ("opencode", 'OPENCODE_PERMISSION="allow"', _json(OPENCODE, {"permission": BASH_ASKS})),
        (
            "gemini", "GEMINI_SANDBOX=false",
            _json(GEMINI, {"tools": {"sandbox": True, "allowed": ["run_shell_command"]}}),
        ),
    ],
)  # fmt: skip
def test_a_variable_wins_over_the_settings(
    home: ExposedHome, name: str, variable: str, settings: tuple[str, str]
) -> None:
    home.write(*settings)
    assert home.items()[name]["writes"]["extent"] != EVERYTHING
    key, _, value = variable.partition("=")
    home.variables[key] = value
    assert home.items()[name]["writes"]["extent"] == EVERYTHING


@pytest.mark.parametrize(
    ("line", "is_wide"),
    [
        ("alias claude='claude --dangerously-skip-permissions'", True),
        ('c() { command claude --permission-mode bypassPermissions "$@"; }', True),
        ("# alias claude='claude --dangerously-skip-permissions'", False),
        ("alias gemini='gemini --yolo'", False),
        ("alias claude='claude --verbose'", False),
    ],
)
def test_an_option_that_the_shell_adds_counts(home: ExposedHome, line: str, is_wide: bool) -> None:
    home.write(".claude/settings.json", "{}")
    file = home.write(".zshrc", f"export TOKEN=x\n{line}\n")
    writes = home.items()["claude-code"]["writes"]
    assert (writes["file"] == str(file)) is is_wide
    assert writes["line"] == (2 if is_wide else None)


@pytest.mark.parametrize(
    ("agent", "file", "settings"),
    [
        ("claude-code", ".claude/settings.json", _claude(permissions={"allow": ["Bash"]})[1]),
        ("codex", ".codex/config.toml", 'sandbox_mode = "danger-full-access"'),
        ("opencode", "opencode.json", '{"permission": "allow"}'),
        ("qwen", ".qwen/settings.json", '{"tools": {"approvalMode": "yolo"}}'),
        ("gemini", POLICY, f'{SHELL_RULE}commandPrefix = "sh"'),
        ("cursor", ".cursor/permissions.json", '{"terminalAllowlist": ["python3"]}'),
        ("cursor", ".cursor/cli.json", '{"permissions": {"allow": ["Shell(*)"]}}'),
    ],
)
def test_a_project_that_widens_access_is_named(
    home: ExposedHome, agent: str, file: str, settings: str
) -> None:
    project = home.repository("api").relative_to(home.path)
    home.write(".claude/settings.json", "{}")
    home.write(".cursor/cli-config.json", "{}")
    home.write(GEMINI, "{}")
    home.write(".qwen/settings.json", '{"tools": {"approvalMode": "default"}}')
    home.write(OPENCODE, '{"permission": {"*": "ask"}}')
    home.write(
        ".codex/config.toml", f'[projects."{home.path}/{project}"]\ntrust_level = "trusted"'
    )
    assert home.findings() == []
    home.write(f"{project}/{file}", settings)
    found = home.items()[agent]["findings"]
    assert {(each["kind"], each["file"]) for each in found} == {
        ("overridden", f"{home.path}/{project}/{file}")
    }
    home.write(".codex/config.toml", "")
    assert bool(home.items()[agent]["findings"]) is (agent != "codex")


@pytest.mark.parametrize(
    ("file", "settings", "started"),
    [
        (None, {}, set()),
        (".claude/settings.json", {"enableAllProjectMcpServers": True}, {"one", "two"}),
        (".claude/settings.json", {"enabledMcpjsonServers": ["one"]}, {"one"}),
        ("src/api/.claude/settings.local.json", {"enabledMcpjsonServers": ["two"]}, {"two"}),
        (
            "src/api/.claude/settings.local.json",
            {"enableAllProjectMcpServers": True, "disabledMcpjsonServers": ["one"]}, {"two"},
        ),
    ],
)  # fmt: skip
def test_a_server_of_a_project_counts_once_it_was_approved(
    home: ExposedHome, file: str | None, settings: dict[str, object], started: set[str]
) -> None:
    home.write(".claude/settings.json", "{}")
    servers = {name: {"command": "npx", "args": ["-y", name]} for name in ("one", "two")}
    home.write(
        f"{home.repository('api').relative_to(home.path)}/.mcp.json", {"mcpServers": servers}
    )
    if file is not None:
        home.write(file, settings)
    items = home.items()
    where = f"{home.path}/src/api"
    assert items.keys() - {"claude-code"} == {
        f"claude-code/{name} (in {where})" for name in started
    }
    for item in items.values():
        if not item["agent"]:
            assert {each["kind"] for each in item["findings"]} == {"program-gone", "unpinned"}
            assert item["reads"]["file"] == f"{where}/.mcp.json"


def test_a_rule_to_read_a_folder_opens_it(home: ExposedHome) -> None:
    home.repository("api", ".env")
    home.repository("web", ".env")
    home.write(".claude/settings.json", {"permissions": {"allow": ["Read(~/src/api/**)"]}})
    item = home.items()["claude-code"]
    assert (item["opened"], item["secrets"]) == ([str(home.path / "src/api")], 1)


def test_an_agent_without_limits_reaches_every_repository_and_secret(home: ExposedHome) -> None:
    home.write(".codex/config.toml", "")
    home.repository("api", ".env", "README.md")
    home.repository("web")
    home.write(".ssh/id_rsa", "")
    home.write(".netrc", "")
    report = home.measure()
    (item,) = report["items"]
    assert (report["repositories"], item["repositories"], item["secrets"]) == (2, 2, 3)
    assert sorted(report["secrets"]) == sorted(
        str(home.path / each) for each in (".netrc", ".ssh", "src/api/.env")
    )


def test_an_agent_that_asks_reaches_only_the_folders_that_are_opened(home: ExposedHome) -> None:
    home.repository("api", ".env")
    home.repository("web", ".env")
    opened = {"permissions": {"additionalDirectories": ["~/src/api"]}}
    home.write(".claude/settings.json", opened)
    item = home.items()["claude-code"]
    assert (item["opened"], item["repositories"], item["secrets"]) == (
        [str(home.path / "src/api")], 1, 1,
    )  # fmt: skip


def test_an_agent_behind_the_wall_reaches_only_roots(home: ExposedHome) -> None:
    home.write(".codex/config.toml", 'sandbox_mode = "danger-full-access"')
    home.repository("api", ".env")
    before, after = home.items()["codex"], home.items("codex")["codex"]
    assert (before["secrets"], before["remedy"]) == (1, "rootsd connect --confine codex")
    assert (after["reads"]["extent"], after["secrets"], after["remedy"]) == ("roots", 0, None)
    assert ([each["kind"] for each in before["findings"]], after["findings"]) == (
        ["asks-nothing"], [],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "extent", "remedy"),
    [
        ({"command": "sh"}, EVERYTHING, "rootsd connect claude-code --wrap"),
        ({"command": "rootsd", "args": ["run", "--confine", "--", "sh"]}, "roots", None),
        (
            {"command": "rootsd", "args": ["run", "--no-confine", "--", "sh"]},
            EVERYTHING, "rootsd connect claude-code --wrap",
        ),
        ({"type": "http", "url": "https://example.org"}, NOTHING, None),
        ({"command": "docker", "args": ["run", "a@sha256:" + 64 * "0"]}, "container", None),
    ],
)  # fmt: skip
def test_a_server_reaches_what_its_command_says(
    home: ExposedHome, entry: dict[str, object], extent: str, remedy: str | None
) -> None:
    home.write(".claude.json", {"mcpServers": {"x": entry}})
    item = home.items()["claude-code/x"]
    assert (item["reads"]["extent"], item["remedy"]) == (extent, remedy)
    assert item["reads"]["file"] == str(home.path / ".claude.json")


def test_a_container_reaches_what_it_mounts(home: ExposedHome) -> None:
    home.repository("api", ".env")
    home.repository("web", ".env")
    words = ["run", "-i", "-v", f"{home.path}/src/api:/x", "image"]
    home.write(".claude.json", {"mcpServers": {"x": {"command": "docker", "args": words}}})
    assert home.items()["claude-code/x"]["secrets"] == 1


@pytest.mark.parametrize(
    ("words", "package"),
    [
        ("npx -y @acme/a", "@acme/a"),
        ("npx @acme/a@latest", "@acme/a@latest"),
        ("npx -y @acme/a@1.2.3 /srv", None),
        ("npx -p a b", "a"),
        ("npx ./local", None),
        ("npm exec -- a", "a"),
        ("npm run a", None),
        ("bunx a@^1", "a@^1"),
        ("uvx a", "a"),
        ("uvx a==1.2", None),
        ("uvx --python 3.12 a@1.2", None),
        ("uvx --from git+https://example.org/a@" + 40 * "0" + " a", None),
        ("uvx --from=git+https://example.org/a@main a", "git+https://example.org/a@main"),
        ("pipx run a", "a"),
        ("uv run server.py", None),
        ("docker run -i --rm -e TOKEN a/b:1.2", "a/b:1.2"),
        ("docker run -i a/b@sha256:" + 64 * "a", None),
        ("docker exec x", None),
        ("/usr/bin/node server.js", None),
        ("deno run npm:a", "npm:a"),
        ("deno run main.ts", None),
    ],
)
def test_only_a_fixed_version_is_pinned(words: str, package: str | None) -> None:
    assert unpinned(words.split()) == package


def test_hostile_settings_neither_hang_nor_deceive(home: ExposedHome) -> None:
    home.write(".codex/config.toml", "")
    (home.path / ".claude").mkdir()
    os.mkfifo(home.path / ".claude/settings.json")
    home.write(".gemini/settings.json", "[" * 100_000)
    loop = home.path / ".qwen/settings.json"
    loop.parent.mkdir()
    loop.symlink_to(loop)
    odd = home.write(
        ".config/opencode/opencode.json", {"mcp": {"a\x1b[2J\nb": {"command": ["x"]}}}
    )
    with odd.open("a") as file:
        file.truncate(20 << 20)
    wanted = {
        ".claude/settings.json": "it is not a file",
        ".gemini/settings.json": "it is nested too deeply",
        ".qwen/settings.json": "it cannot be read: Too many levels of symbolic links",
        ".config/opencode/opencode.json": "it is too large",
    }
    found = {
        each["file"].removeprefix(f"{home.path}/"): each["text"]
        for item in home.measure()["items"]
        for each in item["findings"]
        if each["kind"] == "invalid-file"
    }
    assert {file: text.partition("this file: ")[2] for file, text in found.items()} == wanted


def test_five_thousand_servers_cost_as_much_each_as_a_few(home: ExposedHome) -> None:
    def cost(servers: int) -> float:
        entries = {f"s{number}": {"command": "npx", "args": ["a"]} for number in range(servers)}
        home.write(".claude.json", {"mcpServers": entries})
        began = time.process_time()
        assert len(home.items()) == servers + 1
        return (time.process_time() - began) / servers

    assert cost(5_000) < 10 * cost(500)


def test_no_credential_of_a_server_is_printed(home: ExposedHome) -> None:
    source = "git+https://me:hunter2@example.org/x?token=hunter2"
    servers = {
        "source": {"command": "uvx", "args": ["--from", source, "x"]},
        "words": {"command": "npx -y x --token hunter2"},
    }
    home.write(".claude.json", {"mcpServers": servers})
    report = json.dumps(home.measure())
    assert "git+https://example.org/x" in report
    assert "starts npx, which" in report
    assert "hunter2" not in report


def test_a_project_cannot_flood_the_report(home: ExposedHome) -> None:
    home.write(".ssh/id_rsa", "")
    rules = [f"Read(~/.shh/{number})" for number in range(5_000)]
    for name, text in (("few", rules[:3]), ("many", rules), ("huge", rules * 4)):
        project = home.repository(name).relative_to(home.path)
        home.write(f"{project}/.claude/settings.json", {"permissions": {"deny": text}})
    home.write(".claude/settings.json", {})
    found = [each["file"] for each in home.items()["claude-code"]["findings"]]
    counts = {name: sum(f"/{name}/" in file for file in found) for name in ("few", "many", "huge")}
    assert counts == {"few": 3, "many": 20, "huge": 1}


def test_links_of_a_person_are_followed(home: ExposedHome, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text('{"permissions": {"defaultMode": "bypassPermissions"}}')
    (home.path / ".claude").mkdir()
    (home.path / ".claude/settings.json").symlink_to(real)
    assert home.items()["claude-code"]["writes"]["extent"] == EVERYTHING
