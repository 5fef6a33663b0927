"""Real helpers for tests: processes of their own, so that pytest itself need not be forked."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rootsd.host.helper.duties import Duty, Reach, Terms
from rootsd.host.helper.link import Link

ASKED = Duty.AT_WORK
SECONDS = 60.0
_SERVE = """
import socket, sys
from rootsd.host.helper.duties import Duty, Reach, Terms
from rootsd.host.helper.server import serve
fd, module, reach, at_once, memory = sys.argv[1:]
terms = Terms(module, Reach[reach], at_once=int(at_once), memory=int(memory))
serve(socket.socket(fileno=int(fd)), {Duty.AT_WORK: terms})
"""
_SERVE_ALL = """
import socket, sys
from rootsd.host.helper.server import serve
serve(socket.socket(fileno=int(sys.argv[1])))
"""


def terms_of_tests(
    *, reach: Reach = Reach.PROCESSES, at_once: int = 2, memory: int = 64 << 20
) -> Terms:
    """Workers that do what they are asked, see `support.answering`."""
    return Terms("support.answering", reach, at_once=at_once, memory=memory)


@contextmanager
def helper_on(terms: Terms) -> Iterator[Link]:
    """A helper that knows one duty, `ASKED`, on these terms."""
    with _helper(
        _SERVE, terms.module, terms.reach.name, str(terms.at_once), str(terms.memory)
    ) as link:
        yield link


@contextmanager
def real_helper() -> Iterator[Link]:
    """A helper as the daemon has it, with all duties."""
    with _helper(_SERVE_ALL) as link:
        yield link


@contextmanager
def _helper(program: str, *words: str) -> Iterator[Link]:
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(theirs.fileno()), *words],
        pass_fds=[theirs.fileno()],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    theirs.close()
    link = Link(ours, process.pid)
    try:
        yield link
    finally:
        link.close()
        process.returncode = 0  # the link has waited for it
