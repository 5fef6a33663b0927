"""Discovery in its own process, which compares its state with a fresh scan on request.

Run as `python -m support.discovery_process FAULT INDEX`. The first input line is a JSON list of
parents, each `[PATH, NESTED]`. Every other line is a command:

    look PATH     compare after the event for PATH has arrived
    sweep PATH    the same, after a periodic sweep
    stop -        end this discovery
    start -       start another one from the saved state and the trees in the file INDEX

Before `look` and `sweep`, the caller moves a repository to PATH in the last parent. The kernel
keeps the order of events, so discovery has then received all earlier events, too. Each answer is
one line: a JSON list of differences, empty if there are none.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

from msgspec.structs import replace

from rootsd.core.catalog import Catalog
from rootsd.core.inputs import Observation
from rootsd.core.model import (
    Identity,
    IncompleteReason,
    LapseReason,
    NestedPolicy,
    ObservedState,
    Parent,
    Presence,
    Project,
    ProjectKind,
)
from rootsd.core.paths import RefusedPlaces, ancestors
from rootsd.core.plan import plan
from rootsd.discovery import parent_tree
from rootsd.discovery.periodic import PollScheduler
from rootsd.discovery.service import Discovery
from rootsd.disk.identity import identify
from rootsd.disk.markers import BUILD_NAMES, SKIPPED_NAMES
from rootsd.disk.mounts import MountWatch, list_mounts, mount_points
from rootsd.watch.events import PostResolver, Watcher
from rootsd.watch.polling import PollingWatcher
from support.faulty_watchers import Fault, make_faulty_watcher
from support.system_parts import this_system

# How long a difference may last before it counts. If the state is correct, no time is needed. On a
# busy machine, the process gets only a part of this time.
PATIENCE_S = 20.0
_OF_IT_OURS = 0.2
# A guard against hangs only.
_HANG_S = 300.0
# With a planted fault, a difference or a hang is expected, so the waits are shorter.
_PATIENCE_WITH_A_FAULT_S = 4.0
_HANG_WITH_A_FAULT_S = 30.0
_A_WHILE_S = 6.0
_NEVER_S = 1e7
_REMEMBERED = 10_000
_BROKEN_OFF = IncompleteReason.NOT_CHECKED_OUT
_NOW = datetime(2026, 1, 1, tzinfo=UTC)

T = TypeVar("T")


class SteppedClock:
    """A clock that runs by itself and can be set forward."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


class ReportedState:
    """The state that discovery reported, folded as the daemon folds it."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._heard: deque[Observation] = deque(maxlen=_REMEMBERED)
        self._catalog = Catalog.of((), (), RefusedPlaces(b"/nobody"), 1)

    def report(self, observations: Sequence[Observation]) -> None:
        with self.changed:
            self._catalog = plan(self._catalog, observations, _NOW).catalog
            self._heard += observations
            self.changed.notify_all()

    def heard_of(self, path: bytes) -> list[str]:
        """Return the recent reports about `path`."""
        with self.changed:
            return [repr(told) for told in self._heard if told.path == path]

    def live(self) -> dict[bytes, ObservedState]:
        projects = self.projects().values()
        return {p.path: p.observed for p in projects if p.observed.presence is Presence.PRESENT}

    def projects(self) -> dict[bytes, Project]:
        with self.changed:
            return dict(self._catalog.projects)

    def wait_for(self, path: bytes, hang_s: float) -> None:
        with self.changed:
            if not self.changed.wait_for(lambda: path in self.live(), hang_s):
                raise AssertionError(f"never heard of {path!r}")

    def linger(self) -> None:
        """Wait for a report, or a short time."""
        with self.changed:
            self.changed.wait(0.05)


class SteppedDiscovery(Discovery):
    """Discovery that sweeps only on request, and can let time pass at once."""

    def __init__(
        self,
        watcher: Callable[[PostResolver], Watcher],
        known: ReportedState | None = None,
        index: Path | None = None,
    ) -> None:
        self.known = known or ReportedState()
        self._time = SteppedClock()
        dependencies = this_system(watcher=watcher, monotonic=self._time)
        super().__init__(
            report=self.known.report,
            on_status=lambda _status: None,
            on_death=lambda: None,
            dependencies=dependencies,
            index=index,
        )
        self._polls = PollScheduler(self._engine, self._time, roots_interval_s=_NEVER_S)

    def deaf_to_mounts(self) -> None:
        self._mounts = MountWatch(lambda: None)

    def run_down(self) -> None:
        """Let the time pass that candidates wait for."""
        end = time.monotonic() + _HANG_S
        while self._do(lambda: len(self._engine.candidates)):
            self._time.ahead += _A_WHILE_S
            # Due work runs after a command, so the second command finds it done.
            self._do(lambda: None)
            assert time.monotonic() < end, "a project stays being made"

    def sweep(self) -> None:
        """Sweep, as the periodic sweep does."""
        self._do(self._engine.sweep)

    def _do(self, action: Callable[[], T]) -> T:
        future: Future[T] = self._ask(action)
        return future.result(_HANG_S)


@dataclass(frozen=True)
class ScanComparison:
    """Discovery beside a fresh scan of the same parents.

    `whole` are the projects that both once reported as complete. Discovery remembers that, while a
    fresh scan may find a copy incomplete after a file was removed from it.
    """

    discovery: SteppedDiscovery
    parents: Sequence[Parent]
    patience_s: float
    hang_s: float
    whole: set[Identity]

    def differences(self, *, swept: bool) -> list[str]:
        """Return the differences that remain after the time limit."""
        end = time.monotonic() + self.patience_s
        ours = time.process_time() + self.patience_s * _OF_IT_OURS
        while True:
            self.discovery.run_down()
            found = list(self._compare(swept=swept))
            if not found:
                return []
            if time.monotonic() > end and time.process_time() > ours:
                return [line for path, how in found for line in self._explained(path, how)]
            self.discovery.known.linger()

    def _explained(self, path: bytes, how: str) -> Iterator[str]:
        """Return a difference with the reports on the path and the links and mounts above it."""
        yield f"{path!r}: {how}"
        yield from self.discovery.known.heard_of(path)
        for place in (path + b"/.git", path, *ancestors(path)):
            try:
                yield f"{os.lstat(place).st_mode:o} {os.access(place, os.R_OK)} {place!r}"
            except OSError as error:
                yield str(error)

    def _fresh(self) -> dict[bytes, ObservedState]:
        fresh = SteppedDiscovery(lambda _post: PollingWatcher())
        fresh.start(self.parents, {})
        fresh.scan(None).result(_HANG_S)
        fresh.run_down()
        fresh.stop()
        return fresh.known.live()

    def _compare(self, *, swept: bool) -> Iterator[tuple[bytes, str]]:
        live, fresh = self.discovery.known.live(), self._fresh()
        points = mount_points(list_mounts())
        for path in sorted(fresh.keys() - live.keys()):
            yield path, f"missed {fresh[path]}"
        for path in sorted(fresh.keys() & live.keys()):
            if (how := self._difference(live[path], fresh[path])) is not None:
                yield path, f"is {how}"
        for path in sorted(live.keys() - fresh.keys()):
            if _leads_elsewhere(path, live[path]):
                continue
            if not self._is_covered(path, fresh, points):
                yield path, f"still knows {live[path]}"
            elif swept and (how := _not_there(path, live[path])) is not None:
                yield path, f"after a sweep still knows it: {how}"

    def _difference(self, live: ObservedState, fresh: ObservedState) -> str | None:
        is_whole = live.incomplete is None
        if is_whole and live.identity in self.whole and fresh.incomplete is _BROKEN_OFF:
            fresh = replace(fresh, incomplete=None)
        how = _unlike(live, fresh)
        if is_whole and how is None and live.identity is not None:
            self.whole.add(live.identity)
        return how

    def _is_covered(
        self, path: bytes, fresh: dict[bytes, ObservedState], points: frozenset[bytes]
    ) -> bool:
        """Return whether a scan does not reach `path` although its state remains known."""
        tops = {parent.path for parent in self.parents}
        projects = self.discovery.known.projects()
        for above in (path, *ancestors(path)):
            if above in tops:
                return above == path or not os.access(above, os.R_OK)
            name = os.path.basename(above)
            if name in SKIPPED_NAMES | BUILD_NAMES or above in points:
                return True
            if above != path and (above in fresh or not os.access(above, os.R_OK)):
                return True
            # The project existed before the project around it. A scan cannot find that out.
            if above != path and above in projects and not os.access(above, os.X_OK):
                return True
        return False


def _unlike(live: ObservedState, fresh: ObservedState) -> str | None:
    if live.identity is None or not live.identity.same_as(fresh.identity):  # type: ignore[arg-type]
        return "another folder by now"
    if live.kind is not fresh.kind or live.main_checkout != fresh.main_checkout:
        return f"{live.kind} {live.main_checkout!r}, not {fresh.kind} {fresh.main_checkout!r}"
    if live.incomplete is not fresh.incomplete:
        return f"{live.incomplete}, not {fresh.incomplete}"
    return None if live.hazard is fresh.hazard else f"{live.hazard}, not {fresh.hazard}"


def _leads_elsewhere(path: bytes, live: ObservedState) -> bool:
    """Return whether a known link is above the path. Then it is neither proposed nor published."""
    is_known = live.hazard is LapseReason.RETARGETED
    return is_known and any(map(os.path.islink, ancestors(path)))


def _not_there(path: bytes, live: ObservedState) -> str | None:
    try:
        same = live.identity is not None and live.identity.same_as(identify(path))
    except OSError as error:
        return str(error)
    return None if same or live.kind is ProjectKind.URI else "another folder"


@dataclass
class DiscoveryRuns:
    """Several runs of discovery, each from the saved state of the one before."""

    parents: Sequence[Parent]
    fault: Fault
    index: Path
    known: ReportedState = field(default_factory=ReportedState)
    whole: set[Identity] = field(default_factory=set)

    def start(self) -> ScanComparison:
        discovery = SteppedDiscovery(make_faulty_watcher(self.fault), self.known, self.index)
        if self.fault is Fault.NO_MOUNTS:
            discovery.deaf_to_mounts()
        if self.fault is Fault.TRUSTS_THE_INDEX:
            patch.object(parent_tree, "changed_folders", return_value=[]).start()
        discovery.start(self.parents, self.known.projects())
        waits = (
            (PATIENCE_S, _HANG_S)
            if self.fault is Fault.NONE
            else (_PATIENCE_WITH_A_FAULT_S, _HANG_WITH_A_FAULT_S)
        )
        return ScanComparison(discovery, self.parents, *waits, self.whole)


def main() -> None:
    parents = [
        Parent(os.fsencode(path), depth=3, nested=NestedPolicy(nested))
        for path, nested in json.loads(sys.stdin.readline())
    ]
    lives = DiscoveryRuns(parents, Fault(sys.argv[1]), Path(sys.argv[2]))
    now = lives.start()
    now.discovery.scan(None).result(_HANG_S)
    _answer([])
    for line in sys.stdin:
        order, path = line.rstrip("\n").split(" ", 1)
        match order:
            case "stop":
                now.discovery.stop()
                _answer([])
            case "start":
                now = lives.start()
                _answer([])
            case _:
                _answer(_differences(now, os.fsencode(path), swept=order == "sweep"))
    now.discovery.stop()


def _differences(now: ScanComparison, path: bytes, *, swept: bool) -> list[str]:
    now.discovery.known.wait_for(path, now.hang_s)
    now.discovery.run_down()
    if swept:
        now.discovery.sweep()
    return now.differences(swept=swept)


def _answer(found: list[str]) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
