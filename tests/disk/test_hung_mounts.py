"""Nothing waits long for a mount that does not respond."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rootsd.disk.hung_mounts import HungMountDetector
from support.polling import until
from support.repositories import raw

HANG_S = 30.0


class Server:
    """A server that responds while it is up."""

    def __init__(self) -> None:
        self.up = threading.Event()
        self.up.set()
        self.asked: list[bytes] = []
        self.answered = threading.Event()

    def ask(self, point: bytes) -> None:
        self.asked.append(point)
        assert self.up.wait(HANG_S)
        self.answered.set()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.up.set()


@pytest.fixture
def responds(server: Server) -> Callable[[bytes], bool]:
    return HungMountDetector(lambda: (b"/net",), timeout_s=0.05, query=server.ask).responds


def test_a_local_disk_is_never_checked(server: Server, responds: Callable[[bytes], bool]) -> None:
    server.up.clear()
    assert responds(b"/home/ann/src")
    assert server.asked == []


def test_a_path_is_resolved_up_to_a_mount_that_does_not_respond(
    server: Server, tmp_path: Path
) -> None:
    net = tmp_path / "net"
    (net / "deep").mkdir(parents=True)
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to(net)
    (net / "link").symlink_to("deep")
    (tmp_path / "self").symlink_to("self")
    patient, hasty = (
        HungMountDetector(lambda: (raw(net),), timeout_s=patience, query=server.ask)
        for patience in (HANG_S, 0.05)
    )
    typed = ("one/link/../x", "net//link", "none/./y", "self", "one")
    expected = [os.path.realpath(raw(tmp_path / name)) for name in typed]
    assert [patient.real_path(raw(tmp_path) + b"/" + name.encode()) for name in typed] == expected
    server.up.clear()
    found = [hasty.real_path(raw(tmp_path) + b"/" + name.encode()) for name in typed]
    assert found == [raw(net / "x"), raw(net / "link"), *expected[2:]]


def test_a_mount_that_responds_is_checked_each_time(server: Server) -> None:
    responds = HungMountDetector(lambda: (b"/net",), timeout_s=HANG_S, query=server.ask).responds
    assert responds(b"/net/src")
    assert responds(b"/net")
    assert server.asked == [b"/net", b"/net"]


def test_a_hung_mount_is_checked_once_and_again_after_it_responds(
    server: Server, responds: Callable[[bytes], bool]
) -> None:
    server.up.clear()
    assert not responds(b"/net/src")
    assert not responds(b"/net/other")
    assert until(lambda: server.asked) == [b"/net"]
    before = threading.enumerate()
    server.up.set()
    assert server.answered.wait(HANG_S)
    for thread in before:
        if thread.name == "mount-check":
            thread.join(HANG_S)
    assert until(lambda: responds(b"/net/src"))
    assert len(server.asked) > 1


def test_a_link_that_may_not_be_read_is_the_end_of_the_path(unreadable_link: Path) -> None:
    """Anybody may ask the daemon about /proc/1/root."""
    path = os.fsencode(unreadable_link / "x")
    assert HungMountDetector(lambda: ()).real_path(path) == path
