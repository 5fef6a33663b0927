"""Real helpers for tests: processes of their own, so that pytest itself need not be forked."""

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

ASKED = HelperTask.AT_WORK
SECONDS = 60.0
_SERVE = """
import socket, sys
from functools import partial
from rootsd.helper.protocol import HelperTask
from rootsd.helper.protocol import WorkerAccess
from rootsd.helper.protocol import TaskSpec
from rootsd.helper.server import supervise
from rootsd.helper.server import serve
fd, module, reach, at_once, memory, awaited, *pauses = sys.argv[1:]
terms = TaskSpec(module, WorkerAccess[reach], int(at_once), int(memory), awaited == "True")
helper = partial(serve, terms={HelperTask.AT_WORK: terms})
supervise(socket.socket(fileno=int(fd)), helper, [float(pause) for pause in pauses])
"""
_SERVE_ALL = """
import socket, sys
from rootsd.helper.server import supervise
supervise(socket.socket(fileno=int(sys.argv[1])))
"""


def terms_of_tests(
    *,
    reach: WorkerAccess = WorkerAccess.PROCESSES,
    at_once: int = 2,
    memory: int = 64 << 20,
    awaited: bool = False,
) -> TaskSpec:
    """Workers that do what they are asked, see `support.answering`."""
    return TaskSpec("support.answering:answer", reach, at_once, memory, awaited)


class Kept(NamedTuple):
    """A helper, and the process that keeps it."""

    link: HelperLink
    keeper: int

    def helper_pid(self) -> int:
        """The helper that is there now, once there is one."""
        return _first_child(self.keeper)

    def standing_pid(self) -> int:
        """The worker that stands ready, once there is one; only while nothing is asked."""
        return _first_child(self.helper_pid())


def _first_child(pid: int) -> int:
    deadline = time.monotonic() + SECONDS
    children = Path(f"/proc/{pid}/task/{pid}/children")
    while not (pids := children.read_text().split()):
        assert time.monotonic() < deadline, "no process was started"
    return int(pids[0])


@contextmanager
def helper_on(terms: TaskSpec) -> Iterator[HelperLink]:
    """A helper that knows one duty, `ASKED`, on these terms."""
    with kept_helper(terms) as kept:
        yield kept.link


@contextmanager
def kept_helper(terms: TaskSpec, *pauses_s: float) -> Iterator[Kept]:
    """The same, with its keeper, which makes these pauses before it starts another."""
    words = (terms.function, terms.reach.name, terms.at_once, terms.memory, terms.awaited)
    with _helper(_SERVE, *map(str, words), *map(str, pauses_s or (0.0,))) as kept:
        yield kept


@contextmanager
def real_helper() -> Iterator[HelperLink]:
    """A helper as the daemon has it, with all duties."""
    with _helper(_SERVE_ALL) as kept:
        yield kept.link


@contextmanager
def _helper(program: str, *words: str) -> Iterator[Kept]:
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(theirs.fileno()), *words],
        pass_fds=[theirs.fileno()],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    theirs.close()
    link = HelperLink(ours, process.pid)
    try:
        yield Kept(link, process.pid)
    finally:
        link.close()
        process.returncode = 0  # the link has waited for it
