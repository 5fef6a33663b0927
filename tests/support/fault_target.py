"""A program whose children use a store, each with a fault at another system call.

`python -m support.fault_target SOCKET STATE START DILIGENCE` runs under strace. strace counts the
calls of one kind separately for each process and makes the N-th one fail. To meet the fault
earlier, a child first makes idle calls of this kind. While it is traced, the program itself makes
no call of a kind that a store makes: it only waits, forks, and reports.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import astuple, dataclass
from enum import StrEnum
from pathlib import Path
from typing import NoReturn
from unittest.mock import patch

from rootsd.core.changes import Change
from rootsd.core.errors import RootsdError
from rootsd.state.store.database import Database
from rootsd.state.store.schema import migrate
from rootsd.state.store.store import Store
from support.copied_stores import same_identity, use_copied_stores
from support.sample_decisions import NOON, numbered
from support.stores import back_up, later_version, outside, small_reserve

DECISIONS = 3
ORDER = struct.Struct("=3i")  # number of idle calls, their system call, and the first decision
_BACK_UP_AFTER = 2
_PR_SET_PTRACER = 0x59616D61  # prctl(2): allow tracing where Yama restricts it
_NONSENSE = (
    ctypes.c_long(-1),
) * 6  # not a valid descriptor or address, so a call with it does nothing
_ANYBODY = ctypes.c_ulong(-1)


class Start(StrEnum):
    """The state of the store at the start."""

    NEW = "new"
    OLD = "old"
    HOT = "hot"  # a writer was killed in a transaction, which has to be rolled back
    UPGRADED = "upgraded"  # the program is of a later version
    DAMAGED = "damaged"  # and to be rebuilt, with a backup


def version_of(start: Start) -> AbstractContextManager[object]:
    """Return a block in which stores are of the version of the program that finds `start`."""
    return later_version() if start is Start.UPGRADED else nullcontext()


class Diligence(StrEnum):
    """The order of a child's steps: the real one, or a wrong one as a control.

    HASTY reports a decision before it is stored. LATE backs a database up after the migration.
    """

    OWN = "own"
    HASTY = "hasty"
    LATE = "late"


@dataclass(slots=True)
class ChildResult:
    """The report of a child.

    It says how many decisions the child tried to store, how many of these, from the first on, were
    acknowledged, how often it was refused, and the status from waitpid(2).
    """

    tried: int = 0
    stored: int = 0
    refused: int = 0
    status: int = 0

    def pack(self) -> bytes:
        """Return the report as bytes."""
        return _TOLD.pack(*astuple(self))

    @classmethod
    def unpack(cls, packed: bytes) -> ChildResult:
        """Return the report from bytes."""
        return cls(*_TOLD.unpack(packed))


_TOLD = struct.Struct("=4i")
TOLD_SIZE = _TOLD.size


class Child:
    """A child that uses a store. It reports in shared memory, which takes no system call."""

    def __init__(self, memory: mmap.mmap, state: Path, diligence: Diligence) -> None:
        self._memory = memory
        self._state = state
        self._diligence = diligence
        self._told = ChildResult()

    def use_store(self, first: int) -> None:
        """Open, decide, back up, and close as a daemon would. `first` is the first decision; a
        refused one is retried with the next.
        """
        waiting: list[Change] = []
        with closing(self._open()) as store:
            for number in range(first, first + DECISIONS):
                waiting.append(numbered(number))
                self._told.tried += 1
                if self._diligence is Diligence.HASTY:
                    self._told.stored = self._told.tried
                self._tell()
                with self._refusable():
                    store.append(waiting, NOON)
                    waiting.clear()
                    self._told.stored = self._told.tried
                self._tell()
                if self._told.tried == _BACK_UP_AFTER:
                    with self._refusable():
                        back_up(store, NOON)
            with self._refusable():
                store.load()

    def _open(self) -> Store:
        with self._refusable():
            return self._opened()
        return self._opened()  # somebody starts it again

    def _opened(self) -> Store:
        is_late = self._diligence is Diligence.LATE
        order = _migrate_first if is_late else migrate
        with patch("rootsd.state.store.opening.migrate", order):
            return Store.open(self._state, outside(self._state), lambda: NOON)

    @contextmanager
    def _refusable(self) -> Iterator[None]:
        try:
            yield
        except RootsdError:
            self._told.refused += 1

    def _tell(self) -> None:
        self._memory[:TOLD_SIZE] = self._told.pack()


def _migrate_first(db: Database, back_up: Callable[[], object]) -> None:
    late: list[Callable[[], object]] = []
    migrate(db, lambda: late.append(back_up))
    for each in late:
        each()


def _in_child(child: Child, idle: int, number: int, first: int) -> NoReturn:
    call = ctypes.CDLL(None).syscall
    for _ in range(idle):
        call(number, *_NONSENSE)
    status = 1
    try:
        child.use_store(first)
        status = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(status)


def main() -> None:
    """Process commands from the socket until it is closed."""
    number, state = int(sys.argv[1]), Path(sys.argv[2])
    start, diligence = Start(sys.argv[3]), Diligence(sys.argv[4])
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANYBODY)
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    orders = socket.socket(fileno=number)
    orders.send(ChildResult().pack())  # ready to be traced
    with small_reserve(), use_copied_stores(same_identity), version_of(start):
        while order := orders.recv(ORDER.size):
            memory[:TOLD_SIZE] = ChildResult().pack()
            pid = os.fork()
            if pid == 0:
                _in_child(Child(memory, state, diligence), *ORDER.unpack(order))
            _, status = os.waitpid(pid, 0)
            told = ChildResult.unpack(memory[:TOLD_SIZE])
            told.status = status
            orders.send(told.pack())


if __name__ == "__main__":
    main()
