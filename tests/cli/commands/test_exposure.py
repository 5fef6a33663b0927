"""`rootsd exposure`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support.exposed_home import ExposedHome
from support.terminal import Shell


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ExposedHome:
    """A home folder with Codex and a server, and no daemon."""
    made = ExposedHome(tmp_path)
    monkeypatch.setenv("HOME", str(made.path))
    monkeypatch.setenv("PATH", str(made.programs))
    monkeypatch.setenv("ROOTSD_DIR", str(tmp_path / "rootsd"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    made.repository("api", ".env")
    made.write(".codex/config.toml", '[mcp_servers.x]\ncommand = "npx"\nargs = ["-y", "a"]\n')
    made.program("npx")
    return made


def test_a_terminal_sees_one_line_for_each_and_the_findings(
    home: ExposedHome, shell: Shell
) -> None:
    done = shell.run_on_terminal("exposure", columns=80)
    assert done.status == 0
    assert [line.rstrip() for line in done.out.splitlines()] == [
        "NAME     READS       WRITES         PROJECTS  SECRETS  FINDINGS",
        "codex    everything  project, asks  1         1        0",
        "codex/x  everything  everything     1         1        1",
        "Found here: 1 project, and 1 secret, by the names of files and folders.",
        "codex/x: each start of x may fetch another version of a (~/.codex/config.toml:1)",
        "  → ${EDITOR:-vi} +1 ~/.codex/config.toml",
        "Each reason: rootsd exposure -v",
    ]
    servers = "".join(f'[mcp_servers.x{n}]\ncommand = "gone{n}"\n' for n in range(30))
    home.write(".codex/config.toml", servers)
    assert len(shell.run_on_terminal("exposure", columns=80).out.splitlines()) <= 24


def test_every_reason_comes_with_a_command(home: ExposedHome, shell: Shell) -> None:
    del home
    lines = shell.run_on_terminal("exposure", "-v", columns=80).out.splitlines()
    assert [line.rstrip() for line in lines[:4]] == [
        "codex",
        "  reads   everything: Codex reads everything; its sandbox limits writes",
        "  writes  project, asks: Codex reads everything; its sandbox limits writes",
        "  → rootsd connect --confine codex",
    ]


@pytest.mark.parametrize(
    ("what", "settings", "status"),
    [
        ("secrets", 'sandbox_mode = "read-only"', 1),
        ("write", 'sandbox_mode = "read-only"', 0),
        ("write", 'sandbox_mode = "danger-full-access"', 1),
        ("findings", 'sandbox_mode = "read-only"', 0),
        ("findings", '[projects."/gone"]\ntrust_level = "trusted"', 1),
    ],
)
def test_the_exit_status_tells_what_was_found(
    home: ExposedHome, shell: Shell, what: str, settings: str, status: int
) -> None:
    home.write(".codex/config.toml", settings)
    assert shell.run("exposure", "--fail-on", what).status == status
    assert shell.run("exposure").status == 0


def test_fields_of_json_can_be_columns(home: ExposedHome, shell: Shell) -> None:
    del home
    assert shell.run("exposure", "--format", "name,secrets").out == "codex\t1\ncodex/x\t1\n"
    refused = shell.run("exposure", "--format", "verdict")
    assert refused.status == 2
    assert "--format cannot be verdict: use name, title, " in refused.err


def _everything_in(folder: Path) -> dict[str, tuple[int, int]]:
    paths = [path for path in folder.rglob("*") if "__pycache__" not in str(path)]
    found = {str(path): os.lstat(path) for path in paths}
    return {path: (each.st_mtime_ns, each.st_size) for path, each in found.items()}


def test_nothing_is_written_and_no_secret_is_printed(
    home: ExposedHome, shell: Shell, tmp_path: Path
) -> None:
    entry = {"command": "sh", "args": ["hunter2"], "env": {"TOKEN": "hunter2"}}
    home.write(".claude.json", {"mcpServers": {"x": entry}})
    before = _everything_in(tmp_path)
    words = ((), ("-v",), ("--json",), ("--fail-on", "secrets"))
    printed = "".join(str(shell.run("exposure", *each)) for each in words)
    assert "claude-code/x" in printed
    assert "hunter2" not in printed
    assert _everything_in(tmp_path) == before


def test_names_cannot_control_a_terminal(home: ExposedHome, shell: Shell) -> None:
    odd = "a\x1b[2J\n\u202eb"
    home.write(
        ".claude.json",
        {
            "mcpServers": {odd: {"command": odd}},
            "projects": {f"/{odd}": {"hasTrustDialogAccepted": True}},
        },
    )
    for words in ((), ("-v",), ("--json",)):
        for printed in (shell.run("exposure", *words), shell.run_on_terminal("exposure", *words)):
            assert not {"\x1b", "\u202e"} & set(printed.out + printed.err)
    found = json.loads(shell.run("exposure", "--json").out)
    assert f"claude-code/{odd}" in {item["name"] for item in found["items"]}


def test_a_broken_configuration_is_a_warning(
    home: ExposedHome, shell: Shell, tmp_path: Path
) -> None:
    del home
    folder = tmp_path / "rootsd" / "config"
    folder.mkdir(mode=0o700, parents=True)
    (folder / "config.toml").write_text("parents = 3")
    done = shell.run("exposure")
    assert (done.status, done.out.count("\n")) == (0, 2)
    assert done.err.startswith("warning: ")


def test_a_home_without_agents_says_so(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    done = shell.run("exposure")
    assert (done.status, done.out, done.err) == (0, "", "No agent and no MCP client was found.\n")
