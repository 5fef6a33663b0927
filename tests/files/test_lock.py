"""One daemon per state folder, and its record."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rootsd.core.errors import Busy
from rootsd.files import lock
from rootsd.files.lock import LOCK_NAME, DaemonLock, LockRecord, read_holder
from rootsd.files.private_files import NotPrivate

HOLDER = LockRecord(4711, "1.2.3", {"state": "/home/ann/state", "run": "/run/user/1000/rootsd"})
HANG_GUARD = 30

CHILD = """
import os, signal, sys
from pathlib import Path
from rootsd.files.lock import DaemonLock
from rootsd.files.lock import LockRecord
lock = DaemonLock.acquire(Path(sys.argv[1]), LockRecord(os.getpid(), "9", {"run": "/run"}))
print("held", flush=True)
signal.pause()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_a_second_daemon_gets_the_holder_of_the_lock_while_it_is_held(folder: Path) -> None:
    assert read_holder(folder) is None
    with DaemonLock.acquire(folder, HOLDER):
        with pytest.raises(Busy, match=r"pid 4711, version 1\.2\.3") as caught:
            DaemonLock.acquire(folder, LockRecord(1, "2", {}))
        assert caught.value.remedy == "rootsd status"
        assert read_holder(folder) == HOLDER
    assert read_holder(folder) is None


READER = LockRecord(4712, "1.2.3", {})


def test_a_daemon_waits_for_a_reader_of_the_lock(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = DaemonLock.acquire(folder, READER)
    asks, wait = threading.Event(), lock._wait_until_free

    def waited(file: Path) -> bool:
        asks.set()
        return wait(file)

    monkeypatch.setattr(lock, "_wait_until_free", waited)
    with ThreadPoolExecutor() as pool:
        daemon = pool.submit(DaemonLock.acquire, folder, HOLDER)
        assert asks.wait(HANG_GUARD)
        reader.release()
        with daemon.result(HANG_GUARD):
            assert read_holder(folder) == HOLDER


def test_it_does_not_wait_forever(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_WAIT_S", 0.05)
    with DaemonLock.acquire(folder, READER), pytest.raises(Busy, match="pid 4712"):
        DaemonLock.acquire(folder, HOLDER)


def test_the_file_keeps_its_size_so_that_a_full_disk_does_not_matter(folder: Path) -> None:
    def state() -> tuple[int, int, int]:
        now = (folder / LOCK_NAME).stat()
        return now.st_size, now.st_blocks, now.st_ino

    DaemonLock.acquire(folder, LockRecord(1, "v" * 9000, {})).release()
    before = state()
    with DaemonLock.acquire(folder, HOLDER) as lock:
        assert read_holder(folder) == HOLDER, "a longer record is overwritten completely"
        assert state() == before
        assert (folder / LOCK_NAME).stat().st_mode & 0o777 == 0o600
        assert not os.get_inheritable(lock.fd), "it is not passed on to programs"


def test_a_link_in_the_place_of_the_lock_is_refused(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    (folder / LOCK_NAME).symlink_to(folder / "elsewhere")
    with pytest.raises(NotPrivate):
        DaemonLock.acquire(folder, HOLDER)
    assert not (folder / "elsewhere").exists()
    assert read_holder(folder) is None


def test_a_killed_daemon_leaves_its_record_and_lets_the_next_one_in(folder: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", CHILD, folder], stdout=subprocess.PIPE)
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(Busy, match=f"pid {child.pid}"):
            DaemonLock.acquire(folder, HOLDER)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait(HANG_GUARD)
        child.stdout.close()
    left = read_holder(folder)
    assert left is not None
    assert left.pid == child.pid
    DaemonLock.acquire(folder, HOLDER).release()


def test_of_many_simultaneous_processes_exactly_one_gets_the_lock(folder: Path) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(5)
    ]
    try:
        losers = [child for child in children if _loses(child)]
        assert len(losers) == len(children) - 1
    finally:
        for child in children:
            child.kill()
            child.communicate(timeout=HANG_GUARD)


def _loses(child: subprocess.Popen[bytes]) -> bool:
    """A child that gets the lock says so and stays; the others end, and say nothing."""
    assert child.stdout is not None
    return child.stdout.readline() == b""


def test_a_lock_file_removed_in_between_is_locked_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.path.samestat
    looked: list[os.stat_result] = []

    def remove_once(one: os.stat_result, other: os.stat_result) -> bool:
        looked.append(one)
        if len(looked) == 1:
            (folder / LOCK_NAME).unlink()
            return False
        return real(one, other)

    monkeypatch.setattr(os.path, "samestat", remove_once)
    with DaemonLock.acquire(folder, HOLDER) as lock:
        assert real((folder / LOCK_NAME).stat(), os.fstat(lock.fd))


@pytest.mark.parametrize(
    "record",
    [b"", b"{", b"[]", b'{"pid":"x"}', b"\xff\xfe", b'{"pid":1}', b"[" * 16_000, b"9" * 16_000,
     b'{"pid": 1e400, "version": "1", "places": {}}', b'{"pid": 1, "version": "1"}',
     b'{"pid": "1", "version": "1", "places": {}}'],
)  # fmt: skip
def test_a_damaged_record_of_a_holder_is_ignored(folder: Path, record: bytes) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / LOCK_NAME).write_bytes(record)
    assert read_holder(folder) is None
    with DaemonLock.acquire(folder, HOLDER):
        assert read_holder(folder) == HOLDER
