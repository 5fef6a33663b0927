"""The bridge's own pipes, where they are closed, broken or made non-blocking by others."""

from __future__ import annotations

import os
import select
import threading

import pytest

from rootsd.bridge import stdio


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """A pipe in the place of standard input and output."""
    read, write = os.pipe()
    monkeypatch.setattr(stdio, "STDIN", read)
    monkeypatch.setattr(stdio, "STDOUT", write)
    return read, write


def test_what_is_there_is_read_and_the_end_is_nothing(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"hello")
    os.close(pipe[1])
    assert stdio.read_stdin() == b"hello"
    assert stdio.read_stdin() == b""
    os.close(pipe[0])
    assert stdio.read_stdin() == b""


def test_a_write_takes_no_more_than_a_pipe_takes_at_once(pipe: tuple[int, int]) -> None:
    assert stdio.write_stdout(b"x" * 100_000) == select.PIPE_BUF
    os.close(pipe[0])
    with pytest.raises(BrokenPipeError):
        stdio.write_stdout(b"x")
    os.close(pipe[1])


def test_a_full_pipe_that_does_not_block_is_waited_for(pipe: tuple[int, int]) -> None:
    read, write = pipe
    os.set_blocking(write, False)
    while stdio.write_stdout(b"x" * select.PIPE_BUF) and select.select([], [write], [], 0)[1]:
        pass
    with pytest.raises(BlockingIOError):
        os.write(write, b"x" * select.PIPE_BUF)
    reader = threading.Thread(target=os.read, args=[read, 1 << 20])
    reader.start()
    assert stdio.write_stdout(b"x" * select.PIPE_BUF) in (0, select.PIPE_BUF)
    reader.join(10)
    os.close(read)
    os.close(write)
