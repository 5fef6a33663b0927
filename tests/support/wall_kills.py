"""Kill a part of a wall, or the daemon, at a random moment, and find what remains.

A *keeper* starts `rootsd confine` and adopts each process that loses its parent. So it ends only
when no process of the wall is left, wherever that process has gone. It is also the killer: it
waits for a part of the wall, then for a given time, and sends SIGKILL.

Meanwhile the decisions change, and a program inside tries to read three projects all the time. It
is a daemon itself, because such a process is the most likely one to outlive a wall.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum

import psutil

from rootsd.cli.answers import control_client as control
from rootsd.core.errors import RootsdError
from rootsd.core.wall import WallEngine
from rootsd.wire.daemon import StatusQuery
from rootsd.wire.decisions import DecideRequest, DecisionVerb
from rootsd.wire.jsonrpc import LineReader
from support.person import Person

HANG_GUARD_S = 120.0
_BETWEEN_KILLS_S = 0.02
_BETWEEN_CHANGES_S = 0.02
_BETWEEN_LOOKS_S = 0.01
KEPT, CHANGING, PENDING = "kept", "changing", "pending"
"""The projects: approved, approved and denied all the time, and never decided about."""
_GRACE_S = 0.1  # of the front below, so that a program without a daemon stops soon
_FRONT = f"""
import sys
from rootsd.wall.session import main, view_feed
view_feed.GRACE_S = {_GRACE_S}
LEAK
sys.exit(main.main(sys.argv[1:]))
"""

# Reads the JSON text of its command and the moment. Prints the front's pid, and whether it killed.
_KEEPER = r"""
import ctypes, json, os, select, signal, sys

spec = json.loads(sys.argv[1])
assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0  # PR_SET_CHILD_SUBREAPER
front = os.fork()
if front == 0:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.execv(spec["command"][0], spec["command"])

def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(each) for each in file.read().split()]

def is_waiter(pid):
    with open(f"/proc/{pid}/comm") as file:
        return file.read() == "rootsd-wall\n"

def find(process):
    match process:
        case "front":
            return front
        case "daemon":
            return spec["daemon"]
        case "warden":
            # The last one before the waiter. Earlier ones may be the relay for git, or git itself.
            found = children(front)
            return [found[n - 1] for n, each in enumerate(found) if n and is_waiter(each)][0]
        case "program":
            waiter = [each for each in children(front) if is_waiter(each)][0]
            init = children(waiter)[0]
            return children(init)[0]

victim = None
while victim is None and os.waitid(os.P_PID, front, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
    try:
        find(spec["start"])
        victim = os.pidfd_open(find(spec["victim"]))
    except (IndexError, OSError):
        select.select([], [], [], 0.001)
if victim is not None:
    select.select([victim], [], [], spec["delay"])
    try:
        signal.pidfd_send_signal(victim, signal.SIGKILL)
    except ProcessLookupError:
        victim = None
print(json.dumps({"front": front, "hit": victim is not None}), file=sys.stderr, flush=True)
try:
    while True:
        os.wait()
except ChildProcessError:
    pass
"""

# Between its looks it leaves the processors to the daemon and the wall.
_PROBE = """
import os, select, signal, sys
if os.fork():
    while True:
        signal.pause()
os.setsid()
if os.fork():
    os._exit(0)
shown = None
while True:
    now = []
    for name in sys.argv[2:]:
        try:
            with open(f"{sys.argv[1]}/{name}/README") as file:
                file.read()
        except OSError:
            continue
        now.append(name)
    if now != shown:
        shown = now
        print(*now, flush=True)
    select.select([], [], [], 0.001)
"""


class Part(StrEnum):
    """A process that can be killed."""

    FRONT = "front"
    WARDEN = "warden"
    PROGRAM = "program"
    DAEMON = "daemon"


@dataclass(frozen=True, slots=True)
class Moment:
    """When to kill: `delay` seconds after the processes `start` and `victim` both exist."""

    victim: Part
    start: Part
    delay: float


class Leak(StrEnum):
    """A fault to plant, as code for the front. Each control has one."""

    NONE = ""
    NO_WARDEN = (
        "from rootsd.wall.kernel import cell; wait = cell.wait;"
        " cell.wait = lambda init, ends, end_all: wait(init, (), end_all)"
    )
    """Nobody notices that the warden has ended."""
    ORPHANS = (
        f"{NO_WARDEN}; from rootsd.wall.system_calls import ProcessOption;"
        " change = cell.set_process_option; cell.set_process_option = lambda option, value:"
        " option is ProcessOption.PARENT_DEATH_SIGNAL or change(option, value)"
    )
    """Nor does the kernel end a process with its parent."""
    ENDLESS_GRACE = "view_feed.GRACE_S = 10_000"
    """The program goes on without a daemon."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one life of a wall.

    `hit` says whether the victim was alive at the kill. `has_remains` says whether a process
    remained. `faults` are sentences about what the program saw and should not have seen.
    """

    hit: bool
    has_remains: bool
    faults: tuple[str, ...]


def live(
    person: Person,
    engine: WallEngine,
    moment: Moment,
    leak: Leak = Leak.NONE,
    patience: float = HANG_GUARD_S,
) -> Outcome:
    """Start a wall for the projects of `person`, and kill a part of it.

    The daemon must run, with CHANGING denied. A daemon runs afterwards.
    """
    with _keeper(person, engine, moment, leak) as keeper:
        witness = _Witness(keeper, patience)
        assert keeper.stderr is not None
        with _changes(person):
            report = json.loads(keeper.stderr.readline())
        faults: list[str] = []
        if moment.victim is Part.DAEMON:
            faults += _without_daemon(person, engine, witness, report["front"])
            with suppress(ProcessLookupError):
                os.kill(report["front"], signal.SIGKILL)
        if not witness.ends():
            faults.append("the program still runs")
        if PENDING in witness.seen:
            faults.append("the program has read the pending project")
        try:
            keeper.wait(patience)
            has_remains = False
        except subprocess.TimeoutExpired:
            has_remains = True
            _end_children(keeper)
    _decide(person, DecisionVerb.DENY, CHANGING)
    return Outcome(report["hit"], has_remains, tuple(faults))


def flags(engine: WallEngine) -> list[str]:
    """Return the flags of the walls, which all have one folder."""
    return ["--name", "victim", *(["--static"] if engine is WallEngine.STATIC else [])]


def prepare(person: Person) -> None:
    """Make the projects, and start the daemon."""
    for name in (KEPT, CHANGING, PENDING):
        person.clone(name)
    person.rootsd("up", str(person.parent))
    person.rootsd("approve", KEPT)
    person.rootsd("deny", CHANGING)


def _without_daemon(
    person: Person, engine: WallEngine, witness: _Witness, front: int
) -> Iterator[str]:
    """Yield what is wrong after the daemon was killed. A daemon runs at the end."""
    person.run("down")  # the front may have started another one
    if not witness.stops_or_ends(front):
        yield "without a daemon, the program goes on"
    person.rootsd("up")
    if engine is WallEngine.STATIC or witness.has_ended:
        return
    _decide(person, DecisionVerb.APPROVE, CHANGING)
    if not witness.reads_or_ends(frozenset({KEPT, CHANGING})):
        yield "the warden does not come back to the daemon"
    _decide(person, DecisionVerb.DENY, CHANGING)
    if not witness.reads_or_ends(frozenset({KEPT})):
        yield "after a new daemon, a denial does not reach the program"


@contextmanager
def _keeper(
    person: Person, engine: WallEngine, moment: Moment, leak: Leak
) -> Iterator[subprocess.Popen[str]]:
    words = [*flags(engine), "--all", "--"]
    names = (KEPT, CHANGING, PENDING)
    spec = {
        "command": [
            sys.executable, "-c", _FRONT.replace("LEAK", leak), *words,
            sys.executable, "-I", "-S", "-c", _PROBE, str(person.parent), *names,
        ],
        "victim": moment.victim,
        "start": moment.start,
        "delay": moment.delay,
        "daemon": control.call(StatusQuery())["daemon"]["pid"],
    }  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _KEEPER, json.dumps(spec)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=person.environment(), cwd=person.parent,
    ) as keeper:  # fmt: skip
        yield keeper


class _Witness:
    """What the program inside reads, as it prints it."""

    def __init__(self, keeper: subprocess.Popen[str], patience: float) -> None:
        assert keeper.stdout is not None
        self._output = keeper.stdout.fileno()
        self._patience = patience
        self._lines = LineReader(1 << 16)
        self._now: frozenset[str] | None = None
        self.seen: set[str] = set()
        self.has_ended = False
        """Whether the program and everything that it started have ended."""

    def reads_or_ends(self, wanted: frozenset[str]) -> bool:
        """Return whether the program soon reads exactly the `wanted` projects, or ends."""
        end = time.monotonic() + self._patience
        while not self.has_ended and self._now != wanted:
            if not self._take(end):
                return False
        return True

    def stops_or_ends(self, front: int) -> bool:
        """Return whether all programs below `front` soon stop, or end."""
        end = time.monotonic() + self._patience
        while not self.has_ended and programs_behind_wall(front) != {psutil.STATUS_STOPPED}:
            if time.monotonic() > end:
                return False
            self._take(min(end, time.monotonic() + _BETWEEN_LOOKS_S))
        return True

    def ends(self) -> bool:
        """Return whether the program and everything that it started end soon."""
        end = time.monotonic() + self._patience
        while not self.has_ended:
            if not self._take(end):
                return False
        return True

    def _take(self, end: float) -> bool:
        """Take a line, or the end, and return True. Return False if none comes before `end`."""
        while (line := self._lines.pop()) is None:
            if not select.select([self._output], [], [], max(end - time.monotonic(), 0))[0]:
                return False
            data = os.read(self._output, 1 << 16)
            if not data:
                self.has_ended = True
                return True
            self._lines.feed(data)
        self._now = frozenset(line.decode().split())
        self.seen |= self._now
        return True


def programs_behind_wall(front: int) -> set[str]:
    """Return the states of the programs in the wall of the process `front`."""
    found = set[str]()
    with suppress(psutil.NoSuchProcess):
        for waiter in psutil.Process(front).children():
            if waiter.name() == "rootsd-wall":
                found |= {program.status() for program in waiter.children(recursive=True)}
    return found - {psutil.STATUS_ZOMBIE}  # one that ended just before: nobody waits for it now


@contextmanager
def _changes(person: Person) -> Iterator[None]:
    """Approve and deny a project again and again, as long as there is a daemon."""
    over = threading.Event()

    def change() -> None:
        with suppress(RootsdError, OSError):
            while not over.wait(_BETWEEN_CHANGES_S):
                _decide(person, DecisionVerb.APPROVE, CHANGING)
                _decide(person, DecisionVerb.DENY, CHANGING)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(HANG_GUARD_S)


def _decide(person: Person, verb: DecisionVerb, name: str) -> None:
    control.call(DecideRequest(verb, str(person.parent), (name,)))


def _end_children(keeper: subprocess.Popen[str]) -> None:
    """End what a planted fault has left, until the keeper ends, too.

    The keeper gets a process only when the parent of that has ended, which may be later.
    """
    children = f"/proc/{keeper.pid}/task/{keeper.pid}/children"
    end = time.monotonic() + HANG_GUARD_S
    while time.monotonic() < end:
        with suppress(OSError), open(children) as file:
            for pid in file.read().split():
                os.kill(int(pid), signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            keeper.wait(_BETWEEN_KILLS_S)
            return
