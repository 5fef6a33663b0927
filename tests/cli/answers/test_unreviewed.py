"""Before an agent starts outside: changes of earlier sessions behind the wall are asked about."""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import closing
from pathlib import Path

import pexpect
import pytest

from rootsd import __main__, hook
from rootsd.core.errors import Exit
from rootsd.wall.git.left_behind import SessionEnd
from rootsd.wall.git.left_behind_reports import read_reports
from rootsd.wall.git.report_files import has_reports
from rootsd.wall.git.session_baseline import SessionBaseline
from rootsd.wall.session.unreviewed import find_unreviewed
from support.fake_daemon import FakeDaemon
from support.repositories import git
from support.terminal import Shell
from support.terminal_programs import on_terminal

HOSTILE = ".vscode/$(touch pwned)\x1b[2J\nx"


class Sessions:
    """A home with two checkouts, and sessions of claude behind the wall that change files."""

    def __init__(self, home: Path, rootsd_dir: Path) -> None:
        self.walls = rootsd_dir / "state" / "confine"
        self.api, self.web = home / "src" / "api", home / "src" / "web"
        for checkout in (self.api, self.web):
            git("init", "-b", "main", checkout)
            (checkout / "inner").mkdir()
            (checkout / ".envrc").write_text("one\n")
        self._number = 0

    def change(self, checkout: Path, *names: str, text: str = "two\n") -> None:
        """Have a session change files, and end."""
        folder = self.walls / "claude" / str(self._number)
        self._number += 1
        baseline = SessionBaseline(os.fsencode(folder))
        baseline.add([os.fsencode(checkout)])
        for name in names:
            (checkout / name).parent.mkdir(exist_ok=True)
            (checkout / name).write_text(text)
        baseline.conclude(SessionEnd.ORDERLY)

    def found_in(self, folder: Path) -> str:
        """Return the sentence about the changes in a project, or an empty text."""
        changes = find_unreviewed(os.fsencode(self.walls), str(folder))
        return "" if changes is None else changes.sentence()


@pytest.fixture
def sessions(home: Path, rootsd_dir: Path) -> Sessions:
    (rootsd_dir / "config").mkdir(parents=True)
    (rootsd_dir / "config" / "config.toml").write_text('[confine]\nagents = ["claude"]\n')
    return Sessions(home, rootsd_dir)


def test_the_changes_are_those_of_this_project(sessions: Sessions, tmp_path: Path) -> None:
    assert not has_reports(os.fsencode(sessions.walls))
    sessions.change(sessions.api, "code.py")
    assert not has_reports(os.fsencode(sessions.walls))  # it is no file that tools run
    sessions.change(sessions.api, ".envrc", ".vscode/tasks.json")
    assert has_reports(os.fsencode(sessions.walls))
    sentence = "claude changed .envrc, .vscode/tasks.json behind the wall"
    (tmp_path / "link").symlink_to(sessions.api)
    for folder in (sessions.api, sessions.api / "inner", tmp_path / "link"):
        assert sessions.found_in(folder) == sentence
    assert sessions.found_in(sessions.web) == ""
    (sessions.api / ".envrc").write_text("one\n")  # a person took it back
    assert sessions.found_in(sessions.api) == "claude changed .vscode/tasks.json behind the wall"


@pytest.mark.parametrize("has_program", [True, False])
def test_a_repository_that_runs_something_counts(sessions: Sessions, *, has_program: bool) -> None:
    nested, folder = sessions.api / "nested", os.fsencode(sessions.walls / "claude" / "0")
    baseline = SessionBaseline(folder)
    baseline.add([os.fsencode(sessions.api)])
    git("init", "-q", nested)
    git("config", "core.fsmonitor" if has_program else "user.note", "evil", cwd=nested)
    baseline.conclude(SessionEnd.ORDERLY)
    assert ("claude changed nested behind" in sessions.found_in(sessions.api)) is has_program
    assert bool(sessions.found_in(nested)) is has_program


def test_a_hostile_name_cannot_control_the_terminal(sessions: Sessions) -> None:
    sessions.change(sessions.api, HOSTILE)
    assert sessions.found_in(sessions.api).isprintable()


def test_a_session_that_runs_counts_too(sessions: Sessions) -> None:
    baseline = SessionBaseline(os.fsencode(sessions.walls / "codex" / "0"))
    baseline.add([os.fsencode(sessions.api)])
    (sessions.api / ".envrc").write_text("two\n")
    assert sessions.found_in(sessions.api) == ""
    baseline.drop([os.fsencode(sessions.api)])
    assert sessions.found_in(sessions.api) == "codex changed .envrc behind the wall"


def test_without_changes_the_start_loads_no_command_line(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["review", "--before", "claude"]
    monkeypatch.chdir(sessions.web)
    sessions.change(sessions.api, ".envrc")
    assert "rootsd.cli" not in __main__._load(words).__code__.co_names
    assert __main__._load(words)() == Exit.OK
    monkeypatch.chdir(sessions.api)
    assert "command_line" in str(__main__._load(words).__code__.co_freevars)


def test_without_a_terminal_one_line_is_printed_and_the_agent_starts(
    sessions: Sessions, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sessions.api / "inner")
    assert shell.run("review", "--before", "claude").err == ""
    sessions.change(sessions.api, ".envrc")
    done = shell.run("review", "--before", "claude")
    assert (done.status, done.out) == (Exit.OK, "")
    line = "claude changed .envrc behind the wall; to look at it: rootsd review --changed\n"
    assert done.err == line


@pytest.mark.parametrize(
    ("keys", "status", "is_reviewed"),
    [("s", Exit.OK, False), ("\r", Exit.REFUSED, False), ("q", Exit.REFUSED, False),
     ("xrs", Exit.OK, True), ("rn", Exit.REFUSED, True)],
)  # fmt: skip
def test_a_person_reviews_starts_or_does_not(
    sessions: Sessions, keys: str, status: int, is_reviewed: bool
) -> None:
    sessions.change(sessions.api, ".envrc")
    words = (sys.executable, "-m", "rootsd", "review", "--before", "claude")
    child = on_terminal(words, sessions.api)
    with closing(child):
        child.expect_exact("claude changed .envrc behind the wall. Start claude outside?")
        for key in keys:
            child.expect_exact("[n]o ")
            child.send(key)
            if key == "r":
                child.expect_exact("+two")
        child.expect(pexpect.EOF)
    assert child.exitstatus == status
    assert (read_reports(os.fsencode(sessions.walls)) == []) is is_reviewed


# The hook


@pytest.fixture(autouse=True)
def answers(daemon: FakeDaemon) -> None:
    daemon.answers["check"] = lambda params: {
        "published": params["path"].endswith("known"),
        "verdict": "denied" if params["path"].endswith("secret") else None,
    }


def decision_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path,
    name: str = "known", client: str = "claude-code", event: str = "PreToolUse",
) -> str:  # fmt: skip
    """Return what the hook decides about a read in a folder, or an empty text."""
    call = {
        "cwd": str(folder), "hook_event_name": event, "tool_name": "Read",
        "tool_input": {"file_path": str(folder / name)},
    }  # fmt: skip
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(folder))
    monkeypatch.setattr(
        "sys.stdin", type("", (), {"buffer": io.BytesIO(json.dumps(call).encode())})
    )
    assert hook.main([client]) == 0
    out = capsys.readouterr().out
    if not out:
        return ""
    said = json.loads(out)["hookSpecificOutput"]
    return f"{said['permissionDecision']}: {said['permissionDecisionReason']}"


def test_the_hook_asks_once_about_each_new_set_of_changes(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def decides(folder: Path, name: str = "known", event: str = "PreToolUse") -> str:
        return decision_of(monkeypatch, capsys, folder, name, event=event).partition(":")[0]

    assert decides(sessions.api) == "allow"
    sessions.change(sessions.api, ".envrc")
    assert decides(sessions.web) == "allow"
    assert decides(sessions.api, "secret") == "deny"  # which is no question
    assert decides(sessions.api, event="PostToolUse") == ""
    asked = decision_of(monkeypatch, capsys, sessions.api, "other")
    assert asked.startswith("ask: rootsd: claude changed .envrc behind the wall; to look at it")
    assert [decides(sessions.api), decides(sessions.api, "other")] == ["allow", ""]
    sessions.change(sessions.api, ".envrc", text="three\n")
    assert [decides(sessions.api), decides(sessions.api)] == ["ask", "allow"]


def test_the_hook_asks_nothing_about_agents_that_a_person_starts_outside(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], rootsd_dir: Path,
) -> None:  # fmt: skip
    sessions.change(sessions.api, ".envrc")
    config = rootsd_dir / "config" / "config.toml"
    for text in ('[confine]\nagents = ["codex"]\n', "", "[confine"):
        config.write_text(text)
        assert decision_of(monkeypatch, capsys, sessions.api).startswith("allow")
    config.write_text('[confine]\nagents = ["claude"]\n')  # the control
    assert decision_of(monkeypatch, capsys, sessions.api).startswith("ask")
