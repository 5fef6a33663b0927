"""Errors that are planted in the files of each client are found, and nothing else is."""

from __future__ import annotations

import random

import pytest

from rootsd.agents.forms.reach import ExposureKind
from support.exposed_home import ExposedHome

CLAUDE, CLAUDE_SERVERS = ".claude/settings.json", ".claude.json"
CODEX, GEMINI, QWEN = ".codex/config.toml", ".gemini/settings.json", ".qwen/settings.json"
OPENCODE = ".config/opencode/opencode.json"
COPILOT, COPILOT_TRUST = ".copilot/settings.json", ".copilot/config.json"
GEMINI_TRUST, QWEN_TRUST = ".gemini/trustedFolders.json", ".qwen/trustedFolders.json"

Settings = dict[str, object]


def _rules(**lists: object) -> Settings:
    return {"permissions": lists}


def _server(*words: str) -> Settings:
    return {"mcpServers": {"x": {"command": words[0], "args": list(words[1:])}}}


def _hook(event: str, command: str) -> Settings:
    return {
        "hooks": {event: [{"matcher": "*", "hooks": [{"type": "command", "command": command}]}]}
    }


# A kind of finding, the file, its planted text with HOME for the home folder, and a text without
# the error. Both are for the same file.
PLANTED: list[tuple[str, str, Settings | str, Settings | str]] = [
    ("asks-nothing", CLAUDE, _rules(defaultMode="bypassPermissions"), _rules(defaultMode="plan")),
    ("asks-nothing", CODEX, 'sandbox_mode = "danger-full-access"', 'sandbox_mode = "read-only"'),
    (
        "asks-nothing", QWEN, {"tools": {"approvalMode": "yolo"}},
        {"tools": {"approvalMode": "plan"}},
    ),
    ("asks-nothing", OPENCODE, {"permission": {"bash": "allow"}}, {"permission": {"bash": "ask"}}),
    ("asks-nothing", GEMINI, {"tools": {"allowed": ["run_shell_command"]}}, {"tools": {}}),
    (
        "too-wide", CLAUDE, _rules(additionalDirectories=["~"]),
        _rules(additionalDirectories=["~/a"]),
    ),
    ("too-wide", COPILOT_TRUST, {"trustedFolders": ["/"]}, {"trustedFolders": ["HOME/a"]}),
    ("too-wide", GEMINI_TRUST, {"HOME": "TRUST_FOLDER"}, {"HOME": "DO_NOT_TRUST"}),
    ("too-wide", GEMINI_TRUST, {"HOME/a": "TRUST_PARENT"}, {"HOME/a": "TRUST_FOLDER"}),
    (
        "too-wide", CODEX, '[projects."HOME"]\ntrust_level = "trusted"',
        '[projects."HOME"]\ntrust_level = "untrusted"',
    ),
    ("any-project", CLAUDE, {"enableAllProjectMcpServers": True}, {}),
    ("misspelled", CLAUDE, _rules(deny=["Read(~/.shh/**)"]), _rules(deny=["Read(~/.ssh/**)"])),
    ("misspelled", CLAUDE, _rules(deny=["Reed(~/.ssh/**)"]), _rules(deny=["Read(~/.ssh/**)"])),
    ("misspelled", CLAUDE, _rules(denny=["Bash"]), _rules(deny=["Bash"])),
    ("misspelled", CLAUDE, {"permission": {}}, {"permissions": {}}),
    ("misspelled", GEMINI, {"mcpServer": {}}, {"mcpServers": {}}),
    ("misspelled", CODEX, 'sandbox-mode = "read-only"', 'sandbox_mode = "read-only"'),
    (
        "misspelled", COPILOT,
        {"sandbox": {"enabled": True, "userPolicy": {"filesystem": {"deniedPaths": ["~/.shh"]}}}},
        {"sandbox": {"enabled": True, "userPolicy": {"filesystem": {"deniedPaths": ["~/.ssh"]}}}},
    ),
    (
        "misspelled", OPENCODE, {"permission": {"external_directory": {"~/.shh/**": "deny"}}},
        {"permission": {"external_directory": {"~/.ssh/**": "deny"}}},
    ),
    ("misspelled", CLAUDE, _hook("PreToolUs", "true"), _hook("PostToolUse", "true")),
    ("matches-nothing", CLAUDE, _rules(deny=["Read(/etc/**)"]), _rules(deny=["Read(//etc/**)"])),
    (
        "matches-nothing", OPENCODE, {"permission": {"external_directory": {"~/a": "deny"}}},
        {"permission": {"external_directory": {"~/a/**": "deny"}}},
    ),
    (
        "overridden", OPENCODE,
        {"permission": {"external_directory": {"~/a/**": "deny", "*": "allow"}}},
        {"permission": {"external_directory": {"*": "allow", "~/a/**": "deny"}}},
    ),
    (
        "overridden", CLAUDE,
        _rules(defaultMode="bypassPermissions", disableBypassPermissionsMode="disable"),
        _rules(disableBypassPermissionsMode="disable"),
    ),
    ("overridden", "src/api/.claude/settings.local.json", _rules(defaultMode="acceptEdits"), {}),
    (
        "contradicted", CLAUDE, _rules(allow=["Read(~/a/**)"], deny=["Read(~/a/**)"]),
        _rules(allow=["Read(~/a/**)"], deny=["Read(~/b/**)"]),
    ),
    ("inactive", CLAUDE, {"sandbox": {"filesystem": {"denyRead": ["~/.ssh"]}}}, {}),
    (
        "inactive", CODEX,
        'sandbox_mode = "read-only"\n[sandbox_workspace_write]\nwritable_roots = ["HOME/a"]',
        'sandbox_mode = "workspace-write"\n[sandbox_workspace_write]\nwritable_roots = ["HOME/a"]',
    ),
    (
        "inactive", COPILOT,
        {"sandbox": {"userPolicy": {"filesystem": {"deniedPaths": ["~/.ssh"]}}}}, {"sandbox": {}},
    ),
    ("inactive", QWEN_TRUST, {"HOME/a": "DO_NOT_TRUST"}, {}),
    (
        "hooks-off", CLAUDE, _hook("PreToolUse", "true") | {"disableAllHooks": True},
        _hook("Stop", "a"),
    ),
    (
        "hooks-off", GEMINI, _hook("BeforeTool", "true") | {"hooksConfig": {"enabled": False}},
        _hook("BeforeTool", "true") | {"hooksConfig": {"enabled": True}},
    ),
    ("hooks-off", "src/api/.claude/settings.json", {"disableAllHooks": True}, {}),
    ("invalid-file", CLAUDE, '{"permissions": {"deny": ["Bash"]}', '{"permissions": {}}'),
    ("invalid-file", GEMINI, '{"tools": {}, "tools": {}}', '{"tools": {}}'),
    ("invalid-file", CODEX, "sandbox_mode = read-only", ""),
    ("program-gone", CLAUDE_SERVERS, _server("/opt/gone/x"), _server("/bin/sh")),
    ("program-gone", QWEN, _server("gone"), _server("sh")),
    (
        "program-gone", CODEX, '[mcp_servers.x]\ncommand = "/gone"',
        '[mcp_servers.x]\ncommand = "sh"',
    ),
    (
        "program-gone", CLAUDE, _hook("PreToolUse", "python3 ~/x.py"),
        _hook("PreToolUse", "python3 -c x"),
    ),
    ("unpinned", CLAUDE_SERVERS, _server("npx", "-y", "a"), _server("npx", "-y", "a@1.2.3")),
    (
        "unpinned", GEMINI, _server("uvx", "--from", "a", "b"),
        _server("uvx", "--from", "a==1.2", "b"),
    ),
    (
        "unpinned", OPENCODE, {"mcp": {"x": {"type": "local", "command": ["npx", "a@latest"]}}},
        {"mcp": {"x": {"type": "local", "command": ["npx", "a@2.0.1"]}}},
    ),
    ("folder-gone", CLAUDE, _rules(additionalDirectories=["~/gone"]), _rules(deny=["Bash"])),
    (
        "folder-gone", CLAUDE_SERVERS,
        {"projects": {"HOME/gone": {"hasTrustDialogAccepted": True}}},
        {"projects": {"HOME/gone": {"hasTrustDialogAccepted": False}}},
    ),
    ("folder-gone", QWEN, {"context": {"includeDirectories": ["~/gone"]}}, {"context": {}}),
]  # fmt: skip


def _plant(home: ExposedHome, file: str, content: Settings | str) -> None:
    whole = home.write(file, content)
    whole.write_text(whole.read_text().replace("HOME", str(home.path)))


@pytest.mark.parametrize(("kind", "file", "planted", "sound"), PLANTED)
def test_a_planted_error_is_found_in_its_file(
    home: ExposedHome, kind: str, file: str, planted: Settings | str, sound: Settings | str
) -> None:
    for folder in (".ssh", "a", "b"):
        (home.path / folder).mkdir()
    for name in ("sh", "npx", "uvx", "claude"):
        home.program(name)
    home.repository("api")
    _plant(home, file, planted)
    assert {(kind, file)} == {found[:2] for found in home.findings()}
    _plant(home, file, sound)
    assert home.findings() == []


def test_every_kind_is_planted() -> None:
    assert {kind for kind, *_ in PLANTED} == {kind.value for kind in ExposureKind}


def test_a_finding_names_the_line_and_a_command(home: ExposedHome) -> None:
    file = home.write(CLAUDE, '{\n "permissions": {\n  "deny": [\n   "Bash",\n   "Reed(~/x)"\n]}}')
    (found,) = home.items()["claude-code"]["findings"]
    assert (found["line"], found["remedy"]) == (5, f"${{EDITOR:-vi}} +5 {file}")


def _sound_home(home: ExposedHome, seed: int) -> None:
    """Write settings as careful people have them, which name much that is not there."""
    chance = random.Random(seed)  # noqa: S311
    names = [f"service-{number}" for number in range(chance.randrange(3, 9))]
    for name in names:
        home.repository(name, *chance.sample([".env", ".env.example", "README.md"], 2))
    for name in ("claude", "npx", "uvx", "node", "python3"):
        home.program(name)
    for folder in chance.sample([".ssh", ".aws", ".gnupg", ".config/gh", ".npm", ".kube"], 4):
        (home.path / folder).mkdir(parents=True, exist_ok=True)
    denied = ["Read(~/.ssh/**)", "Read(~/.aws/**)", "Read(~/.npmrc)", "Read(**/.env)", "WebFetch"]
    allowed = ["Bash(git status)", "Bash(npm run test:*)", "Read(~/src/**)", "mcp__docs__search"]
    home.write(CLAUDE, {
        "model": "opus", "statusLine": {"type": "command", "command": "x"},
        **_hook(chance.choice(["Stop", "PostToolUse", "SessionStart"]), "node -e 0"),
        "permissions": {
            "deny": chance.sample(denied, 4), "allow": chance.sample(allowed, 3),
            "additionalDirectories": [f"~/src/{chance.choice(names)}"],
        },
    })  # fmt: skip
    home.write(CLAUDE_SERVERS, {
        "numStartups": 7, "projects": {
            f"{home.path}/src/{name}": {"hasTrustDialogAccepted": True, "mcpServers": {}}
            for name in names
        },
        "mcpServers": {
            "docs": {"command": "npx", "args": ["-y", f"@acme/docs@{seed}.0.1"]},
            "web": {"type": "http", "url": "https://example.org/mcp"},
        },
    })  # fmt: skip
    home.write(
        CODEX,
        f"""model = "gpt"
# sandbox_mode = "danger-full-access"
sandbox_mode = "{chance.choice(["read-only", "workspace-write"])}"
approval_policy = "on-request"
profile = "work"
[projects."{home.path}/src/{names[0]}"]
trust_level = "trusted"
[mcp_servers.py]
command = "uvx"
args = ["py-server@{seed}.1"]
""",
    )
    home.write(GEMINI, {"ui": {"theme": "x"}, "context": {"includeDirectories": ["~/src"]}})
    home.write(GEMINI_TRUST, {f"{home.path}/src/{names[-1]}": "TRUST_FOLDER"})
    home.write(OPENCODE, '{\n // mine\n "permission": {"bash": "ask", "edit": "ask"},\n}')
    home.write(COPILOT_TRUST, f'// managed\n{{"trustedFolders": ["{home.path}/src"]}}')
    home.write(QWEN, {"security": {"folderTrust": {"enabled": True}}, "tools": {"core": ["ls"]}})


@pytest.mark.parametrize("seed", range(10))
def test_settings_of_careful_people_raise_no_alarm(home: ExposedHome, seed: int) -> None:
    _sound_home(home, seed)
    assert home.findings() == []
    home.write(QWEN, {"tools": {"approvalMode": "yolo"}})
    assert [kind for kind, *_ in home.findings()] == ["asks-nothing"]
