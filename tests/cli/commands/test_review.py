"""`rootsd review` on a real terminal: from the question to the request."""

from __future__ import annotations

import os
import pty
import sys
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from support.fake_daemon import (
    JOIN_SECONDS,
    FakeDaemon,
    a_confirmation,
    a_decision,
    a_listing,
    an_affected,
    an_item,
)
from support.key_presses import Keys
from support.terminal import Shell


class Terminal:
    """`rootsd review` with a person at the terminal. `prelude` is code that runs first."""

    def __init__(self, *words: str, prelude: str = "", term: str = "xterm") -> None:
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ["TERM"] = term
            code = f"{prelude}\nimport runpy; runpy.run_module('rootsd', run_name='__main__')"
            os.execv(sys.executable, [sys.executable, "-c", code, "review", *words])  # noqa: S606
        self.shown = ""

    def until(self, end: str) -> str:
        """Return the output up to `end`."""
        while end not in self.shown:
            self.shown += os.read(self.fd, 4096).decode()
        before, _, self.shown = self.shown.partition(end)
        return before

    def press(self, key: str) -> None:
        os.write(self.fd, key.encode())

    def ended(self) -> int:
        """Return the exit status."""
        try:
            while os.read(self.fd, 4096):
                pass
        except OSError:  # Linux says EIO once the last writer has closed
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def waiting(daemon: FakeDaemon) -> FakeDaemon:
    """A daemon with one pending project, until it is decided."""
    item = an_item(identity="0a1b", risk="secrets: .env", requested=False)
    daemon.answers["next-waiting"] = lambda params: a_listing(
        *(() if item["id"] in params.get("known", ()) else (item,))
    )
    daemon.answers["projects"] = daemon.answers["show"] = a_listing(item)
    daemon.answers["decide"] = a_decision(an_item(verdict="approved"))
    daemon.answers["news"] = {"revision": 7, "waiting": 0, "warnings": []}
    return daemon


def test_a_key_decides_and_the_end_summarizes_the_decisions(waiting: FakeDaemon) -> None:
    terminal = Terminal()
    assert "/src: 1 pending" in terminal.until("publish api? [y,n,a,d,s,r,q,?] ")
    terminal.press("y")
    told = terminal.until("takes the last answer back.")
    assert "approved /src/api" in told
    assert "1 approved, 0 denied, 0 still pending. rootsd undo " in told
    assert terminal.ended() == 0
    assert waiting.ordered("decide") == [
        {"verb": "approve", "cwd": "/", "refs": ["r7k2"], "shown": ["0a1b"]}
    ]


@pytest.mark.parametrize(("key", "verb"), [("y", "accept"), ("n", "deny"), ("s", None)])
def test_files_that_changed_since_the_approval_are_shown_and_a_key_decides(
    waiting: FakeDaemon, key: str, verb: str | None
) -> None:
    changed: dict[str, Any] = {
        "changed": {".mcp.json": "new", "a\nb": "changed"},
        "changes": "0a1b",
    }
    waiting.answers["projects"] = a_listing(an_item(verdict="approved", **changed))
    terminal = Terminal("--changed")
    shown = terminal.until("accept the changes in api? [y,n,s,q,?] ")
    assert "changed since you approved api: /src/api" in shown
    assert "new     .mcp.json" in shown
    assert "changed a\\nb" in shown or "changed a\\u{a}b" in shown
    terminal.press("?")
    terminal.until("accept the changes in api? [y,n,s,q,?] ")
    terminal.press(key)
    assert terminal.ended() == 0
    sent = waiting.ordered("decide")
    assert sent == [
        {"verb": each, "cwd": "/", "refs": ["r7k2"], "changes_shown": ["0a1b"]}
        for each in (verb,)
        if each
    ]


def test_without_a_terminal_changed_files_are_only_listed(
    waiting: FakeDaemon, shell: Shell
) -> None:
    waiting.answers["projects"] = a_listing(an_item(changed={".envrc": "changed"}, changes="0"))
    done = shell.run("review", "--changed")
    assert done.out == "changed since you approved api: /src/api\n  changed .envrc\n"
    assert waiting.ordered("decide") == []
    assert "rootsd ls --json" in shell.run("--json", "review", "--changed").out


def test_an_interrupt_decides_nothing_and_restores_the_terminal(waiting: FakeDaemon) -> None:
    terminal = Terminal()
    terminal.until("q,?] ")
    terminal.press("\x03")
    assert terminal.ended() == 130
    assert waiting.ordered("decide") == []


def test_with_follow_it_waits_for_more_until_it_is_interrupted(waiting: FakeDaemon) -> None:
    is_asked, answer = threading.Event(), waiting.answers["next-waiting"]

    def answered(params: dict[str, Any]) -> Mapping[str, Any]:
        if params == {"known": ["r7k2"], "wait_s": 30}:
            is_asked.set()
        assert callable(answer)
        return answer(params)

    waiting.answers["next-waiting"] = answered
    terminal = Terminal("--follow")
    terminal.until("q,?] ")
    terminal.press("n")
    terminal.until("Waiting for the next project; ^C ends this.")
    assert is_asked.wait(JOIN_SECONDS)
    terminal.press("\x03")
    assert terminal.ended() == 130


def test_an_empty_review_says_so(
    daemon: FakeDaemon, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rootsd.cli.commands.review.Keyboard", Keys)
    daemon.answers["next-waiting"] = a_listing()
    done = shell.run_on_terminal("review")
    assert (done.status, "No project needs a decision." in done.out) == (0, True)


@pytest.mark.parametrize("words", [(), ("--json",), ("--no-input",)])
def test_without_a_terminal_it_is_refused_with_the_next_command(
    daemon: FakeDaemon, shell: Shell, words: tuple[str, ...]
) -> None:
    done = shell.run("review", *words)
    assert done.status == 7
    assert "rootsd pending" in done.out + done.err
    assert daemon.requests == []


QUESTION = "q,?] "
HELP = "takes the last answer back.\r\n"
KEEPS_EARLIER = "from rootsd.cli.text import terminal; terminal.drop_earlier_input = lambda: None"
KEY_BY_KEY = f"import os; {KEEPS_EARLIER}; terminal._read_burst = lambda fd: os.read(fd, 1)"
BURSTS = ("aad", "adev", "yy", "dd\r", "\r\r\r", "y\r", "\x1b[A", "\x1b[d", "y" * 9001)


def test_a_burst_answers_nothing(waiting: FakeDaemon) -> None:
    """In rxvt, `ESC [ d` is an arrow key with shift."""
    terminal = Terminal()
    for keys in BURSTS:
        terminal.until(QUESTION)
        terminal.press(keys)
        terminal.until(HELP)
        assert waiting.asked("decide") == [], keys
    terminal.until(QUESTION)
    terminal.press("y")
    terminal.until("0 still pending.")
    assert terminal.ended() == 0
    assert len(waiting.ordered("decide")) == 1


@pytest.mark.parametrize("keys", ["adev", "\x1b[d"])
def test_control_read_key_by_key_a_burst_decides(waiting: FakeDaemon, keys: str) -> None:
    terminal = Terminal(prelude=KEY_BY_KEY)
    terminal.until(QUESTION)
    terminal.press(keys)
    terminal.until("0 still pending.")
    terminal.ended()
    assert len(waiting.ordered("decide")) == 1


@pytest.mark.parametrize(("term", "key"), [("xterm", "y"), ("dumb", "y\n")])
@pytest.mark.parametrize(("prelude", "decided"), [("", 0), (KEEPS_EARLIER, 1)])
def test_what_was_typed_before_the_first_question_answers_it_only_in_the_control(
    waiting: FakeDaemon, term: str, key: str, prelude: str, decided: int
) -> None:
    terminal = Terminal(prelude=f"{prelude}\ninput('go? ')", term=term)
    terminal.until("go? ")
    terminal.press(f"\n{key}")
    terminal.until(QUESTION)
    if not decided:
        terminal.press("q\n" if term == "dumb" else "q")
    terminal.ended()
    assert len(waiting.ordered("decide")) == decided


@pytest.mark.parametrize(("prelude", "decided"), [("", 0), (KEEPS_EARLIER, 1)])
def test_what_was_typed_before_the_gate_asks_answers_it_only_in_the_control(
    waiting: FakeDaemon, prelude: str, decided: int
) -> None:
    terminal = Terminal(prelude=prelude)
    plan = a_decision(an_item(verdict="approved"))
    listed = [an_affected(name, risk=None) for name in ("api", "web")]
    question = {**plan, **a_confirmation(*listed)}

    def decide(params: dict[str, Any]) -> Mapping[str, Any]:
        if params.get("effect") != "dry-run":
            return plan
        terminal.press("y")  # while the person still sees the answered question
        return question

    waiting.answers["decide"] = decide
    terminal.until(QUESTION)
    terminal.press("a")
    if not decided:
        terminal.until("publish")
        terminal.until("] ")
        terminal.press("n")
        terminal.until(QUESTION)
        terminal.press("q")
    terminal.ended()
    assert len(waiting.ordered("decide")) == decided


@pytest.mark.parametrize(("prelude", "decided"), [("", 0), (KEEPS_EARLIER, 1)])
def test_what_was_typed_during_a_rename_answers_nothing_only_in_the_control(
    waiting: FakeDaemon, prelude: str, decided: int
) -> None:
    terminal = Terminal(prelude=prelude)

    def rename(_: dict[str, Any]) -> Mapping[str, Any]:
        terminal.press("y")
        return a_decision(an_item("web"))

    waiting.answers["rename"] = rename
    terminal.until(QUESTION)
    terminal.press("r")
    terminal.until("name: ")
    terminal.press("web\n")
    terminal.until("publish web?")
    terminal.until(QUESTION)
    if not decided:
        terminal.press("q")
    terminal.ended()
    assert len(waiting.ordered("decide")) == decided
