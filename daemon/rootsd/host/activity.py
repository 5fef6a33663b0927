"""Whether programs are at work or wait for something, on Linux. Source: proc(5)."""

from __future__ import annotations

import os
import re

_AT_WORK = (b"R", b"D")  # on a CPU or waiting for one, and waiting for a disk
_TOLD = re.compile(rb"^State:\t(.)|^(?:non)?voluntary_ctxt_switches:\t(\d+)", re.MULTILINE)
_MOST_BYTES = 1 << 16

_Threads = dict[bytes, list[tuple[bytes, bytes]]]


def is_at_work(pid: int) -> bool:
    """Whether any thread of a process, or of those that it has started, runs or is about to.

    False where all of them sleep at one and the same moment, and where the system does not tell.
    """
    before = _threads(pid)
    if any(state in _AT_WORK for told in before.values() for state, _ in told):
        return True
    # One may have been woken after it was looked at, by one that slept when that was looked at:
    # then it has run, or runs still. How often each was given a CPU tells so.
    return _threads(pid) != before


def _threads(pid: int) -> _Threads:
    """Each thread's state, and how often it gave its CPU away."""
    found: _Threads = {}
    processes = [b"%d" % pid]
    for process in processes:
        folder = b"/proc/%s/task/" % process
        try:
            numbers = os.listdir(folder)
        except OSError:  # gone, or no Linux
            continue
        for number in numbers:
            found[number] = _TOLD.findall(_text(folder + number + b"/status"))
            # Where the kernel keeps no such list, what it has started is not seen.
            processes += _text(folder + number + b"/children").split()
    return found


def _text(file: bytes) -> bytes:
    try:
        with open(file, "rb", buffering=0) as stream:
            return stream.read(_MOST_BYTES) or b""
    except OSError:
        return b""
