"""`rootsd config`: path, show, check, edit."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pexpect
import pytest

from rootsd.config.configuration import read_config
from rootsd.core.errors import ErrorCode
from support.fake_daemon import FakeDaemon, Objection, a_status
from support.terminal import HANG_GUARD, Shell

TEXT = '# mine\n[[parent]]\npath = "/srv/src"\ndepth = 2\n'


@pytest.fixture
def file(rootsd_dir: Path, home: Path) -> Path:
    file = rootsd_dir / "config" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(TEXT)
    return file


def in_force(file: Path, **changes: object) -> dict[str, object]:
    config = {
        "file": str(file), "read_at": "2026-11-20T08:11:02Z", "changes": ["parent /srv/src added"],
        "checksum": read_config(bytes(file)).checksum, "error": None, **changes,
    }  # fmt: skip
    return a_status(config=config)


def an_editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str) -> None:
    """Return an EDITOR: Python that changes `text`."""
    program = tmp_path / "editor.py"
    program.write_text(
        "import sys, pathlib\nfile = pathlib.Path(sys.argv[1])\ntext = file.read_text()\n"
        f"{code}\nfile.write_text(text)\n"
    )
    monkeypatch.setenv("EDITOR", f"{sys.executable} {program}")
    monkeypatch.delenv("VISUAL", raising=False)


def test_path_is_printed_even_without_a_file(shell: Shell, rootsd_dir: Path) -> None:
    file = f"{rootsd_dir}/config/config.toml"
    assert shell.run("config", "path").out == f"{file}\n"
    assert json.loads(shell.run("config", "path", "--json").out)["file"] == file


def test_show_prints_every_key_and_where_it_is_set(shell: Shell, file: Path) -> None:
    done = shell.run("config")
    assert (done.status, done.err) == (0, "")
    rows = dict(line.split("\t", 1) for line in done.out.splitlines())
    assert rows["parent /srv/src depth"] == "2\tfile"
    assert rows["parent /srv/src nested"] == "none\tdefault"
    assert rows["sessions.max_connections"] == "1024\tdefault"
    assert rows["approval.guard"] == "agents\tdefault"
    assert json.loads(shell.run("config", "show", "--json").out)["file"] == str(file)


def test_check_says_that_the_daemon_uses_it_and_lists_the_changes(
    shell: Shell, file: Path, daemon: FakeDaemon
) -> None:
    daemon.answers["status"] = in_force(file)
    done = shell.run("config", "check")
    assert (done.status, done.out) == (0, "ok: 1 parent\n")
    assert done.err.startswith("The daemon loaded it ")
    assert done.err.endswith(": parent /srv/src added.\n")
    assert json.loads(shell.run("config", "check", "--json").out)["taken_over"] is True


@pytest.mark.parametrize("status", [{"checksum": "0000abcd"}, None])
def test_check_says_that_the_daemon_does_not_use_it(
    shell: Shell, file: Path, daemon: FakeDaemon, status: dict[str, object] | None
) -> None:
    daemon.answers["status"] = in_force(file, **status) if status else a_status(config=None)
    done = shell.run("config", "check")
    assert done.status == 0
    assert "does not use it yet" in done.err or "not running" in done.err


def test_check_without_a_daemon_checks_only_the_file(shell: Shell, file: Path) -> None:
    done = shell.run("config", "check")
    assert (done.status, done.out) == (0, "ok: 1 parent\n")
    assert done.err == "The daemon is not running: rootsd up\n"


def test_check_names_file_line_and_key_and_suggests_a_key(shell: Shell, file: Path) -> None:
    file.write_text(TEXT.replace("depth", "dpeth"))
    done = shell.run("config", "check")
    assert (done.status, done.out) == (78, "")
    assert done.err == (
        f"error: {file}, line 4, key parent[0].dpeth: there is no such key; did you mean depth?\n"
        "  try: rootsd config edit\n"
    )


def test_edit_writes_a_valid_text_and_keeps_comments(
    shell: Shell, file: Path, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    daemon.answers["reload"] = in_force(file, changes=["parent /srv/src changed: depth"])
    an_editor(monkeypatch, tmp_path, "text = text.replace('depth = 2', 'depth = 3')")
    done = shell.run("config", "edit")
    assert (done.status, done.out) == (0, "")
    assert done.err == "The daemon loaded it: parent /srv/src changed: depth.\n"
    assert file.read_text() == TEXT.replace("2", "3")
    assert daemon.asked("reload") == [{"command": "config edit"}]


def test_edit_creates_a_missing_file(
    shell: Shell, home: Path, rootsd_dir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    an_editor(monkeypatch, tmp_path, "text += '[sessions]\\nmax_connections = 9\\n'")
    done = shell.run("config", "edit")
    assert (done.status, done.err) == (0, "Saved. The daemon is not running: rootsd up\n")
    assert "max_connections = 9" in (rootsd_dir / "config" / "config.toml").read_text()


def test_edit_saves_an_invalid_text_aside_and_keeps_the_file(
    shell: Shell, file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    an_editor(monkeypatch, tmp_path, "text = text.replace('depth', 'dpeth')")
    done = shell.run("config", "edit")
    assert done.status == 78
    assert "key parent[0].dpeth" in done.err
    assert file.read_text() == TEXT
    kept = file.with_name("config.toml.rejected")
    assert kept.read_text() == TEXT.replace("depth", "dpeth")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert str(kept) in done.err


def test_edit_does_not_overwrite_a_concurrent_change(
    shell: Shell, file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    theirs = TEXT + "# theirs\n"
    meanwhile = f"pathlib.Path({str(file)!r}).write_text({theirs!r}); text += '# ours\\n'"
    an_editor(monkeypatch, tmp_path, meanwhile)
    done = shell.run("config", "edit")
    assert done.status == 1
    assert "another program changed" in done.err
    assert file.read_text() == theirs
    assert file.with_name("config.toml.yours").read_text() == TEXT + "# ours\n"


def test_edit_without_a_change_writes_nothing(
    shell: Shell, file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    an_editor(monkeypatch, tmp_path, "pass")
    before = file.stat().st_mtime_ns
    assert shell.run("config", "edit").err == "Nothing was changed.\n"
    assert file.stat().st_mtime_ns == before


@pytest.mark.parametrize("flags", [(), ("--no-input",)])
def test_edit_without_a_terminal_and_an_editor_opens_nothing(
    shell: Shell, file: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)
    done = shell.run("config", "edit", *flags)
    assert done.status == 1
    assert f"edit {file}" in done.err


def test_on_a_terminal_a_mistake_is_shown_and_can_be_fixed(
    file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    an_editor(
        monkeypatch, tmp_path,
        "text = text.replace('dpeth = 2', 'depth = 5') if 'dpeth' in text else"
        " text.replace('depth', 'dpeth')",
    )  # fmt: skip
    child = pexpect.spawn(
        sys.executable, ["-m", "rootsd", "config", "edit"], env=dict(os.environ),
        timeout=HANG_GUARD, encoding="utf-8",
    )  # fmt: skip
    child.expect_exact("did you mean depth?")
    child.expect_exact("Edit again?")
    child.sendline("y")
    child.expect_exact("Saved.")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert "depth = 5" in file.read_text()


def test_a_configuration_that_the_daemon_rejects_is_an_error(
    shell: Shell, file: Path, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    daemon.answers["reload"] = Objection(ErrorCode.BAD_CONFIG, "the daemon knows better")
    an_editor(monkeypatch, tmp_path, "text += '# more\\n'")
    done = shell.run("config", "edit")
    assert (done.status, done.err) == (78, "error: the daemon knows better\n")
