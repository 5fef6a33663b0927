"""The fork server: how many at once, in which order, and who is killed when."""

from __future__ import annotations

import os
import select
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rootsd.host.helper.duties import TERMS, Duty
from rootsd.host.helper.link import Link, NoAnswer, NoHelper
from support.helping import ASKED, SECONDS, helper_on, terms_of_tests


def _hang_telling(link: Link, fifo: Path, seconds: float) -> None:
    with pytest.raises(NoAnswer):
        link.ask(ASKED, b"tell:" + bytes(fifo), seconds)


def _pid_told(fifo: Path) -> int:
    return int(fifo.read_bytes())


def _ends(pid: int) -> bool:
    """Whether it ends; it is not our child, but the kernel tells of its end all the same."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], SECONDS)[0])
    finally:
        os.close(fd)


@pytest.mark.needs("linux")
def test_one_that_hangs_is_killed_at_its_deadline_while_others_are_answered(
    tmp_path: Path,
) -> None:
    os.mkfifo(tmp_path / "fifo")
    with helper_on(terms_of_tests(at_once=2)) as link, ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(_hang_telling, link, tmp_path / "fifo", 1.0)
        pid = _pid_told(tmp_path / "fifo")
        assert link.ask(ASKED, b"echo:meanwhile", SECONDS) == b"meanwhile"
        hanging.result(60)
        assert link.ask(ASKED, b"echo:afterwards", SECONDS) == b"afterwards"
        assert _ends(pid)


def test_who_waits_for_a_free_worker_is_dropped_at_the_deadline(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with helper_on(terms_of_tests(at_once=1)) as link, ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(_hang_telling, link, tmp_path / "fifo", SECONDS)
        _pid_told(tmp_path / "fifo")
        with pytest.raises(NoAnswer, match="no answer"):
            link.ask(ASKED, b"echo:", 0.2)
        assert link.trouble() is None
        link.close()
        hanging.result(60)


def test_who_waits_is_answered_once_the_one_before_is_killed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with helper_on(terms_of_tests(at_once=1)) as link, ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(_hang_telling, link, tmp_path / "fifo", 0.5)
        _pid_told(tmp_path / "fifo")
        assert link.ask(ASKED, b"echo:patience", SECONDS) == b"patience"
        hanging.result(60)


@pytest.mark.needs("linux")
def test_its_workers_end_with_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with helper_on(terms_of_tests()) as link, ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(_hang_telling, link, tmp_path / "fifo", SECONDS)
        pid = _pid_told(tmp_path / "fifo")
        link.close()
        hanging.result(60)
    assert _ends(pid)


def test_signals_to_all_of_a_service_do_not_end_it() -> None:
    with helper_on(terms_of_tests()) as link:
        assert link.ask(ASKED, b"echo:", SECONDS) == b""
        for number in (1, 2, 15):
            os.kill(link.pid, number)
        assert link.ask(ASKED, b"echo:still", SECONDS) == b"still"


@pytest.mark.parametrize("garbage", [b"x", struct.pack("!II", 99, 1000)])
def test_garbage_on_the_channel_is_no_question(garbage: bytes) -> None:
    with helper_on(terms_of_tests()) as link:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            socket.send_fds(link._channel, [garbage], [theirs.fileno()])
            theirs.close()
            ours.settimeout(60)
            assert ours.recv(1) == b""
        if len(garbage) == 1:  # who cannot be understood is not listened to any longer
            with pytest.raises(NoHelper):
                link.ask(ASKED, b"echo:", SECONDS)
        else:
            assert link.ask(ASKED, b"echo:", SECONDS) == b""


def test_every_duty_has_a_module_that_answers() -> None:
    assert TERMS.keys() == set(Duty)
    with helper_on(TERMS[Duty.AT_WORK]) as link:
        assert link.ask(Duty.AT_WORK, b"", SECONDS) == b""
