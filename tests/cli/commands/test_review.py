"""`rootsd review` on a real terminal: from the question to the request."""

from __future__ import annotations

import os
import pty
import sys
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from support.fake_daemon import JOIN_SECONDS, FakeDaemon, a_decision, a_listing, an_item
from support.terminal import Shell


class Terminal:
    """`rootsd review` with a person at the terminal."""

    def __init__(self, *words: str) -> None:
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ["TERM"] = "xterm"
            os.execv(sys.executable, [sys.executable, "-m", "rootsd", "review", *words])  # noqa: S606
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
    item = an_item(identity="0a1b")
    daemon.answers["next-waiting"] = lambda params: a_listing(
        *(() if item["id"] in params.get("known", ()) else (item,))
    )
    daemon.answers["projects"] = a_listing()
    daemon.answers["show"] = a_listing(item)
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


def test_an_empty_review_says_so(daemon: FakeDaemon) -> None:
    daemon.answers["next-waiting"] = daemon.answers["projects"] = a_listing()
    daemon.answers["news"] = {"revision": 7, "waiting": 0, "warnings": []}
    terminal = Terminal()
    terminal.until("No project needs a decision.")
    assert terminal.ended() == 0


@pytest.mark.parametrize("words", [(), ("--json",), ("--no-input",)])
def test_without_a_terminal_it_is_refused_with_the_next_command(
    daemon: FakeDaemon, shell: Shell, words: tuple[str, ...]
) -> None:
    done = shell.run("review", *words)
    assert done.status == 7
    assert "rootsd pending" in done.out + done.err
    assert daemon.requests == []
