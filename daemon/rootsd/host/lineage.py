"""What is known of processes and of those above them: /proc on Linux, psutil elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable

from rootsd.core.callers import Process

_FIRST = 1  # init; what it started itself has nothing above it
_MOST = 256
_CMDLINE_CAP = 4096
_ENVIRONMENT_CAP = 1 << 20
_PARENT, _TERMINAL, _STARTED = 1, 4, 19  # fields of /proc/PID/stat behind the name; proc(5)


def lineages(
    pids: Iterable[int], markers: Collection[str]
) -> dict[int, tuple[Process, ...]]:  # fmt: skip
    """Each of `pids` with what started it, and so on up to but without the first process; one that
    is gone has none. Of `markers`, `NAME` or `NAME=value`, those are told that are set."""
    seen: dict[int, Process | None] = {}

    def process(pid: int) -> Process | None:
        if pid not in seen:
            seen[pid] = _process(pid, markers)
        return seen[pid]

    found: dict[int, tuple[Process, ...]] = {}
    for pid in pids:
        line: list[Process] = []
        above = process(pid)
        while above is not None and len(line) < _MOST:
            line.append(above)
            above = process(above.parent) if above.parent > _FIRST else None
        found[pid] = tuple(line)
    return found


def _linux_process(pid: int, markers: Collection[str]) -> Process | None:
    folder = b"/proc/%d/" % pid
    try:
        head, _, tail = _read(folder + b"stat", _CMDLINE_CAP).rpartition(b")")
        fields = tail.split()
        return Process(
            pid=pid,
            started=int(fields[_STARTED]),
            parent=int(fields[_PARENT]),
            name=head.partition(b"(")[2],
            arguments=tuple(_read(folder + b"cmdline", _CMDLINE_CAP).split(b"\0")[:-1]),
            terminal=int(fields[_TERMINAL]),
            control_group=_control_group(folder),
            markers=_set(_environment(folder), markers),
        )
    except (OSError, IndexError):
        return None


def _control_group(folder: bytes) -> bytes:
    for line in _read(folder + b"cgroup", _CMDLINE_CAP).splitlines():
        if line.startswith(b"0::"):
            return line[3:]
    return b""


def _environment(folder: bytes) -> Iterable[bytes]:
    try:
        return _read(folder + b"environ", _ENVIRONMENT_CAP).split(b"\0")
    except OSError:  # another user's, or hidden by the service's unit
        return ()


def _set(environment: Iterable[bytes], markers: Collection[str]) -> frozenset[str]:
    wanted = {os.fsencode(marker): marker for marker in markers}
    found = set[str]()
    for entry in environment:
        name, _, value = entry.partition(b"=")
        if entry in wanted:
            found.add(wanted[entry])
        if value and name in wanted:
            found.add(wanted[name])
    return frozenset(found)


def _read(file: bytes, limit: int) -> bytes:
    with open(file, "rb", buffering=0) as stream:
        return stream.read(limit) or b""


if sys.platform == "linux":
    _process = _linux_process
else:
    import psutil

    def _psutil_process(pid: int, markers: Collection[str]) -> Process | None:
        try:
            known = psutil.Process(pid)
            with known.oneshot():
                return Process(
                    pid=pid,
                    started=int(known.create_time() * 1_000_000),
                    parent=known.ppid(),
                    name=os.fsencode(known.name()),
                    arguments=tuple(map(os.fsencode, known.cmdline())),
                    terminal=1 if known.terminal() else 0,
                    markers=_set(_psutil_environment(known), markers),
                )
        except psutil.Error:
            return None

    def _psutil_environment(known: psutil.Process) -> Iterable[bytes]:
        try:
            return [os.fsencode(f"{k}={v}") for k, v in known.environ().items()]
        except (psutil.Error, OSError):
            return ()

    _process = _psutil_process
