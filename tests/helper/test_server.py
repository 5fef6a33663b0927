"""The fork server: how many workers run, in which order, and when they are killed."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import sys
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from rootsd.helper.client import HelperLink, NoAnswer, NoHelper
from rootsd.helper.protocol import TASK_SPECS, HelperTask
from support.helper_process import ASKED, SECONDS, helper_on, kept_helper, make_spec, real_helper


class Hanging:
    """A worker that hangs until its deadline; `pid` is its process."""

    def __init__(self, link: HelperLink, pool: Executor, folder: Path, seconds: float) -> None:
        # A worker delayed beyond the deadline does not reach the point where it hangs.
        for patience in (seconds, 10 * seconds, 100 * seconds):
            fifo = folder / f"fifo-{patience}"
            os.mkfifo(fifo)
            reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
            self._given_up = pool.submit(self._ask, link, fifo, patience)
            told = self._told(reading)
            os.close(reading)
            if told:
                self.pid = int(told)
                return
        raise AssertionError("the worker never began")

    def wait(self) -> None:
        """Wait until the caller has got no answer."""
        self._given_up.result(SECONDS)

    @staticmethod
    def _ask(link: HelperLink, fifo: Path, seconds: float) -> None:
        with pytest.raises(NoAnswer):
            link.ask(ASKED, b"tell:" + bytes(fifo), seconds)

    def _told(self, reading: int) -> bytes:
        while not self._given_up.done():
            if select.select([reading], [], [], 0.1)[0] and (told := os.read(reading, 16)):
                return told
        return b""


def _ends(pid: int) -> bool:
    """Return whether a process ends. It is not a child, but the kernel reports its end."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], SECONDS)[0])
    finally:
        os.close(fd)


@pytest.mark.needs("linux")
def test_a_hanging_worker_is_killed_at_its_deadline_while_others_answer(
    tmp_path: Path,
) -> None:
    with helper_on(make_spec(max_workers=2)) as link, ThreadPoolExecutor(1) as pool:
        hanging = Hanging(link, pool, tmp_path, 1.0)
        assert link.ask(ASKED, b"echo:meanwhile", SECONDS) == b"meanwhile"
        hanging.wait()
        assert link.ask(ASKED, b"echo:afterwards", SECONDS) == b"afterwards"
        assert _ends(hanging.pid)


def test_a_question_that_waits_for_a_worker_is_dropped_and_workers_end_with_the_helper(
    tmp_path: Path,
) -> None:
    with helper_on(make_spec(max_workers=1)) as link, ThreadPoolExecutor(1) as pool:
        hanging = Hanging(link, pool, tmp_path, SECONDS)
        with pytest.raises(NoAnswer, match="no answer"):
            link.ask(ASKED, b"echo:", 0.2)
        assert link.problem() is None
        link.close()
        hanging.wait()
    if sys.platform == "linux":
        assert _ends(hanging.pid)


def test_a_waiting_question_is_answered_after_the_hanging_worker_is_killed(tmp_path: Path) -> None:
    with helper_on(make_spec(max_workers=1)) as link, ThreadPoolExecutor(1) as pool:
        hanging = Hanging(link, pool, tmp_path, 0.5)
        assert link.ask(ASKED, b"echo:patience", SECONDS) == b"patience"
        hanging.wait()


@pytest.mark.needs("linux")
def test_a_preforked_worker_exists_before_the_question_and_ends_with_the_helper() -> None:
    with kept_helper(make_spec(rehearsal=b"a failure:"), 1000.0) as kept:
        first = kept.preforked_pid()
        assert kept.link.ask(ASKED, b"pid:", SECONDS) == b"%d" % first
        assert _ends(first)
        preforked = kept.preforked_pid()
        os.kill(preforked, signal.SIGKILL)
        assert _ends(preforked)
        assert kept.link.ask(ASKED, b"echo:still", SECONDS) == b"still"
        preforked = kept.preforked_pid()
        os.kill(kept.helper_pid(), signal.SIGKILL)
        assert _ends(preforked)


def test_garbage_on_the_channel_is_rejected() -> None:
    with helper_on(make_spec()) as link:
        for garbage in (struct.pack("!II", 99, 1000), b"x"):
            ours, theirs = socket.socketpair()
            with ours, theirs:
                socket.send_fds(link._channel, [garbage], [theirs.fileno()])
                theirs.close()
                ours.settimeout(60)
                assert ours.recv(1) == b""
            if len(garbage) > 1:
                assert link.ask(ASKED, b"echo:", SECONDS) == b""
        with pytest.raises(NoHelper):  # after an invalid message, the channel is closed
            link.ask(ASKED, b"echo:", SECONDS)


def test_every_task_has_limits_and_a_module_that_answers() -> None:
    assert TASK_SPECS.keys() == set(HelperTask)
    assert all(spec.max_workers > 0 and spec.memory > 0 for spec in TASK_SPECS.values())
    with real_helper() as link:
        for task in HelperTask:
            with suppress(NoAnswer):
                link.ask(task, b"", SECONDS)
            if rehearsal := TASK_SPECS[task].rehearsal:
                assert link.ask(task, rehearsal, SECONDS)
    assert link.problem() == "the helper process was stopped"
