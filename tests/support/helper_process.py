"""Real helpers for tests, in their own processes, so that pytest itself need not fork."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from rootsd.helper.client import HelperLink
from rootsd.helper.protocol import HelperTask, TaskSpec, WorkerAccess

ASKED = HelperTask.FOLDERS_IN_USE
SECONDS = 60.0
_SERVE = """
import socket, sys
from functools import partial
from rootsd.helper.protocol import HelperTask
from rootsd.helper.protocol import WorkerAccess
from rootsd.helper.protocol import TaskSpec
from rootsd.helper.server import supervise
from rootsd.helper.server import serve
fd, module, access, workers, memory, rehearsal, *delays = sys.argv[1:]
spec = TaskSpec(module, WorkerAccess[access], int(workers), int(memory), rehearsal.encode())
helper = partial(serve, specs={HelperTask.FOLDERS_IN_USE: spec})
supervise(socket.socket(fileno=int(fd)), helper, [float(delay) for delay in delays])
"""
_SERVE_ALL = """
import socket, sys
from rootsd.helper.server import supervise
supervise(socket.socket(fileno=int(sys.argv[1])))
"""


def make_spec(
    *,
    access: WorkerAccess = WorkerAccess.PROCESSES,
    max_workers: int = 2,
    memory: int = 64 << 20,
    rehearsal: bytes = b"",
) -> TaskSpec:
    """Return a task whose workers do what the question says; see `support.fake_worker`."""
    return TaskSpec("support.fake_worker:answer", access, max_workers, memory, rehearsal)


class SupervisedHelper(NamedTuple):
    """A helper and its supervisor."""

    link: HelperLink
    supervisor: int

    def helper_pid(self) -> int:
        """Wait for the current helper, and return its pid."""
        return _first_child(self.supervisor)

    def preforked_pid(self) -> int:
        """Wait for the preforked worker, and return its pid. Call this while no question waits."""
        return _first_child(self.helper_pid())


def _first_child(pid: int) -> int:
    deadline = time.monotonic() + SECONDS
    children = Path(f"/proc/{pid}/task/{pid}/children")
    while not (pids := children.read_text().split()):
        assert time.monotonic() < deadline, "no process was started"
    return int(pids[0])


@contextmanager
def helper_on(spec: TaskSpec) -> Iterator[HelperLink]:
    """Run a helper that has one task, `ASKED`, with this spec."""
    with kept_helper(spec) as kept:
        yield kept.link


@contextmanager
def kept_helper(spec: TaskSpec, *delays_s: float) -> Iterator[SupervisedHelper]:
    """Run the same helper, with access to its supervisor and its restart delays."""
    rehearsal = spec.rehearsal.decode()
    words = (spec.function, spec.access.name, spec.max_workers, spec.memory, rehearsal)
    with _helper(_SERVE, *map(str, words), *map(str, delays_s or (0.0,))) as kept:
        yield kept


@contextmanager
def real_helper() -> Iterator[HelperLink]:
    """Run a helper with all tasks, as the daemon has it."""
    with _helper(_SERVE_ALL) as kept:
        yield kept.link


@contextmanager
def _helper(program: str, *words: str) -> Iterator[SupervisedHelper]:
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(theirs.fileno()), *words],
        pass_fds=[theirs.fileno()],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    theirs.close()
    link = HelperLink(ours, process.pid)
    try:
        yield SupervisedHelper(link, process.pid)
    finally:
        link.close()
        process.returncode = 0  # the link has already waited for it
