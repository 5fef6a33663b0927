"""A fault at any system call of a store, and a check of the store when it is opened again."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from rootsd.core.errors import RootsdError
from rootsd.core.history import ChainHead, events_for
from rootsd.core.model import Project
from rootsd.state.store.backup import UPGRADE_PREFIX, list_backups
from rootsd.state.store.database import StoreDamaged, transaction
from rootsd.state.store.rows import write_events
from rootsd.state.store.store import Store
from support.copied_stores import same_identity, use_copied_stores
from support.fault_target import (
    DECISIONS,
    ORDER,
    TOLD_SIZE,
    ChildResult,
    Diligence,
    Start,
    version_of,
)
from support.power_cuts import damage, memory_folder, python_environment
from support.sample_decisions import NOON, decided, numbered
from support.stores import back_up, by_path, outside, small_reserve

HANG_GUARD = 60
KILL = "signal=SIGKILL"
OLD = range(3, 11)  # the earlier decisions, by number
NEXT = 53  # the number of the first decision then, about the same project as number 3
_UNCOMMITTED = range(100, 200)
_CALLS = ",".join(
    f"?{name}"
    for name in (
        "access", "chmod", "close", "dup", "faccessat", "faccessat2", "fallocate", "fchmod",
        "fchown", "fcntl", "fdatasync", "flock", "fstat", "fstatfs", "fsync", "ftruncate",
        "getcwd", "getdents64", "ioctl", "lseek", "lstat", "mkdir", "mkdirat", "newfstatat",
        "open", "openat", "pread64", "pwrite64", "read", "readlink", "readlinkat", "rename",
        "renameat", "renameat2", "rmdir", "stat", "statfs", "statx", "truncate", "unlink",
        "unlinkat", "utimensat", "write",
    )
)  # fmt: skip

_CALL = re.compile(r"^\[ *(\d+)\] (\w+)\(", re.MULTILINE)


class Outcome(Enum):
    """The outcome of a fault."""

    HELD = auto()  # every acknowledged decision is there, and nothing else
    WRONG = auto()
    SURPRISED = auto()  # the store is intact, but it raised an unexpected error


@dataclass(frozen=True, slots=True)
class CallKind:
    """All calls of one system call that a child makes after a start: its number, and the count."""

    name: str
    number: int
    count: int


@dataclass(frozen=True, slots=True)
class FaultGroup:
    """Faults of one kind, each in a separate use of the store.

    They hit the calls of each kind at the positions that `choose` returns, counted from 1.
    `fault` has the syntax of `strace -e inject`, such as `error=EIO`.
    """

    start: Start
    fault: str
    choose: Callable[[CallKind], Sequence[int]]
    diligence: Diligence = Diligence.OWN


class TracedTarget:
    """A program whose children use the store in `state`, with a channel for commands."""

    def __init__(
        self, state: Path, program: subprocess.Popen[bytes], orders: socket.socket
    ) -> None:
        self.state = state
        self._program = program
        self._orders = orders
        self._orders.settimeout(HANG_GUARD)
        self._orders.recv(TOLD_SIZE)

    def use(self, idle: int = 0, number: int = 0) -> ChildResult:
        """Let a child use the store after `idle` calls of system call `number`."""
        self._orders.send(ORDER.pack(idle, number, NEXT))
        return ChildResult.unpack(self._orders.recv(TOLD_SIZE))

    @contextmanager
    def traced(self, *options: str | Path) -> Iterator[None]:
        """Trace the program during the block."""
        tracer = subprocess.Popen(
            ["strace", "-f", "-e", "signal=none", *options, "-p", str(self._program.pid)],
            stderr=subprocess.PIPE,
        )  # fmt: skip
        assert tracer.stderr is not None
        with tracer:
            assert b"attached" in tracer.stderr.readline()
            # Each child writes a line; it must not wait for a reader.
            drain = threading.Thread(target=tracer.stderr.read)
            drain.start()
            yield
            tracer.terminate()
            drain.join(HANG_GUARD)


@contextmanager
def _bench(state: Path, start: Start, diligence: Diligence) -> Iterator[TracedTarget]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        program = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "support.fault_target",
                str(theirs.fileno()),
                state,
                start,
                diligence,
            ],
            pass_fds=[theirs.fileno()],
            env=python_environment(),
        )
        theirs.close()
        with program:
            yield TracedTarget(state, program, ours)
            ours.close()


def inject(group: FaultGroup) -> Counter[Outcome]:
    """Use a store once without a fault, to count its calls, and once for each fault.

    Returns how often each outcome was found. The store is checked after each fault.
    """
    findings: Counter[Outcome] = Counter()
    with memory_folder() as work, small_reserve(), use_copied_stores(same_identity):
        make_start(group.start, work / "start/state")
        with _bench(work / "bench/state", group.start, group.diligence) as bench:
            for kind in _count_calls(work, bench):
                places = group.choose(kind)
                if not places:
                    continue
                only = f"trace={kind.name}"
                fault = f"inject={kind.name}:{group.fault}:when={kind.count}"
                with bench.traced("-o", "/dev/null", "-e", only, "-e", fault):
                    for place in places:
                        _put(work / "start", bench.state)
                        told = bench.use(kind.count - place, kind.number)
                        finding = _judge(group, bench.state, told)
                        findings[finding] += 1
                        if finding is not Outcome.HELD and group.diligence is Diligence.OWN:
                            where = f"{group.start} {group.fault} {kind.name} {place}"
                            sys.stderr.write(f"{where}: {finding} {told}\n")
    return findings


def _count_calls(work: Path, bench: TracedTarget) -> list[CallKind]:
    """Return the system calls of a child that uses the store without a fault."""
    _put(work / "start", bench.state)
    with bench.traced("-n", "-e", f"trace={_CALLS}", "-o", work / "log", "-ff"):
        told = bench.use()
    assert told == ChildResult(DECISIONS, DECISIONS)
    (log,) = (path for path in work.glob("log.*") if path.stat().st_size)
    found = Counter(_CALL.findall(log.read_text()))
    return [CallKind(name, int(number), count) for (number, name), count in found.items()]


def _put(start: Path, state: Path) -> None:
    shutil.rmtree(state.parent, ignore_errors=True)
    if start.exists():
        shutil.copytree(start, state.parent)


def make_start(start: Start, state: Path) -> None:
    """Create the state of the start."""
    if start is Start.NEW:
        return
    with closing(_opened(state)) as store:
        store.append([numbered(number) for number in OLD], NOON)
        back_up(store, NOON)
        events = store.events()
        if start is Start.HOT:
            _copy_amid_transaction(store, events[-1].head, state, state.with_name("hot"))
    if start is Start.HOT:
        shutil.rmtree(state)
        state.with_name("hot").rename(state)
    if start is Start.DAMAGED:
        damage(state, events[len(events) // 2])


def _opened(state: Path) -> Store:
    return Store.open(state, outside(state), lambda: NOON)


def _copy_amid_transaction(store: Store, head: ChainHead, state: Path, copy: Path) -> None:
    store._db.execute("PRAGMA cache_size = 5")  # more changes than this are written at once
    with transaction(store._db):
        changes = [numbered(number) for number in _UNCOMMITTED]
        write_events(store._db, events_for(changes, NOON, head))
        shutil.copytree(state, copy)


def _judge(group: FaultGroup, state: Path, told: ChildResult) -> Outcome:
    try:
        with version_of(group.start), closing(_opened(state)) as store:
            loaded = store.load()
    except (RootsdError, StoreDamaged) as error:
        sys.stderr.write(f"{error}\n")
        return Outcome.WRONG
    if group.start is Start.UPGRADED and group.fault == KILL and not _can_go_back(state):
        return Outcome.WRONG
    old = () if group.start is Start.NEW else OLD
    if not _is_as_ordered(by_path(loaded), old, told):
        return Outcome.WRONG
    unexpected = told.status not in {0, signal.SIGKILL}
    return Outcome.SURPRISED if unexpected else Outcome.HELD


def _can_go_back(state: Path) -> bool:
    """Return whether the store from before the upgrade is kept."""
    return any(file.name.startswith(UPGRADE_PREFIX) for file in list_backups(state))


def _is_as_ordered(found: Mapping[bytes, Project], old: Iterable[int], told: ChildResult) -> bool:
    """Return whether each project has its last acknowledged decision or a later attempted one.

    A fault is no reason to withdraw an approval, either.
    """
    allowed: dict[bytes, list[Project | None]] = {}
    for number in (*old, *range(NEXT, NEXT + told.tried)):
        made = decided(number)
        before = [] if number < NEXT + told.stored else allowed.get(made.path, [None])
        allowed[made.path] = [*before, made]
    return found.keys() <= allowed.keys() and all(
        found.get(path) in ways for path, ways in allowed.items()
    )
