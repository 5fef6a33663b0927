"""An entry is started as its client would start it, or it is known that this cannot be done."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from rootsd.agents.forms.place import Platform
from rootsd.connect.base import ClientEnvironment
from rootsd.connect.launch import Launch, launch_of
from rootsd.connect.servers import ServerId, list_servers
from support.client_home import client_named

SHELL = {"NAME": "value", "DIR": "/data", "PATH": "/usr/bin:/bin"}


def launch(home: Path, client: str, entry: Mapping[str, object]) -> Launch:
    facts = client_named(client).facts
    [server] = list_servers(facts.form, {ServerId("x"): entry})
    assert server.obstacle == ""
    return launch_of(server, facts.reading, ClientEnvironment(home, SHELL, Platform.LINUX))


@pytest.mark.parametrize(
    ("client", "text", "filled"),
    [
        ("claude-code", "${DIR}/x", "/data/x"),
        ("claude-code", "${NO:-/else}", "/else"), ("claude-code", "${DIR:-/else}", "/data"),
        ("claude-code", "$DIR", "$DIR"),
        ("claude-code", "${env:DIR}", "${env:DIR}"), ("claude-code", "~/x", "~/x"),
        ("copilot", "${DIR}", "/data"), ("copilot", "$DIR", "/data"),
        ("copilot", "$$DIR", "$/data"),
        ("gemini", "$DIR/x", "/data/x"), ("gemini", "${NO:-/else}", "/else"),
        ("qwen", "${DIR}", "/data"), ("qwen", "${DIR:-/else}", "${DIR:-/else}"),
        ("opencode", "{env:DIR}/x", "/data/x"), ("opencode", "${env:DIR}", "$/data"),
        ("vscode", "${env:DIR}${/}x", "/data/x"), ("cursor", "${userHome}/x", "HOME/x"),
        ("windsurf", "${env:DIR}", "/data"),
        ("codex", "$DIR", "$DIR"), ("codex", "${DIR}", "${DIR}"), ("cline", "${DIR}", "${DIR}"),
    ],
)  # fmt: skip
def test_what_a_client_fills_is_filled(
    tmp_path: Path, client: str, text: str, filled: str
) -> None:
    form = client_named(client).facts.form
    entry = form.entry(("server", text), {}, {"X": text})
    found = launch(tmp_path, client, entry)
    wanted = filled.replace("HOME", str(tmp_path))
    assert found == Launch(("server", wanted), {"X": wanted})


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("claude-code", "${UNSET}"), ("gemini", "$UNSET"), ("gemini", "${workspaceFolder}"),
        ("opencode", "{env:UNSET}"), ("opencode", "{file:~/token}"),
        ("vscode", "${input:key}"), ("vscode", "${workspaceFolder}/x"), ("cursor", "${command:x}"),
        ("continue", "${{ secrets.KEY }}"),
    ],
)  # fmt: skip
def test_what_only_the_client_can_fill_is_named(tmp_path: Path, client: str, text: str) -> None:
    entry = client_named(client).facts.form.entry(("server", text), {}, {})
    found = launch(tmp_path, client, entry)
    assert found.words == ("server", text)
    assert len(found.unknown) == 1
    assert found.unknown[0] in text


@pytest.mark.parametrize(
    ("cwd", "folder", "unknown"),
    [
        ("/srv/x", "/srv/x", ()), ("~/x", "HOME/x", ()), ("${userHome}/x/", "HOME/x", ()),
        ("sub", "", ("the working directory sub",)),
        ("${workspaceFolder}", "", (
            "${workspaceFolder}", "the working directory ${workspaceFolder}"
        )),
    ],
)  # fmt: skip
def test_the_working_directory_is_that_of_the_entry_or_of_the_session(
    tmp_path: Path, cwd: str, folder: str, unknown: tuple[str, ...]
) -> None:
    found = launch(tmp_path, "vscode", {"command": "server", "cwd": cwd})
    assert (found.folder, found.unknown) == (folder.replace("HOME", str(tmp_path)), unknown)


def test_a_file_with_variables_is_read(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("# x\nA=1\nexport B = 'two words'\nC=\"3\"\n\nD\n")
    entry = {"command": "server", "envFile": "${userHome}/.env", "env": {"A": "mine"}}
    found = launch(tmp_path, "vscode", entry)
    assert (found.variables, found.unknown) == ({"A": "mine", "B": "two words", "C": "3"}, ())
    file.unlink()
    assert launch(tmp_path, "cursor", entry).unknown == ("the file ${userHome}/.env",)


@pytest.mark.parametrize(
    ("command", "program", "is_shell"),
    [
        ("sh", (), False),
        ("sh -c 'a b'", ("sh", "-c", "a b"), False),
        ("cd /x && sh", (), True), ("sh 'x", (), True), ("a $(b)", (), True),
    ],
)  # fmt: skip
def test_a_whole_command_line_is_split(
    tmp_path: Path, command: str, program: tuple[str, ...], is_shell: bool
) -> None:
    found = launch(tmp_path, "cursor", {"command": command, "args": ["z"]})
    assert (found.program, found.is_shell) == (program, is_shell)
    assert found.words == (*(program or (command,)), "z")


def test_a_program_with_a_space_in_its_path_is_no_command_line(tmp_path: Path) -> None:
    program = tmp_path / "my server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert launch(tmp_path, "cursor", {"command": str(program)}).words == (str(program),)


@pytest.mark.parametrize(
    ("client", "entry", "obstacle"),
    [
        ("claude-code", {"command": "sh -c x"}, "does not start a whole command line"),
        ("codex", {"command": "cd / && sh"}, "does not start a whole command line"),
        ("qwen", {"command": "sh", "cwd": "~/x"}, "does not know what ~ means"),
        ("claude-code", {"command": "sh", "cwd": "~/x"}, ""),
        ("copilot", {"command": "sh", "cwd": "~/x"}, ""),
        ("cursor", {"command": "sh -c x", "cwd": "~/x"}, ""),
    ],
)
def test_an_entry_that_the_client_itself_cannot_start_is_named(
    tmp_path: Path, client: str, entry: Mapping[str, object], obstacle: str
) -> None:
    found = launch(tmp_path, client, entry)
    assert (found.obstacle[: len(obstacle)], bool(found.obstacle)) == (obstacle, bool(obstacle))


def test_what_a_client_ignores_has_no_effect(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\n")
    entry = {"command": "server", "cwd": "/srv", "envFile": f"{tmp_path}/.env"}
    assert launch(tmp_path, "claude-code", entry) == Launch(("server",), {})
    assert launch(tmp_path, "gemini", entry) == Launch(("server",), {}, folder="/srv")
