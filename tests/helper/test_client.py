"""Questions to a real helper, and the errors when it does not answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from rootsd.helper import client as link_module
from rootsd.helper.client import HelperLink, NoAnswer, NoHelper, UnavailableHelper
from rootsd.helper.protocol import HelperTask
from support.helper_process import ASKED, SECONDS, helper_on, kept_helper, make_spec


@pytest.fixture(scope="module")
def link() -> Iterator[HelperLink]:
    with helper_on(make_spec()) as link:
        yield link


def test_an_answer_of_any_size_arrives_complete_and_each_thread_gets_its_own(
    link: HelperLink,
) -> None:
    for size in (0, 1, 4_000_000):
        body = b"\0" * size
        assert link.ask(ASKED, b"echo:" + body, SECONDS) == body
    assert link.problem() is None
    assert link.has_just_answered()
    questions = [b"echo:%d" % number for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda q: link.ask(ASKED, q, SECONDS), questions))
    assert answers == [b"%d" % number for number in range(40)]


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (b"nonsense", "KeyError"),
        (b"die:", "no answer"),
        # Only Linux limits the address space.
        pytest.param(b"eat:500000000", "MemoryError", marks=pytest.mark.needs("linux")),
    ],
)
def test_a_failing_worker_does_not_affect_the_helper(
    link: HelperLink, question: bytes, reason: str
) -> None:
    with pytest.raises(NoAnswer, match=reason) as told:
        link.ask(ASKED, question, SECONDS)
    assert not isinstance(told.value, NoHelper)
    assert link.ask(ASKED, b"echo:still there", SECONDS) == b"still there"


def test_a_hanging_worker_is_given_up_at_its_deadline(link: HelperLink) -> None:
    with pytest.raises(NoAnswer, match=r"within 0\.2 s"):
        link.ask(ASKED, b"hang:", 0.2)
    assert link.ask(ASKED, b"echo:still there", SECONDS) == b"still there"


def test_a_killed_helper_is_replaced() -> None:
    with kept_helper(make_spec()) as kept:
        for _ in range(5):
            before = kept.helper_pid()
            os.kill(before, signal.SIGKILL)
            while kept.helper_pid() == before:
                pass
            assert _asked_again(kept.link, b"echo:another") == b"another"
            assert kept.link.problem() is None


def test_without_a_helper_no_question_is_sent_and_the_reason_is_reported() -> None:
    with kept_helper(make_spec(), SECONDS) as kept:
        assert kept.link.ask(ASKED, b"echo:", SECONDS) == b""
        os.kill(kept.helper_pid(), signal.SIGKILL)
        while kept.link.problem() is None:
            pass
        assert "another one is being started" in (kept.link.problem() or "")
        with pytest.raises(NoHelper, match="was lost"):
            kept.link.ask(ASKED, b"echo:", SECONDS)


def test_a_helper_killed_during_a_question_fails_only_that_one(
    link: HelperLink,
) -> None:
    with pytest.raises(NoAnswer):
        link.ask(ASKED, b"orphan:", SECONDS)
    assert _asked_again(link, b"echo:still there") == b"still there"


def test_a_hanging_helper_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    with kept_helper(make_spec()) as kept:
        assert kept.link.ask(ASKED, b"echo:", SECONDS) == b""
        monkeypatch.setattr(link_module, "_GRACE_S", 0.2)
        hanging = kept.helper_pid()
        os.kill(hanging, signal.SIGSTOP)
        with pytest.raises(NoAnswer, match="the helper hung, and another one"):
            kept.link.ask(ASKED, b"echo:", 0.1)
        monkeypatch.undo()
        while kept.helper_pid() == hanging:
            pass
        assert _asked_again(kept.link, b"echo:another") == b"another"


def test_without_its_supervisor_the_helper_continues_until_it_ends_itself() -> None:
    with kept_helper(make_spec()) as kept:
        helper = kept.helper_pid()
        os.kill(kept.supervisor, signal.SIGKILL)
        os.waitid(os.P_PID, kept.supervisor, os.WEXITED | os.WNOWAIT)
        assert kept.link.ask(ASKED, b"echo:still there", SECONDS) == b"still there"
        os.kill(helper, signal.SIGKILL)
        while kept.link.problem() is None:
            pass
        assert kept.link.problem() == "the helper process ended"
        with pytest.raises(NoHelper, match="ended"):
            kept.link.ask(ASKED, b"echo:", SECONDS)


def _asked_again(link: HelperLink, question: bytes) -> bytes:
    """The answer, once there is a helper again."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return link.ask(ASKED, question, SECONDS)
        except NoAnswer:
            assert time.monotonic() < deadline


def test_without_a_helper_every_question_fails_with_the_reason() -> None:
    with helper_on(make_spec()) as link:
        link.close()
        link.close()
        with pytest.raises(NoHelper):
            link.ask(ASKED, b"echo:", SECONDS)
    absent = UnavailableHelper("no room")
    with pytest.raises(NoHelper, match="could not be started: no room"):
        absent.ask(HelperTask.FOLDERS_IN_USE, b"", 1)
    assert "no room" in (absent.problem() or "")
    absent.close()


FORKED = """
import os, sys
from rootsd.helper.folders import ask_folders_in_use
from rootsd.helper.client import start_helper
kept, lock = os.pipe()
helper = start_helper()
os.close(lock)
print(os.read(kept, 1))          # its end, so the helper has let go of it
print(ask_folders_in_use(helper, [b"/nowhere"]), helper.problem())
os.kill(os.getpid(), 9)
"""


def test_a_forked_helper_keeps_no_descriptor_of_the_daemon_and_ends_with_it() -> None:
    # The output ends with both, because only they hold it.
    done = subprocess.run(
        [sys.executable, "-u", "-W", "error", "-c", FORKED],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["b''", "frozenset() None"]
    assert done.returncode == -signal.SIGKILL
