"""No other program takes the connection of a program that a person keeps open."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.person import Person
from support.subprocesses import UNPRIVILEGED

pytestmark = pytest.mark.needs("linux")

# Takes each descriptor of a process with pidfd_getfd(2), and prints those that are sockets.
THIEF = """
import ctypes, os, stat, sys
SYS_pidfd_getfd = 438  # on every architecture
libc, pidfd = ctypes.CDLL(None, use_errno=True), os.pidfd_open(int(sys.argv[1]))
for number in range(3, 64):
    taken = libc.syscall(SYS_pidfd_getfd, pidfd, number, 0)
    if taken >= 0 and stat.S_ISSOCK(os.fstat(taken).st_mode):
        print(number)
"""
# The planted fault: PR_GET_DUMPABLE instead of PR_SET_DUMPABLE.
IN_THE_OPEN = """
import sys
from rootsd.link import hidden_process
hidden_process._PR_SET_DUMPABLE = 3
from rootsd.__main__ import main
sys.exit(main())
"""
# Root may take everything. Then both are without rights, and have the same user.
PREFIX = UNPRIVILEGED if os.geteuid() == 0 else ()


@pytest.fixture
def person(person: Person) -> Person:
    person.clone("one")
    person.rootsd("up", str(person.parent))
    person.wait_until_listed("one", "pending")
    person.rootsd("approve", "one")
    return person


@contextmanager
def following(person: Person, *program: str) -> Iterator[int]:
    """Follow the log with `program`, and yield its pid once it has printed an entry."""
    words = [*PREFIX, sys.executable, *program, "log", "-f", "--json"]
    environment = {**person.environment(), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment) as started:
        assert started.stdout is not None
        try:
            assert any(b'"approved"' in line for line in started.stdout)
            yield started.pid
        finally:
            started.kill()


def taken_from(pid: int) -> list[str]:
    words = [*PREFIX, sys.executable, "-c", THIEF, str(pid)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()


def test_no_program_takes_the_connection_of_a_log_that_is_followed(person: Person) -> None:
    with following(person, "-m", "rootsd") as pid:
        assert taken_from(pid) == []


def test_the_control_without_hiding_the_connection_is_taken(person: Person) -> None:
    with following(person, "-c", IN_THE_OPEN) as pid:
        while not taken_from(pid):  # between two questions, there is no connection
            pass
