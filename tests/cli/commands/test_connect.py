"""`rootsd connect`, `disconnect`, and `clients`, with settings in a home of the test."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pexpect
import pytest

from rootsd.cli.answers import neovim
from rootsd.core.errors import Exit
from rootsd.sync.entries import OwnEntries
from rootsd.sync.record import SyncedClient, SyncRecord
from support.client_home import ROOTSD
from support.terminal import Shell
from support.terminal_programs import on_terminal

GEMINI = '{\n  "theme": "dark", // mine\n  "mcpServers": {}\n}\n'
SERVER = '{"mcpServers": {"files": {"command": "%s", "args": ["x"]}, "web": {"url": "http://x"}}}'


@pytest.fixture
def clients(home: Path, monkeypatch: pytest.MonkeyPatch, rootsd_dir: Path) -> Path:
    """A home folder with Gemini CLI and Cursor, and an empty PATH."""
    programs = home / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("rootsd.cli.commands.connect.installed_command", lambda: ROOTSD)
    monkeypatch.setattr("rootsd.cli.answers.control_client.is_running", lambda: True)
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(GEMINI)
    (home / ".cursor").mkdir()
    return home


def items(out: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(out)["items"]
    return found


def settings(home: Path) -> Path:
    return home / ".gemini" / "settings.json"


def test_all_connects_the_tried_clients_and_names_the_others(clients: Path, shell: Shell) -> None:
    done = shell.run("connect", "--all")
    assert (done.status, done.out) == (0, f"gemini\tconnected\t{settings(clients)}\n")
    assert "only by name: cursor" in done.err
    assert not (clients / ".cursor" / "mcp.json").exists()
    assert f'"{ROOTSD}"' in settings(clients).read_text()
    again = shell.run("connect", "gemini")
    assert again.out == f"gemini\tunchanged\t{settings(clients)}\n"


def test_a_client_that_was_not_tried_is_connected_by_name(clients: Path, shell: Shell) -> None:
    done = shell.run("connect", "cursor")
    assert done.status == 0
    assert "was not tried with rootsd" in done.err
    assert "rootsd" in (clients / ".cursor" / "mcp.json").read_text()


def test_disconnect_restores_everything(clients: Path, shell: Shell) -> None:
    shell.run("connect", "gemini", "cursor", "--allow-tools")
    done = shell.run("disconnect", "--all")
    assert [line.split("\t")[1] for line in done.out.splitlines()] == ["disconnected"] * 2
    assert settings(clients).read_text() == GEMINI
    assert os.listdir(clients / ".cursor") == []
    assert shell.run("disconnect", "gemini").out.split("\t")[1] == "unchanged"
    assert shell.run("disconnect", "--all").status == 5


def test_disconnect_removes_a_container_that_sync_had_to_leave(
    clients: Path, shell: Shell, rootsd_dir: Path
) -> None:
    file = clients / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text('{"x": 1, "permissions": {}}')
    (rootsd_dir / "state").mkdir(mode=0o700, parents=True)
    record = SyncRecord(bytes(rootsd_dir / "state"))
    record.save_own({str(file): OwnEntries(made=(("permissions",),))})
    shell.run("connect", "claude-code", "--allow-tools")
    assert "mcp__rootsd__list_roots" in file.read_text()
    assert shell.run("disconnect", "claude-code").status == 0
    assert (file.read_text(), record.own()) == ('{"x": 1}', {})


def test_disconnect_names_the_other_homes_that_are_connected_or_synced(
    clients: Path, shell: Shell, rootsd_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (clients / name).mkdir()
    monkeypatch.setenv("COPILOT_HOME", str(clients / "one"))
    shell.run("connect", "copilot")
    monkeypatch.delenv("COPILOT_HOME")
    record = SyncRecord(bytes(rootsd_dir / "state"))
    record.save_clients([SyncedClient("copilot", f"{clients}/two/settings.json")])
    said = shell.run("disconnect", "copilot").err
    again = "rootsd disconnect copilot)"
    assert (
        f"is also connected in ~/one/mcp-config.json (try: COPILOT_HOME={clients}/one {again}"
        in said
    )
    assert (
        f"is also synced in ~/two/settings.json (try: COPILOT_HOME={clients}/two {again}" in said
    )


def test_a_dry_run_prints_the_difference_and_writes_nothing(clients: Path, shell: Shell) -> None:
    done = shell.run("connect", "gemini", "--dry-run")
    assert done.status == 0
    assert "+++ ~/.gemini/settings.json" in done.out
    assert '+  "mcpServers": {"rootsd"' in done.out
    assert settings(clients).read_text() == GEMINI
    assert items(shell.run("connect", "gemini", "--dry-run", "--json").out)[0]["diff"]
    shell.run("connect", "gemini")
    wired = settings(clients).read_text()
    assert '-  "mcpServers": {"rootsd"' in shell.run("disconnect", "gemini", "--dry-run").out
    assert settings(clients).read_text() == wired


def test_the_entry_names_the_folder_of_a_daemon_of_its_own(
    clients: Path, shell: Shell, rootsd_dir: Path
) -> None:
    dry = shell.run("connect", "gemini", "--dry-run")
    assert f'"env": {{"ROOTSD_DIR": "{rootsd_dir}"}}' in dry.out
    done = shell.run("connect", "gemini")
    for said in (dry.err, done.err):
        assert f"The entry sets ROOTSD_DIR, so Gemini CLI uses the daemon in {rootsd_dir}" in said
    refused = shell.run("connect", "gemini", "--wrap")
    assert (refused.status, "try: unset ROOTSD_DIR" in refused.err) == (2, True)


def test_a_file_that_is_not_understood_gets_lines_to_paste(
    clients: Path, shell: Shell, rootsd_dir: Path
) -> None:
    settings(clients).write_text('{"a": 1, "a": 2}')
    done = shell.run("connect", "gemini", "cursor")
    assert done.status == 1
    assert '"a" is there twice' in done.err
    assert f'"command": "{ROOTSD}"' in done.err
    assert settings(clients).read_text() == '{"a": 1, "a": 2}'
    assert (clients / ".cursor" / "mcp.json").exists()
    [item] = items(shell.run("connect", "gemini", "--json").out)
    entry = {"command": ROOTSD, "args": ["bridge"], "env": {"ROOTSD_DIR": str(rootsd_dir)}}
    assert item["result"] == "refused"
    assert json.loads(str(item["snippet"])) == {"mcpServers": {"rootsd": entry}}


def test_a_client_that_nobody_could_run_gets_lines_to_paste_and_no_change(
    clients: Path, shell: Shell
) -> None:
    done = shell.run("connect", "antigravity", "--yes")
    assert done.status == Exit.FAILED
    assert "was never run" in done.err
    assert f'"command": "{ROOTSD}"' in done.err
    assert not (clients / ".gemini" / "config").exists()


def test_a_symlink_needs_yes(clients: Path, shell: Shell) -> None:
    real = clients / "dotfiles.json"
    settings(clients).rename(real)
    settings(clients).symlink_to(real)
    done = shell.run("connect", "gemini")
    assert (done.status, real.read_text()) == (1, GEMINI)
    assert "rootsd connect gemini --yes" in done.err
    assert shell.run("connect", "gemini", "--yes").status == 0
    assert "rootsd" in real.read_text()


def test_tools_are_allowed_by_their_own_flag_alone(clients: Path, shell: Shell) -> None:
    assert shell.run("connect", "gemini", "--yes").status == 0
    assert "trust" not in settings(clients).read_text()
    assert shell.run("connect", "gemini", "--allow-tools").status == 0
    assert '"trust": true' in settings(clients).read_text()


def test_without_a_name_or_a_terminal_connect_names_the_flag(clients: Path, shell: Shell) -> None:
    done = shell.run("connect")
    assert (done.status, "try: rootsd connect --all" in done.err) == (2, True)
    assert shell.run("connect", "nothing").status == 2
    assert shell.run("connect", "gemini", "--no-confine").status == 2


def test_without_any_client_connect_fails(clients: Path, shell: Shell) -> None:
    settings(clients).unlink()
    settings(clients).parent.rmdir()
    assert shell.run("connect", "--all").status == 5


@pytest.mark.parametrize(("keys", "trusted"), [("yy", True), ("y\r", False)])
def test_a_person_is_asked_about_each_client_and_apart_about_its_tools(
    clients: Path, keys: str, trusted: bool
) -> None:
    child = on_terminal((sys.executable, "-m", "rootsd", "connect"), Path.cwd())
    for question, key in zip(
        (r"Connect Gemini.*\[Y/n\] ", r"May Gemini.*\[y/N\] "), keys, strict=True
    ):
        child.expect(question)
        child.send(key)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    text = settings(clients).read_text()
    assert ("bridge" in text, '"trust": true' in text) == (True, trusted)


def wrap(
    home: Path,
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    *,
    has_wall: bool = True,
) -> str:
    """Connect with --wrap, where `script` stands for `rootsd run`, and return the messages."""
    program = home / "bin" / "rootsd"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr("rootsd.cli.commands.connect.installed_command", lambda: str(program))
    monkeypatch.setattr("rootsd.cli.commands.connect.has_wall", lambda: has_wall)
    monkeypatch.setattr("rootsd.cli.commands.connect.place_variables", dict)
    settings(home).write_text(SERVER % "npx")
    return shell.run("connect", "gemini", "--wrap").err


def words_of(home: Path, name: str = "files") -> Sequence[str]:
    entry = json.loads(settings(home).read_text())["mcpServers"][name]
    return [os.path.basename(entry["command"]), *entry["args"]]


_WORKS = """read -r line
echo '{"jsonrpc":"2.0","id":1,"result":{"capabilities":{}}}'"""


def test_a_server_that_works_behind_the_wall_is_wrapped_with_it(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = wrap(clients, shell, monkeypatch, _WORKS)
    assert words_of(clients) == ["rootsd", "run", "--confine", "--", "npx", "x"]
    assert "web is not wrapped: it is reached over the network" in said
    [item] = items(shell.run("clients", "--no-check", "--json").out)[1:]
    assert item["wrapped"] == [{"name": "files", "confined": True}]
    assert shell.run("disconnect", "gemini", "--unwrap").out.split("\t")[1] == "unwrapped"
    assert words_of(clients) == ["npx", "x"]
    assert "bridge" in settings(clients).read_text()
    shell.run("disconnect", "gemini")
    assert settings(clients).read_text() == SERVER % "npx"


def test_a_server_that_fails_behind_the_wall_is_not_wrapped_without_a_key(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f'case "$*" in *" --confine "*) echo "no home" >&2; exit 1;; esac\n{_WORKS}'
    said = wrap(clients, shell, monkeypatch, script)
    assert words_of(clients) == ["npx", "x"]
    assert "files is not wrapped: it does not work behind the wall: no home" in said
    assert shell.run("connect", "gemini", "--wrap", "--no-confine").status == 0
    assert words_of(clients) == ["rootsd", "run", "--no-confine", "--", "npx", "x"]
    assert "files (no wall)" in shell.run("clients", "--no-check").out


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A policy that requires the wall. It is broken unless root runs the test."""
    file = tmp_path / "policy.toml"
    file.write_text("version = 1\n[confine]\nrequired = true\n")
    for command in ("clients", "connect"):
        monkeypatch.setattr(f"rootsd.cli.commands.{command}.POLICY_FILE", bytes(file))
    return file


def test_under_a_policy_no_server_is_wrapped_without_the_wall(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, policy: Path
) -> None:
    script = f'case "$*" in *" --confine "*) echo "no home" >&2; exit 1;; esac\n{_WORKS}'
    said = wrap(clients, shell, monkeypatch, script)
    assert words_of(clients) == ["npx", "x"]
    assert "it does not work behind the wall, which the policy requires: no home" in said
    refused = shell.run("connect", "gemini", "--wrap", "--no-confine")
    assert (refused.status, str(policy) in refused.err) == (2, True)
    assert "--no-confine is refused" in refused.err
    assert words_of(clients) == ["npx", "x"]


def test_a_server_without_the_wall_is_named_when_a_policy_requires_the_wall(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    script = f'case "$*" in *" --confine "*) echo "no home" >&2; exit 1;; esac\n{_WORKS}'
    wrap(clients, shell, monkeypatch, script)
    assert shell.run("connect", "gemini", "--wrap", "--no-confine").status == 0
    assert "policy" not in shell.run("clients", "--no-check").err
    file = request.getfixturevalue("policy")
    said = shell.run("clients", "--no-check").err
    assert "gemini: files is wrapped without the wall, but the policy" in said
    assert str(file) in said
    assert "try: rootsd connect gemini --wrap" in said


def test_under_a_policy_a_server_that_works_behind_the_wall_is_wrapped(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, policy: Path
) -> None:
    wrap(clients, shell, monkeypatch, _WORKS)
    assert words_of(clients) == ["rootsd", "run", "--confine", "--", "npx", "x"]


def test_under_a_policy_nothing_is_wrapped_where_the_wall_cannot_work(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, policy: Path
) -> None:
    monkeypatch.setattr("rootsd.cli.commands.connect.has_wall", lambda: False)
    monkeypatch.setattr("rootsd.cli.commands.connect.place_variables", dict)
    refused = shell.run("connect", "gemini", "--wrap")
    assert refused.status == 2
    assert "the wall does not work here" in refused.err
    assert "try: rootsd doctor" in refused.err
    assert settings(clients).read_text() == GEMINI


@pytest.mark.parametrize("default", [False, True])
def test_without_a_wall_each_server_needs_a_key_if_the_configuration_wants_the_wall(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, rootsd_dir: Path, default: bool
) -> None:
    (rootsd_dir / "config").mkdir(parents=True)
    (rootsd_dir / "config" / "config.toml").write_text(f"[confine]\ndefault = {default}".lower())
    script = f'case "$*" in *" --confine "*) echo "no wall" >&2; exit 1;; esac\n{_WORKS}'
    said = wrap(clients, shell, monkeypatch, script, has_wall=False)
    front = [] if default else ["rootsd", "run", "--no-confine", "--"]
    assert words_of(clients) == [*front, "npx", "x"]
    assert ("it does not work behind the wall: no wall" in said) is default


def test_without_a_daemon_no_server_is_blamed(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rootsd.cli.commands.connect.has_wall", lambda: True)
    monkeypatch.setattr("rootsd.cli.commands.connect.place_variables", dict)
    monkeypatch.setattr("rootsd.cli.answers.control_client.is_running", lambda: False)
    refused = shell.run("connect", "gemini", "--wrap")
    assert refused.status == 69
    assert "the daemon is not running, and --wrap needs it" in refused.err
    assert "try: rootsd up" in refused.err
    assert settings(clients).read_text() == GEMINI
    assert shell.run("connect", "gemini", "--wrap", "--no-confine").status == 0


def test_a_server_that_does_not_work_at_all_is_not_wrapped(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = wrap(clients, shell, monkeypatch, "exit 3")
    assert words_of(clients) == ["npx", "x"]
    assert "files is not wrapped: it does not work under rootsd run: it ended" in said


def test_the_servers_of_a_project_are_wrapped_and_those_in_its_files_named(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = clients / "a"
    project.mkdir()
    servers = {"mcpServers": {"local": {"command": "npx"}}}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"team": {"command": "npx"}}}))
    before = json.dumps({"projects": {str(project): servers}})
    (clients / ".claude.json").write_text(before)
    wrap(clients, shell, monkeypatch, f'[ "$PWD" = {project} ] || exit 1\n{_WORKS}')
    done = shell.run("connect", "claude-code", "--wrap")
    why = ".mcp.json is a file of the project"
    assert f"Claude Code: team (in {project}/.mcp.json) is not wrapped: {why}" in done.err
    [item, *_] = items(shell.run("clients", "--no-check", "--json").out)
    assert item["wrapped"] == [{"name": f"local (in {project})", "confined": True}]
    assert item["not_wrapped"] == [{"name": f"team (in {project}/.mcp.json)", "reason": why}]
    shell.run("disconnect", "claude-code")
    assert (clients / ".claude.json").read_text() == before


def wrap_entry(
    home: Path,
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
    entry: Mapping[str, object],
    *options: str,
    script: str = _WORKS,
) -> str:
    """Connect with --wrap and options, with this entry as the server `files`."""
    wrap(home, shell, monkeypatch, script)
    shell.run("disconnect", "gemini")
    settings(home).write_text(json.dumps({"mcpServers": {"files": entry}}))
    return shell.run("connect", "gemini", "--wrap", *options).err


def test_a_server_that_would_lose_a_file_is_not_wrapped_until_a_person_shows_the_file(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = clients / "notes" / "memory.json"
    memory.parent.mkdir()
    memory.write_text("{}")
    entry = {"command": "npx", "args": ["x"], "env": {"MEMORY_FILE_PATH": str(memory)}}
    said = wrap_entry(clients, shell, monkeypatch, entry)
    assert words_of(clients) == ["npx", "x"]
    assert (
        "files is not wrapped: behind the wall, it could not reach ~/notes/memory.json"
        " (MEMORY_FILE_PATH) (try: rootsd connect gemini --wrap --write ~/notes)"
    ) in said
    before = json.dumps({"mcpServers": {"files": entry}})
    for use in ("--write", "--read", "--keep"):
        wrap_entry(clients, shell, monkeypatch, entry, use, str(memory.parent))
        shown = [use, str(memory.parent)]
        assert words_of(clients) == ["rootsd", "run", "--confine", *shown, "--", "npx", "x"]
        if use == "--keep":  # no record is left
            shutil.rmtree(Path(os.environ["ROOTSD_DIR"]) / "state" / "connect")
        assert shell.run("disconnect", "gemini").status == 0
        assert json.loads(settings(clients).read_text()) == json.loads(before)


def test_without_a_look_at_its_paths_the_same_server_would_be_wrapped(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the trial alone does not notice the lost file."""
    memory = clients / "notes" / "memory.json"
    memory.parent.mkdir()
    memory.write_text("{}")
    entry = {"command": "npx", "args": ["x"], "env": {"MEMORY_FILE_PATH": str(memory)}}
    monkeypatch.setattr("rootsd.cli.answers.server_trials.path_needs", lambda *_: [])
    wrap_entry(clients, shell, monkeypatch, entry)
    assert words_of(clients) == ["rootsd", "run", "--confine", "--", "npx", "x"]


@pytest.mark.parametrize("wall", ["--confine", "--no-confine"])
def test_a_server_that_is_limited_to_a_folder_is_not_widened(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, wall: str
) -> None:
    folder = clients / "My Documents"
    folder.mkdir()
    entry = {"command": "npx", "args": ["server-filesystem", str(folder)]}
    options = ["--no-confine"] if wall == "--no-confine" else []
    said = wrap_entry(clients, shell, monkeypatch, entry, *options)
    assert words_of(clients) == ["npx", "server-filesystem", str(folder)]
    assert "its command limits it to ~/My Documents, and a wrapped server can get the" in said
    again = " ".join(["--wrap", *options, "--write", f"'{folder}'"])
    assert f"(try: rootsd connect gemini {again})" in said
    wrap_entry(clients, shell, monkeypatch, entry, *options, "--write", str(folder))
    assert words_of(clients)[:3] == ["rootsd", "run", wall]
    assert ("--write" in words_of(clients)) is (wall == "--confine")


def test_a_file_beside_those_of_others_needs_a_folder_of_its_own(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {"command": "npx", "args": ["x"], "env": {"DB": "~/new.db"}}
    said = wrap_entry(clients, shell, monkeypatch, entry)
    assert words_of(clients) == ["npx", "x"]
    assert "behind the wall, it could not reach ~/new.db (DB)" in said
    why = "to change a file, it needs the folder, so move ~/new.db into a folder of its own"
    assert why in said
    assert "try: rootsd connect gemini --wrap" not in said
    (clients / "new.db").touch()
    said = wrap_entry(clients, shell, monkeypatch, entry)
    assert why in said
    assert "try: rootsd connect gemini --wrap --read ~/new.db)" in said
    wrap_entry(clients, shell, monkeypatch, entry, "--read", str(clients / "new.db"))
    assert "--read" in words_of(clients)


def test_a_server_in_a_virtual_environment_and_with_state_of_its_own_gets_both(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv, state = clients / ("e" * 150) / "venv", clients / ".config" / "my-server"
    (venv / "bin").mkdir(parents=True)
    state.mkdir(parents=True)
    (venv / "pyvenv.cfg").touch()
    program = venv / "bin" / "my-server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    said = wrap_entry(clients, shell, monkeypatch, {"command": str(program)})
    assert words_of(clients) == [
        "rootsd", "run", "--confine", "--read", str(venv), "--keep", str(state), "--",
        str(program),
    ]  # fmt: skip
    assert f"files gets its virtual environment: --read ~/{'e' * 150}/venv" in said
    assert "files keeps a copy of its own state: --keep ~/.config/my-server" in said


def test_a_reason_of_rootsd_is_never_cut(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"rootsd run: x is outside the wall; try: --read /{'d' * 400}"
    said = wrap_entry(
        clients, shell, monkeypatch, {"command": "npx"}, script=f"echo '{line}' >&2; exit 1"
    )
    assert line in said


def test_a_server_with_a_working_directory_is_tried_there_and_not_limited_to_it(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = clients / "srv"
    folder.mkdir()
    monkeypatch.setenv("SRV", str(folder))
    entry = {"command": "npx", "args": ["x"], "cwd": "${SRV}"}
    said = wrap_entry(clients, shell, monkeypatch, entry)
    assert "could not reach ~/srv (its working directory)" in said
    script = f'[ "$PWD" = {folder} ] || exit 1\n{_WORKS}'
    wrap_entry(clients, shell, monkeypatch, entry, "--read", str(folder), script=script)
    assert words_of(clients) == [
        "rootsd", "run", "--confine", "--all", "--client-roots", "auto", "--keep-cwd", "--read",
        str(folder), "--", "npx", "x",
    ]  # fmt: skip
    shell.run("disconnect", "gemini")
    assert json.loads(settings(clients).read_text())["mcpServers"]["files"] == entry


def test_a_server_that_only_its_client_can_start_is_wrapped_without_a_trial(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {"command": "npx", "args": ["${input:key}"]}
    said = wrap_entry(clients, shell, monkeypatch, entry, script="exit 1")
    assert words_of(clients) == ["rootsd", "run", "--confine", "--", "npx", "${input:key}"]
    assert "files is wrapped without a trial, because rootsd does not know what Gemini CLI" in said
    assert "${input:key}" in said
    assert "Trying files" not in said


def test_a_whole_command_line_is_split_and_restored(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cursor may do that. Gemini CLI does not, so there the entry is left alone."""
    entry = {"command": "npx -y 'my server'", "args": ["x"]}
    said = wrap_entry(clients, shell, monkeypatch, entry)
    assert "files is not wrapped: Gemini CLI does not start a whole command line" in said
    file = clients / ".cursor" / "mcp.json"
    file.parent.mkdir(exist_ok=True)
    for each, words, why in (
        (entry, ["run", "--confine", "--", "npx", "-y", "my server", "x"], ""),
        ({"command": "cd /x && npx"}, None, "files is not wrapped: its command needs a shell"),
    ):
        text = json.dumps({"mcpServers": {"files": each}})
        file.write_text(text)
        assert why in shell.run("connect", "cursor", "--wrap").err
        assert json.loads(file.read_text())["mcpServers"]["files"].get("args") == words
        shell.run("disconnect", "cursor")
        assert json.loads(file.read_text()) == json.loads(text)


@pytest.mark.parametrize(("key", "use"), [("w", "--write"), ("k", "--keep"), ("\r", "")])
def test_a_person_shows_a_file_by_a_key(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, key: str, use: str
) -> None:
    memory = clients / "notes" / "memory.json"
    memory.parent.mkdir()
    memory.touch()
    entry = {"command": "npx", "args": ["x", "--memory", str(memory)]}
    wrap(clients, shell, monkeypatch, _WORKS)
    shell.run("disconnect", "gemini")
    settings(clients).write_text(json.dumps({"mcpServers": {"files": entry}}))
    monkeypatch.setattr("rootsd.cli.answers.questions.Keyboard.is_there", lambda _: True)
    asked: list[str] = []

    def press(_: object, question: str) -> str:
        asked.append(question)
        return key if "memory.json" in question else "n"

    monkeypatch.setattr("rootsd.cli.answers.questions.Keyboard.press", press)
    shell.run("connect", "gemini", "--wrap")
    place = str(memory if use == "--read" else memory.parent)
    shown = ["rootsd", "run", "--confine", use, place, "--"] if use else []
    assert words_of(clients) == [*shown, "npx", "x", "--memory", str(memory)]
    [question] = [each for each in asked if "memory.json" in each]
    assert "could not reach ~/notes/memory.json (its command). Let it (r)ead" in question


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--read", "/usr"], "--read needs --wrap"),
        (["--wrap", "--keep", "/no/such"], "--keep: /no/such does not exist"),
    ],
)
def test_options_for_paths_are_checked(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, options: list[str], said: str
) -> None:
    monkeypatch.setattr("rootsd.cli.commands.connect.place_variables", dict)
    done = shell.run("connect", "gemini", *options)
    assert (done.status, said in done.err) == (2, True)
    assert settings(clients).read_text() == GEMINI


def test_clients_lists_what_is_wired_and_what_was_not_tried(clients: Path, shell: Shell) -> None:
    shell.run("connect", "gemini")
    lines = [line.split("\t") for line in shell.run("clients").out.splitlines()]
    assert [line[0] for line in lines] == ["cursor", "gemini"]
    assert [line[2] for line in lines] == ["no", "yes"]
    assert [line[6] for line in lines] == ["not tried", "tried"]
    for words, is_asked in ((("clients",), True), (("clients", "--no-check"), False)):
        shown = shell.run_on_terminal(*words)
        assert ("Asking each client" in shown.out + shown.err) is is_asked
    everything = items(shell.run("clients", "--all", "--no-check", "--json").out)
    assert len(everything) > len(lines)


def test_hostile_names_of_servers_are_shown_safely(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rootsd.cli.commands.connect.place_variables", dict)
    name = "a\x1b[2J\u202e"
    settings(clients).write_text(json.dumps({"mcpServers": {name: {"url": "x"}}}))
    done = shell.run("connect", "gemini", "--wrap")
    assert done.status == 0
    assert not {"\x1b", "\u202e"} & {*done.out, *done.err}
    shown = shell.run_on_terminal("clients", "--no-check")
    assert "\x1b[2J" not in shown.out


def test_the_folder_for_worktrees_is_offered_and_watched(
    clients: Path, shell: Shell, rootsd_dir: Path
) -> None:
    config = rootsd_dir / "config" / "config.toml"
    assert shell.run("connect", "codex").status == 0
    assert not config.exists()
    assert "is now watched" in shell.run("connect", "codex", "--yes").err
    assert 'path = "~/.codex/worktrees"' in config.read_text()
    assert (clients / ".codex" / "worktrees").is_dir()
    assert "is now watched" not in shell.run("connect", "codex", "--yes").err


def test_a_watched_folder_for_worktrees_is_taken_back(
    clients: Path, shell: Shell, rootsd_dir: Path
) -> None:
    config = rootsd_dir / "config" / "config.toml"
    shell.run("parent", "add", str(clients), "--depth", "2")
    before = config.read_text()
    shell.run("connect", "codex", "--yes")
    assert config.read_text() == before  # the parent contains it
    shell.run("disconnect", "codex")
    assert config.read_text() == before
    shell.run("parent", "rm", str(clients))
    shell.run("connect", "codex", "--yes")
    assert "worktrees" in config.read_text()
    planned = shell.run("disconnect", "codex", "--dry-run").err
    assert "~/.codex/worktrees would no longer be watched." in planned
    assert "worktrees" in config.read_text()
    assert "~/.codex/worktrees is no longer watched." in shell.run("disconnect", "--all").err
    assert "worktrees" not in config.read_text()
    assert not (clients / ".codex").exists()


def test_a_persons_own_parent_and_other_worktrees_stay(
    clients: Path, shell: Shell, rootsd_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = rootsd_dir / "config" / "config.toml"
    mine = clients / ".codex/worktrees/mine"
    mine.mkdir(parents=True)
    shell.run("parent", "add", str(mine.parent))
    before = config.read_text()
    shell.run("connect", "codex", "--yes")
    shell.run("disconnect", "codex")
    assert config.read_text() == before
    shell.run("parent", "rm", str(mine.parent))
    shell.run("connect", "codex", "--yes")
    monkeypatch.setenv("CODEX_HOME", str(clients / "second"))
    shell.run("connect", "codex", "--yes")
    assert config.read_text().count("worktrees") == 2
    shell.run("disconnect", "codex")
    assert 'path = "~/.codex/worktrees"' in config.read_text()
    assert "second" not in config.read_text()
    shell.run("disconnect", "--all")
    assert "worktrees" not in config.read_text()
    assert mine.is_dir()


def test_an_entry_whose_program_does_not_exist_is_not_connected(
    clients: Path, shell: Shell, tmp_path: Path
) -> None:
    program = tmp_path / "gone/rootsd"
    entry = {"command": str(program), "args": ["bridge", "--only", "cwd"]}
    settings(clients).write_text(json.dumps({"mcpServers": {"mine": entry}}))
    done = shell.run("connect", "gemini")
    assert done.status == 1
    assert f"its entry starts {program}, which does not exist" in done.err
    [item] = [each for each in items(shell.run("clients", "--no-check", "--json").out)
              if each["client"] == "gemini"]  # fmt: skip
    assert item["wired"] == "broken"
    program.parent.mkdir()
    program.touch(0o755)
    done = shell.run("connect", "gemini")
    assert (done.status, done.out.split("\t")[1]) == (0, "connected by hand")


def test_a_folder_for_worktrees_that_cannot_be_watched_is_a_warning(
    clients: Path, shell: Shell, rootsd_dir: Path
) -> None:
    (clients / ".codex").mkdir()
    (clients / ".codex" / "worktrees").write_text("a file")
    done = shell.run("connect", "codex", "--yes")
    assert (done.status, done.out.split("\t")[1]) == (0, "connected")
    assert "Codex: its worktrees are not watched: File exists" in done.err
    config = rootsd_dir / "config"
    config.mkdir()
    (config / "config.toml").write_text("no = [")
    done = shell.run("connect", "codex", "--yes")
    assert (done.status, done.out.split("\t")[1]) == (0, "unchanged")
    assert "Codex: its worktrees are not watched: " in done.err


def test_denials_are_synced_on_request_where_the_client_has_lists(
    clients: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(
        "rootsd.cli.answers.sync_control.start_syncing",
        lambda _, chosen: synced.append(f"{chosen.client} {chosen.file}"),
    )
    dry = shell.run("connect", "copilot", "--sync-access", "--dry-run")
    assert ("would be synced" in dry.err, synced) == (True, [])
    done = shell.run("connect", "copilot", "amp", "zed", "--sync-access")
    assert "A denial does not cover anything, unless its sandbox is on" in done.err
    assert "Amp has no access lists that rootsd can sync" in done.err
    assert "Zed has no access lists that rootsd can sync: its sandbox limits only" in done.err
    assert synced == [f"copilot {clients}/.copilot/settings.json"]


def test_clients_says_when_a_synced_client_applies_decisions(
    clients: Path, shell: Shell, rootsd_dir: Path
) -> None:
    for name in (".codex", ".config/zed", ".config/opencode"):
        (clients / name).mkdir(parents=True)
    state = rootsd_dir / "state"
    state.mkdir(0o700, parents=True)
    record = SyncRecord(os.fsencode(state))
    record.save_clients([SyncedClient("codex", f"{clients}/.codex/rootsd.config.toml")])
    said = " ".join(shell.run_on_terminal("clients", "--no-check").out.split())
    assert "codex: it applies your decisions at its next start with codex -p rootsd." in said
    assert "Denied paths can be read in the settings of a synced client." in said
    assert "grants stay until the next start of rootsd" in said
    assert "zed: it has no lists to sync: its sandbox limits only" in said
    assert "opencode: it has no permission hook for rootsd: its hooks are code" in said


def test_the_hook_is_offered_installed_and_removed(clients: Path, shell: Shell) -> None:
    assert "rootsd connect gemini --hook" in shell.run("connect", "gemini").err
    done = shell.run("connect", "gemini", "amp", "opencode", "--hook")
    assert "Amp has no permission hook that rootsd answers" in done.err
    assert "opencode has no permission hook that rootsd answers: its hooks are code" in done.err
    assert "connect gemini --hook" not in done.err
    assert f"{ROOTSD} hook gemini" in settings(clients).read_text()
    shown = {
        item["client"]: item["hook"]
        for item in items(shell.run("clients", "--no-check", "--json").out)
    }
    assert (shown["gemini"], shown["cursor"], shown["amp"]) == (True, False, None)
    said = " ".join(shell.run_on_terminal("clients", "--no-check").out.split())
    assert "gemini: its permission hook does not see the paths in shell commands" in said
    shell.run("disconnect", "--all")
    assert settings(clients).read_text() == GEMINI


def test_doctor_names_an_entry_and_a_hook_whose_program_is_gone(
    clients: Path, shell: Shell, tmp_path: Path
) -> None:
    shell.run("connect", "claude-code", "--hook")
    program = tmp_path / "rootsd"
    program.touch(0o755)
    for file in (clients / ".claude.json", clients / ".claude/settings.json"):
        file.write_text(file.read_text().replace("/opt/rootsd/bin/rootsd", str(program)))
    assert "cannot start" not in shell.run("doctor").out
    program.unlink()
    said = shell.run("doctor").out
    assert f"Claude Code cannot start rootsd in ~/.claude.json: {program}" in said
    assert "rootsd connect claude-code" in said
    where = "its permission hook in ~/.claude/settings.json"
    assert f"Claude Code cannot start {where}: {program} is no program" in said


def test_only_claude_code_gets_a_strict_hook(clients: Path, shell: Shell) -> None:
    assert "--strict needs --hook" in shell.run("connect", "gemini", "--strict").err
    done = shell.run("connect", "gemini", "claude-code", "--hook", "--strict")
    assert "Gemini CLI lets a call pass whose hook fails, so its hook is not strict" in done.err
    assert "--strict" not in settings(clients).read_text()
    assert (
        f'{ROOTSD} hook claude-code --strict"' in (clients / ".claude/settings.json").read_text()
    )


@pytest.mark.parametrize(
    ("version", "is_old"), [("2.1.197", True), ("2.1.295", False), ("3.0.1", False), ("", False)]
)
def test_an_older_client_that_ignores_strictness_is_named(
    clients: Path,
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    version: str,
    is_old: bool,
) -> None:
    program = tmp_path / "programs/claude"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{version} (Claude Code)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    said = shell.run("connect", "claude-code", "--hook", "--strict").err
    assert ("Version 2.1.295 and newer refuse it" in said) is is_old


def test_settings_that_are_not_changed_are_named(clients: Path, shell: Shell) -> None:
    (clients / ".config/Code/User/profiles/-3c8ff5b").mkdir(parents=True)
    (clients / ".var/app/dev.zed.Zed/config").mkdir(parents=True)
    profile = f"a profile with servers of its own in {clients}/.config/Code/User/profiles/-3c8"
    flatpak = f"Zed from Flatpak has its own settings in {clients}/.var/app/dev.zed.Zed/config"
    assert profile in shell.run("connect", "vscode").err
    said = shell.run("clients", "--no-check").err
    assert profile in said
    assert flatpak in said
    examined = " ".join(shell.run("doctor").out.split())
    assert flatpak in examined


# Agents that start behind the wall when they are typed


@pytest.fixture
def walled(clients: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a person who uses bash, on a system with a wall."""
    monkeypatch.setattr("rootsd.cli.answers.typed_agents.has_wall", lambda: True)
    monkeypatch.setenv("SHELL", "/bin/bash")
    return clients


def typed_agents(shell: Shell) -> list[str]:
    found: list[str] = json.loads(shell.run("clients", "--no-check", "--json").out)["agents"]
    return found


def test_an_agent_starts_behind_the_wall_when_it_is_typed_until_it_is_disconnected(
    walled: Path, shell: Shell, rootsd_dir: Path
) -> None:
    config = rootsd_dir / "config" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("# mine\n[confine]\nnetwork = false # mine, too\n")
    done = shell.run("connect", "--confine", "claude", "--confine", "pi")
    assert (done.status, done.out) == (
        0, f"claude\tbehind the wall\t{config}\npi\tbehind the wall\t{config}\n",
    )  # fmt: skip
    assert 'Add this line to ~/.bashrc: eval "$(rootsd shell-init bash)"' in done.err
    assert typed_agents(shell) == ["claude", "pi"]
    again = shell.run("connect", "--confine", "claude-code")  # the name of the agent
    assert again.out == f"claude\tunchanged\t{config}\n"
    (walled / ".bashrc").write_text('eval "$(rootsd shell-init bash)"\n')
    assert "Add this line" not in shell.run("connect", "--confine", "pi").err
    assert settings(walled).read_text() == GEMINI
    assert shell.run("disconnect", "claude-code").status == 0
    assert typed_agents(shell) == ["pi"]
    done = shell.run("disconnect", "--confine", "pi", "--confine", "claude")
    assert done.out == f"pi\tno longer behind the wall\t{config}\n"
    assert config.read_text() == "# mine\n[confine]\nnetwork = false # mine, too\n"
    assert shell.run("disconnect", "--confine", "pi").out == ""


def test_all_disconnects_the_typed_agents_too_and_a_dry_run_changes_nothing(
    walled: Path, shell: Shell, rootsd_dir: Path
) -> None:
    config = rootsd_dir / "config" / "config.toml"
    dry = shell.run("connect", "--confine", "claude", "--dry-run")
    assert (dry.status, config.exists()) == (0, False)
    shell.run("connect", "gemini", "--confine", "gemini")
    assert typed_agents(shell) == ["gemini"]
    assert '"bridge"' in settings(walled).read_text()
    shell.run("disconnect", "--all", "--dry-run")
    assert typed_agents(shell) == ["gemini"]
    assert shell.run("disconnect", "--all").status == 0
    assert typed_agents(shell) == []
    assert settings(walled).read_text() == GEMINI


@pytest.mark.parametrize(
    ("name", "message"),
    [("no-such\x1b[2J", "knows no agent called"), ("hermes", "no profile"), ("ls", "knows no")],
)
def test_an_agent_without_a_profile_is_refused_with_the_next_command(
    walled: Path, shell: Shell, rootsd_dir: Path, name: str, message: str
) -> None:
    done = shell.run("connect", "--confine", name)
    assert done.status == Exit.NOTHING_MATCHED
    assert message in done.err
    assert "try: rootsd con" in done.err
    assert "\x1b" not in done.err
    assert not (rootsd_dir / "config" / "config.toml").exists()


def test_without_a_wall_no_agent_is_confined(
    walled: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.run("connect", "--confine", "claude")
    monkeypatch.setattr("rootsd.cli.answers.typed_agents.has_wall", lambda: False)
    done = shell.run("connect", "--confine", "pi")
    assert (done.status, "try: rootsd doctor" in done.err) == (Exit.REFUSED, True)
    assert typed_agents(shell) == ["claude"]
    shell.run("disconnect", "--confine", "claude")  # this does not need one
    assert typed_agents(shell) == []


@pytest.mark.parametrize("plugin", neovim.PLUGINS)
def test_the_lua_for_a_plugin_of_neovim_runs_the_agent_under_rootsd(plugin: str) -> None:
    lua = neovim.lua_for(plugin, '/opt/my "tools"/rootsd')
    words = re.findall(r'"(?:[^"\\]|\\.)*"', lua)
    at = words.index(r'"/opt/my \"tools\"/rootsd"')
    assert words[at + 1 : at + 4] == ['"acp"', '"--"', '"claude-agent-acp"']
    assert lua.count("{") == lua.count("}")
