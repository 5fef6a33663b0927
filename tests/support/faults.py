"""A fault at any system call of a store, and what is found when it is opened again."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from pathlib import Path

from rootsd.core.errors import RootsdError
from rootsd.core.history import ChainHead, events_for
from rootsd.core.model import Project
from rootsd.state.store.database import StoreDamaged, transaction
from rootsd.state.store.rows import write_events
from rootsd.state.store.store import Store
from support.cuts import damage, memory_folder, python_environment
from support.decisions import NOON, decided, numbered
from support.elsewhere import elsewhere, one_file
from support.faultable import DECISIONS, ORDER, TOLD_SIZE, Diligence, Told
from support.stores import back_up, by_path, make_version_0_1_0, outside, small_reserve

HANG_GUARD = 60
OLD = range(3, 11)  # by number: what was decided before
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


class Start(StrEnum):
    """What the store is at the start."""

    NEW = "new"
    OLD = "old"
    HOT = "hot"  # somebody was killed amid a transaction, which is to be rolled back
    UPGRADED = "upgraded"  # it is of version 0.1.0, and gets its second anchor
    DAMAGED = "damaged"  # and to be rebuilt, with a backup


class Finding(Enum):
    """What a fault came to."""

    HELD = auto()  # all that was acknowledged is there, and nothing that was not ordered
    WRONG = auto()
    SURPRISED = auto()  # it holds, but an error came up that no caller expects


@dataclass(frozen=True, slots=True)
class Kind:
    """All calls of one system call that a child makes upon a start: its number, and how many."""

    name: str
    number: int
    count: int


@dataclass(frozen=True, slots=True)
class Part:
    """Faults of one sort, each in a use of its own: at the calls of each kind that are given by
    their place among these, from 1. `fault` is as `strace -e inject` has it, like `error=EIO`."""

    start: Start
    fault: str
    places: Sequence[tuple[Kind, Sequence[int]]]
    diligence: Diligence = Diligence.OWN

    @property
    def count(self) -> int:
        """How many faults these are."""
        return sum(len(places) for _, places in self.places)


class Bench:
    """A program whose children use the store in `state`, and orders to it."""

    def __init__(
        self, state: Path, program: subprocess.Popen[bytes], orders: socket.socket
    ) -> None:
        self.state = state
        self._program = program
        self._orders = orders
        self._orders.settimeout(HANG_GUARD)
        self._orders.recv(TOLD_SIZE)

    def use(self, idle: int = 0, number: int = 0) -> Told:
        """Have a child use the store, after it has made idle calls of system call `number`."""
        self._orders.send(ORDER.pack(idle, number, NEXT))
        return Told.unpack(self._orders.recv(TOLD_SIZE))

    @contextmanager
    def traced(self, *options: str | Path) -> Iterator[None]:
        """Trace it meanwhile."""
        tracer = subprocess.Popen(
            ["strace", "-f", "-e", "signal=none", *options, "-p", str(self._program.pid)],
            stderr=subprocess.PIPE,
        )  # fmt: skip
        assert tracer.stderr is not None
        with tracer:
            assert b"attached" in tracer.stderr.readline()
            # A line for each child is to come: it must not wait for a reader.
            drain = threading.Thread(target=tracer.stderr.read)
            drain.start()
            yield
            tracer.terminate()
            drain.join(HANG_GUARD)


@contextmanager
def _bench(state: Path, diligence: Diligence) -> Iterator[Bench]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        program = subprocess.Popen(
            [sys.executable, "-m", "support.faultable", str(theirs.fileno()), state, diligence],
            pass_fds=[theirs.fileno()],
            env=python_environment(),
        )
        theirs.close()
        with program:
            yield Bench(state, program, ours)
            ours.close()


def count_calls(start: Start) -> list[Kind]:
    """The system calls that a child makes which uses the store, with no fault."""
    with memory_folder() as work, small_reserve(), elsewhere(one_file):
        make_start(start, work / "start/state")
        with _bench(work / "bench/state", Diligence.OWN) as bench:
            _put(work / "start", bench.state)
            with bench.traced("-n", "-e", f"trace={_CALLS}", "-o", work / "log", "-ff"):
                told = bench.use()
            assert told == Told(DECISIONS, DECISIONS)
        (log,) = (path for path in work.glob("log.*") if path.stat().st_size)
        found = Counter(_CALL.findall(log.read_text()))
    return [Kind(name, int(number), count) for (number, name), count in found.items()]


def inject(part: Part) -> Counter[Finding]:
    """Use a store once for each fault and look at it afterwards."""
    findings: Counter[Finding] = Counter()
    with memory_folder() as work, small_reserve(), elsewhere(one_file):
        make_start(part.start, work / "start/state")
        with _bench(work / "bench/state", part.diligence) as bench:
            for kind, places in part.places:
                only = f"trace={kind.name}"
                fault = f"inject={kind.name}:{part.fault}:when={kind.count}"
                with bench.traced("-o", "/dev/null", "-e", only, "-e", fault):
                    for place in places:
                        _put(work / "start", bench.state)
                        told = bench.use(kind.count - place, kind.number)
                        finding = _judge(part, bench.state, told)
                        findings[finding] += 1
                        if finding is not Finding.HELD and part.diligence is Diligence.OWN:
                            where = f"{part.start} {part.fault} {kind.name} {place}"
                            sys.stderr.write(f"{where}: {finding} {told}\n")
    return findings


def _put(start: Path, state: Path) -> None:
    shutil.rmtree(state.parent, ignore_errors=True)
    if start.exists():
        shutil.copytree(start, state.parent)


def make_start(start: Start, state: Path) -> None:
    """Make what is there at the start."""
    if start is Start.NEW:
        return
    if start is Start.UPGRADED:
        make_version_0_1_0(state, [numbered(number) for number in OLD])
        return
    with closing(Store.open(state, outside(state), lambda: NOON)) as store:
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


def _copy_amid_transaction(store: Store, head: ChainHead, state: Path, copy: Path) -> None:
    store._db.execute("PRAGMA cache_size = 5")  # more changes than this go to the disk at once
    with transaction(store._db):
        changes = [numbered(number) for number in _UNCOMMITTED]
        write_events(store._db, events_for(changes, NOON, head))
        shutil.copytree(state, copy)


def _judge(part: Part, state: Path, told: Told) -> Finding:
    try:
        with closing(Store.open(state, outside(state), lambda: NOON)) as store:
            loaded = store.load()
    except (RootsdError, StoreDamaged) as error:
        sys.stderr.write(f"{error}\n")
        return Finding.WRONG
    old = () if part.start is Start.NEW else OLD
    if not _is_as_ordered(by_path(loaded), old, told):
        return Finding.WRONG
    unexpected = told.status not in {0, signal.SIGKILL}
    return Finding.SURPRISED if unexpected else Finding.HELD


def _is_as_ordered(found: Mapping[bytes, Project], old: Iterable[int], told: Told) -> bool:
    """Whether every project stands as it was last told to be stored, or as it was tried to be
    since then. No fault is a reason to take approvals back, either."""
    allowed: dict[bytes, list[Project | None]] = {}
    for number in (*old, *range(NEXT, NEXT + told.tried)):
        made = decided(number)
        before = [] if number < NEXT + told.stored else allowed.get(made.path, [None])
        allowed[made.path] = [*before, made]
    return found.keys() <= allowed.keys() and all(
        found.get(path) in ways for path, ways in allowed.items()
    )
