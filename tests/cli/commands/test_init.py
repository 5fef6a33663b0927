"""`rootsd init`: asks before each step, and decides nothing by itself."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pexpect
import pytest

from rootsd import __version__
from rootsd.processes.command_path import NoStableCommand
from support.fake_daemon import FakeDaemon, a_decision, a_scan, a_status, an_item
from support.terminal import Shell
from support.terminal_programs import on_terminal


@pytest.fixture
def src(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two repositories below a home folder; the working directory is one of them."""
    for name in ("one", "two"):
        (home / "src" / name / ".git" / "refs").mkdir(parents=True)
    monkeypatch.chdir(home / "src" / "one")
    monkeypatch.setenv("SHELL", "/bin/bash")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # no client is there
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home / "src"


@pytest.fixture
def running(daemon: FakeDaemon, src: Path) -> FakeDaemon:
    about = {"version": __version__, "pid": 4121, "since": "2026-11-20T08:11:02Z"}
    status = a_status(daemon=about)
    item = an_item("one", path=str(src / "one"))
    why = {
        "revision": 1, "path": str(src / "one"), "published": False, "items": [item],
        "voices": [], "obstacles": [], "warnings": [],
    }  # fmt: skip
    daemon.answers |= {
        "status": status, "reload": status, "scan": a_scan(), "why": why,
        "decide": a_decision(item),
    }  # fmt: skip
    return daemon


def config(rootsd_dir: Path) -> str:
    file = rootsd_dir / "config" / "config.toml"
    return file.read_text() if file.exists() else ""


def test_yes_takes_every_step_but_decides_nothing_and_allows_no_tools(
    running: FakeDaemon, shell: Shell, home: Path, rootsd_dir: Path
) -> None:
    (home / ".qwen").mkdir()
    (home / ".cursor").mkdir()
    done = shell.run("init", "--yes")
    assert done.status == 0, done.err
    assert 'path = "~/src"' in config(rootsd_dir)
    lines = (home / ".bashrc").read_text().split("\n")
    for verb in ("completion", "shell-init"):
        assert f'eval "$(rootsd {verb} bash)"' in lines
    assert running.asked("decide") == []
    text = (home / ".qwen" / "settings.json").read_text()
    assert ('"bridge"' in text, "trust" in text) == (True, False)
    assert "To connect Cursor: rootsd connect cursor" in done.err
    assert not (home / ".cursor" / "mcp.json").exists()
    again = shell.run("init", "--yes")
    assert again.status == 0
    assert (home / ".bashrc").read_text().count("rootsd completion bash") == 1


def test_the_folders_in_which_clients_make_worktrees_are_watched(
    running: FakeDaemon, shell: Shell, home: Path, rootsd_dir: Path
) -> None:
    for name in (".codex", ".claude", ".cursor"):
        (home / name).mkdir()
    dry = shell.run("init", "--dry-run").err
    assert "It would ask: Connect Codex, in ~/.codex/config.toml?" in dry
    assert "It would ask: Watch ~/.codex/worktrees, where Codex makes worktrees?" in dry
    assert os.listdir(home / ".codex") == []
    assert shell.run("init", "--yes").status == 0
    assert 'path = "~/.codex/worktrees"' in config(rootsd_dir)
    assert config(rootsd_dir).count("worktrees") == 1  # Claude Code makes them in the checkout


def test_an_installation_in_a_cache_connects_no_client_and_says_so(
    running: FakeDaemon, shell: Shell, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_a_cache() -> Path:
        raise NoStableCommand("it is in a cache", "uv tool install rootsd")

    monkeypatch.setattr("rootsd.processes.command_path.installed_command", in_a_cache)
    (home / ".qwen").mkdir()
    done = shell.run("init", "--yes")
    assert (done.status, "no client is connected: it is in a cache" in done.err) == (0, True)
    assert not (home / ".qwen" / "settings.json").exists()


def test_a_dry_run_asks_and_changes_nothing(
    shell: Shell, src: Path, home: Path, rootsd_dir: Path
) -> None:
    (home / ".qwen").mkdir()
    done = shell.run("init", "--dry-run")
    assert done.status == 0
    assert "It would ask: Connect Qwen Code, in ~/.qwen/settings.json?" in done.err
    assert "It would ask: Watch ~/src (2 repositories)?" in done.err
    assert config(rootsd_dir) == ""
    assert not (home / ".bashrc").exists()


def test_without_a_terminal_it_needs_yes(shell: Shell, src: Path, rootsd_dir: Path) -> None:
    done = shell.run("init")
    assert (done.status, "rootsd init --yes" in done.err) == (2, True)
    assert config(rootsd_dir) == ""


def test_without_any_folder_it_says_how_to_name_one(
    shell: Shell, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    done = shell.run("init", "--yes")
    assert (done.status, "try: rootsd init ~/src" in done.err) == (2, True)


def test_a_named_parent_is_taken_without_a_question(
    running: FakeDaemon, shell: Shell, home: Path, rootsd_dir: Path
) -> None:
    (home / "elsewhere").mkdir()
    assert shell.run("init", str(home / "elsewhere"), "--yes").status == 0
    assert 'path = "~/elsewhere"' in config(rootsd_dir)
    assert "~/src" not in config(rootsd_dir)


@pytest.mark.parametrize(("keys", "decided"), [("ynny", True), ("ynn\r", False)])
def test_a_person_is_asked_about_each_step_and_about_the_project_here(
    running: FakeDaemon, home: Path, rootsd_dir: Path, keys: str, decided: bool
) -> None:
    child = on_terminal((sys.executable, "-m", "rootsd", "init"), Path.cwd())
    for question, key in zip(("Watch", "Complete", "Add rcd", "Publish"), keys, strict=True):
        child.expect(rf"{question}.*\[[Yy]/[nN]\] ")
        child.send(key)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert 'path = "~/src"' in config(rootsd_dir)
    assert not (home / ".bashrc").exists()
    assert bool(running.asked("decide")) is decided


@pytest.mark.parametrize("key", ["y", "n"])
def test_a_repository_in_no_watched_folder_is_added_only_if_it_is_published(
    running: FakeDaemon, home: Path, rootsd_dir: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    here = home / "alone"
    (here / ".git" / "refs").mkdir(parents=True)
    monkeypatch.chdir(here)
    shutil.rmtree(home / "src")
    item = an_item("alone", path=str(here))
    running.answers["add"] = {"revision": 1, "items": [item], "is_new": True, "warnings": []}
    about = {"version": __version__, "pid": 4121, "since": "2026-11-20T08:11:02Z"}
    running.answers["status"] = a_status(daemon=about, parents=[])
    running.answers["why"] = {
        "revision": 1, "path": str(here), "published": False, "items": [], "voices": [],
        "obstacles": [], "warnings": [],
    }  # fmt: skip
    child = on_terminal((sys.executable, "-m", "rootsd", "init"), Path.cwd())
    child.expect("No folder is watched yet")
    for question in ("Complete", "Add rcd"):
        child.expect(rf"{question}.*\] ")
        child.send("n")
    child.expect(r"Publish the project in ~/alone to your MCP clients\? \[y/N\] ")
    assert running.asked("add") == []
    child.send(key)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert config(rootsd_dir) == ""
    assert (bool(running.asked("add")), bool(running.asked("decide"))) == (key == "y", key == "y")


def test_it_offers_to_start_the_agents_that_are_there_behind_the_wall(
    running: FakeDaemon, shell: Shell, home: Path, rootsd_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (home / "bin").mkdir()
    for name in ("claude", "pi", "ls"):
        (home / "bin" / name).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{home}/bin:/usr/bin:/bin")
    monkeypatch.setattr("rootsd.connect.trial.has_wall", lambda: True)
    monkeypatch.setattr("rootsd.cli.answers.typed_agents.has_wall", lambda: True)
    question = "Start claude behind the wall whenever you type it?"
    assert question in shell.run("init", "--dry-run").err
    assert "confine" not in config(rootsd_dir)
    assert shell.run("init", "--yes").status == 0
    assert 'agents = ["claude"]' in config(rootsd_dir)  # pi was not tried behind the wall
    assert question not in shell.run("init", "--dry-run").err
    monkeypatch.setattr("rootsd.connect.trial.has_wall", lambda: False)
    (home / "bin" / "codex").symlink_to("/bin/true")
    assert "behind the wall" not in shell.run("init", "--dry-run").err


def test_a_person_first_sees_what_agents_reach_now(
    running: FakeDaemon, shell: Shell, home: Path
) -> None:
    del running
    (home / ".codex").mkdir()
    first, second, *_ = shell.run_on_terminal("init", "--dry-run").out.splitlines()
    assert (first.split()[:3], second.split()[:2]) == (
        ["NAME", "READS", "WRITES"], ["codex", "everything"],
    )  # fmt: skip
    assert "READS" not in shell.run("init", "--dry-run").out
