"""Standard input and output that are full, closed, broken, sockets, or shared."""

from __future__ import annotations

import gc
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rootsd.proxy import stdio
from support.unread_errors import UnreadErrors, unread

MUCH = b"x" * 1_000_000


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Replace standard input and output by a pipe."""
    read, write = os.pipe()
    monkeypatch.setattr(stdio, "STDIN", read)
    monkeypatch.setattr(stdio, "STDOUT", write)
    yield read, write
    for end in (read, write):
        try:
            os.close(end)
        except OSError:  # the test has closed it
            continue


def drained(end: int) -> int:
    """Return how many bytes were in a pipe."""
    taken = 0
    while select.select([end], [], [], 0)[0]:
        taken += len(os.read(end, 1 << 20))
    return taken


def test_read_returns_available_bytes_and_nothing_at_the_end(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"hello")
    os.close(pipe[1])
    assert stdio.read_stdin() == b"hello"
    assert stdio.read_stdin() == b""
    os.close(pipe[0])
    assert stdio.read_stdin() == b""


def test_a_full_pipe_takes_the_rest_later(pipe: tuple[int, int]) -> None:
    write = stdio.make_stdout_writer()
    taken = write(MUCH)
    assert 0 < taken < len(MUCH)
    assert write(MUCH) == 0
    assert os.get_blocking(pipe[1])  # whoever shares it must not notice
    assert drained(pipe[0]) == taken
    assert write(b"more") == 4


def test_a_pipe_without_a_reader_is_broken(pipe: tuple[int, int]) -> None:
    write = stdio.make_stdout_writer()
    os.close(pipe[0])
    with pytest.raises(BrokenPipeError):
        write(b"x")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_full_socket_takes_the_rest_later(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        monkeypatch.setattr(stdio, "STDOUT", ours.fileno())
        write = stdio.make_stdout_writer()
        taken = write(MUCH)
        assert 0 < taken < len(MUCH)
        assert write(MUCH) == 0
        assert os.get_blocking(ours.fileno())
        assert drained(theirs.fileno()) == taken
        theirs.close()
        with pytest.raises(BrokenPipeError):
            write(b"x")
    del write
    gc.collect()  # its own end of the socket is as long-lived as the bridge, but for this test


@pytest.mark.parametrize("blocking", [True, False])
def test_an_output_that_cannot_be_reopened_gets_small_writes_when_there_is_room(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch, *, blocking: bool
) -> None:
    def no_proc(*_: object) -> int:
        raise FileNotFoundError

    os.set_blocking(pipe[1], blocking)
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", no_proc)
        write = stdio.make_stdout_writer()
    taken = 0
    while some := write(MUCH):
        assert some <= select.PIPE_BUF
        taken += some
    assert drained(pipe[0]) == taken


def test_a_file_is_written_at_its_current_position(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (tmp_path / "out").open("wb") as file:
        file.write(b"before ")
        file.flush()
        monkeypatch.setattr(stdio, "STDOUT", file.fileno())
        stdio.make_stdout_writer()(b"after")
    assert (tmp_path / "out").read_bytes() == b"before after"


def test_without_a_standard_output_a_write_fails(pipe: tuple[int, int]) -> None:
    os.close(pipe[1])
    write = stdio.make_stdout_writer()
    with pytest.raises(OSError, match="Bad file descriptor"):
        write(b"x")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_socket_that_was_reset_has_no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    ours = socket.create_connection(listener.getsockname())
    theirs, _ = listener.accept()
    with listener, ours, theirs:
        monkeypatch.setattr(stdio, "STDOUT", ours.fileno())
        write = stdio.make_stdout_writer()
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        theirs.close()
        with pytest.raises(BrokenPipeError):
            write(b"x")
    del write
    gc.collect()


@pytest.mark.parametrize(
    "kind", [each for each in UnreadErrors if each is not UnreadErrors.CLOSED]
)
def test_a_message_that_nobody_takes_is_lost(
    kind: UnreadErrors, monkeypatch: pytest.MonkeyPatch
) -> None:
    with unread(kind) as end:
        monkeypatch.setattr(stdio, "STDERR", end)
        stdio.LossyErrors().write("a message\n" * 100_000)
        assert os.get_blocking(end or 0)  # whoever shares it must not notice


def test_a_message_that_somebody_reads_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    monkeypatch.setattr(stdio, "STDERR", write)
    stdio.LossyErrors().write("a message \udcff \u00e9\n")
    os.close(write)
    assert os.read(read, 100) == b"a message \\udcff \xc3\xa9\n"
    assert os.read(read, 100) == b""
    os.close(read)


def test_a_traceback_that_nobody_reads_changes_no_exit_status() -> None:
    program = "from rootsd.proxy import stdio; stdio.install_lossy_errors(); 1 / 0"
    with unread(UnreadErrors.NO_READER) as end:
        done = subprocess.run([sys.executable, "-c", program], stderr=end, check=False)
    assert done.returncode == 1


_AFTER_FILLING = """
import os, select, sys
from rootsd.proxy import stdio
stdio.fill_closed_files()
assert min(os.pipe()) > 2
assert all(map(os.get_inheritable, range(3)))
if "<&-" in sys.argv[1]:
    assert os.read(0, 1) == b""
if ">&-" in sys.argv[1].split():
    poll = select.poll()
    poll.register(1, 0)
    assert poll.poll(0), "nobody reads it"
"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_no_file_gets_the_number_of_a_closed_standard_file(closed: str) -> None:
    line = ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", _AFTER_FILLING]
    assert subprocess.run([*line, closed], stdin=subprocess.DEVNULL, check=False).returncode == 0
