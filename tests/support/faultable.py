"""A program whose children use a store, each with a fault at another system call.

`python -m support.faultable SOCKET STATE DILIGENCE`, to be traced by strace, which counts the
calls of a kind for each process by itself and has the N-th one fail. A child that is to meet the
fault earlier is told to make idle calls of this kind first. The program itself makes no call of a
kind that a store makes once it is traced: it waits, forks, and tells.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import socket
import struct
import sys
import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from enum import StrEnum
from pathlib import Path
from typing import NoReturn

from rootsd.core.changes import Change
from rootsd.core.errors import RootsdError
from rootsd.state.store.store import Store
from support.decisions import NOON, numbered
from support.elsewhere import elsewhere, one_file
from support.stores import back_up, outside, small_reserve

DECISIONS = 3
ORDER = struct.Struct("=3i")  # idle calls to make first, of which number; the first decision
_BACK_UP_AFTER = 2
_PR_SET_PTRACER = 0x59616D61  # prctl(2): who may trace, where Yama restricts it
_NONSENSE = (ctypes.c_long(-1),) * 6  # no descriptor, no address: no call does anything with it
_ANYBODY = ctypes.c_ulong(-1)


class Diligence(StrEnum):
    """Whether a child tells that a decision is stored after it was or, as a control, before."""

    OWN = "own"
    HASTY = "hasty"


@dataclass(slots=True)
class Told:
    """What a child told: how many decisions it tried to store, how many of these, from the first
    on, were acknowledged, how often it was refused, and the status that waitpid(2) gave."""

    tried: int = 0
    stored: int = 0
    refused: int = 0
    status: int = 0

    def pack(self) -> bytes:
        """As bytes."""
        return _TOLD.pack(*astuple(self))

    @classmethod
    def unpack(cls, packed: bytes) -> Told:
        """What was packed."""
        return cls(*_TOLD.unpack(packed))


_TOLD = struct.Struct("=4i")
TOLD_SIZE = _TOLD.size


class Child:
    """Uses a store. It tells in memory that outlives it, which takes no system call."""

    def __init__(self, memory: mmap.mmap, state: Path, diligence: Diligence) -> None:
        self._memory = memory
        self._state = state
        self._diligence = diligence
        self._told = Told()

    def use_store(self, first: int) -> None:
        """Open, decide, back up and close as a daemon would, the first decision being `first`;
        what is refused is tried again along with the next one."""
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
        return self._opened()  # somebody starts it once more

    def _opened(self) -> Store:
        return Store.open(self._state, outside(self._state), lambda: NOON)

    @contextmanager
    def _refusable(self) -> Iterator[None]:
        try:
            yield
        except RootsdError:
            self._told.refused += 1

    def _tell(self) -> None:
        self._memory[:TOLD_SIZE] = self._told.pack()


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
    """Take orders on the socket until it is closed."""
    number, state, diligence = int(sys.argv[1]), Path(sys.argv[2]), Diligence(sys.argv[3])
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANYBODY)
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    orders = socket.socket(fileno=number)
    orders.send(Told().pack())  # ready to be traced
    with small_reserve(), elsewhere(one_file):
        while order := orders.recv(ORDER.size):
            memory[:TOLD_SIZE] = Told().pack()
            pid = os.fork()
            if pid == 0:
                _in_child(Child(memory, state, diligence), *ORDER.unpack(order))
            _, status = os.waitpid(pid, 0)
            told = Told.unpack(memory[:TOLD_SIZE])
            told.status = status
            orders.send(told.pack())


if __name__ == "__main__":
    main()
