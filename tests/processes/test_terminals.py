"""Real terminals: their holders, and output on them."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rootsd.core.processes import terminal_name
from rootsd.processes.process_tree import BareProcessReader, ProcessReader
from rootsd.processes.terminals import TerminalWriteFailed, terminal_holders, write_to_terminal

pytestmark = pytest.mark.needs("linux")

HANG_GUARD = 60
# On its own terminal: asks for input, and reports it.
READER = "import sys; print('ready', flush=True); print('got', sys.stdin.readline(), flush=True)"


@contextmanager
def on_a_terminal(*words: str) -> Iterator[tuple[int, int]]:
    """A process and the master side of its terminal."""
    pid, master = pty.fork()
    if not pid:
        os.execv(words[0], list(words))  # noqa: S606
    try:
        yield pid, master
    finally:
        os.close(master)
        os.waitpid(pid, 0)


def until(master: int, end: str) -> str:
    shown = ""
    while end not in shown:
        assert select.select([master], [], [], HANG_GUARD)[0]
        shown += os.read(master, 4096).decode()
    return shown


def fill(pid: int) -> None:
    """Show more than fits, while nobody reads the other side."""
    with pytest.raises(TerminalWriteFailed, match=r"stopped|no more text"):  # noqa: PT012 - any of them may
        for _ in range(100):
            write_to_terminal(pid, *seen(pid), b"x" * 8192)


def seen(pid: int) -> tuple[int, int]:
    process = BareProcessReader().lineage(pid).processes[0]
    return process.started, process.terminal


def test_typed_ahead_input_is_dropped_before_the_text_is_shown() -> None:
    with on_a_terminal(sys.executable, "-c", READER) as (pid, master):
        until(master, "ready")
        os.write(master, b"typed ahead")  # not a complete line, so no process has read it
        until(master, "typed ahead")
        write_to_terminal(pid, *seen(pid), b"Type it: ")
        assert "Type it: " in until(master, "Type it: ")
        os.write(master, b"the word\n")
        assert "got the word" in until(master, "got the word")


def test_it_is_shown_only_to_the_calling_process() -> None:
    with on_a_terminal(sys.executable, "-c", READER) as (pid, master):
        until(master, "ready")
        started, device = seen(pid)
        for wrong in ((started + 1, device), (started, device + 1), (started, 0)):
            with pytest.raises(TerminalWriteFailed, match="has ended"):
                write_to_terminal(pid, *wrong, b"no")
        with pytest.raises(TerminalWriteFailed, match="too long"):
            write_to_terminal(pid, started, device, b"x" * 20_000)
        os.write(master, b"\n")


def test_the_holder_of_a_terminal_reads_its_other_side_and_a_stopped_one_does_not_block() -> None:
    with on_a_terminal(sys.executable, "-c", READER) as (pid, master):
        until(master, "ready")
        _, device = seen(pid)
        (holder,) = terminal_holders(pid, device, ProcessReader(()))[device]
        assert holder.lineage.processes[0].pid == os.getpid()
        assert terminal_holders(pid, 0, ProcessReader(())) == {}
        fill(pid)
        os.write(master, b"\n")
        until(master, "got")


@pytest.mark.needs("root")
def test_a_terminal_of_another_user_is_left_alone() -> None:
    with on_a_terminal(sys.executable, "-c", READER) as (pid, master):
        until(master, "ready")
        path = os.ttyname(os.open(f"/proc/{pid}/fd/0", os.O_RDWR | os.O_NOCTTY))
        os.chown(path, 12345, -1)
        with pytest.raises(TerminalWriteFailed, match="belongs to user 12345"):
            write_to_terminal(pid, *seen(pid), b"no")
        os.write(master, b"\n")


@pytest.mark.needs("namespaces")
def test_a_terminal_of_another_devpts_mount_is_refused() -> None:
    """Its number may equal that of one of our terminals."""
    inner = "import os, pty, sys; sys.exit(pty.spawn([sys.executable, '-c', sys.argv[1]]))"
    script = "mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts && "
    script += 'mount --bind /dev/pts/ptmx /dev/ptmx && exec "$0" "$@"'
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script, sys.executable, "-c", inner, READER],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as started:  # fmt: skip
        assert started.stdin is not None
        assert started.stdout is not None
        assert b"ready" in started.stdout.readline()
        with open(f"/proc/{started.pid}/task/{started.pid}/children") as children:
            pid = int(children.read().split()[0])
        began, device = seen(pid)
        assert terminal_name(device) == "pts/0", "the first of its mount"
        with pytest.raises(TerminalWriteFailed, match="container or a sandbox"):
            write_to_terminal(pid, began, device, b"no")
        holders = terminal_holders(pid, device, ProcessReader(()))[device]
        assert [each.lineage.processes[0].pid for each in holders] == [started.pid]
        with on_a_terminal(sys.executable, "-c", READER) as (ours, master):
            until(master, "ready")
            _, alike = seen(ours)
            found = terminal_holders(ours, alike, ProcessReader(()))[alike]
            assert started.pid not in {each.lineage.processes[0].pid for each in found}
            os.write(master, b"\n")
        started.stdin.write(b"\n")
        started.stdin.close()
        started.stdout.read()
