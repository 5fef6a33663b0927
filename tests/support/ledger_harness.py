"""A ledger with fakes: a store that may refuse, folders that may be replaced, and a clock that a
test moves.

The projects are those of `support.sample_decisions`, by their numbers.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from datetime import datetime, timedelta

import anyio
from anyio import from_thread
from anyio.from_thread import start_blocking_portal
from msgspec.structs import replace

from rootsd.core.catalog import Catalog
from rootsd.core.changes import (
    AuditNote,
    AuditRecord,
    Change,
    ProjectChange,
    RuleChange,
    SettingChange,
)
from rootsd.core.errors import RootsdError
from rootsd.core.expiry import ClockReading
from rootsd.core.inputs import (
    AddRule,
    Approve,
    Deny,
    Forget,
    Input,
    Observation,
    Order,
    ProjectGone,
    ProjectObserved,
)
from rootsd.core.model import (
    Identity,
    Lapse,
    LapseReason,
    Presence,
    Project,
    ProjectKind,
    Rule,
    Ruling,
    SessionKey,
    Verdict,
)
from rootsd.core.paths import RefusedPlaces
from rootsd.state.expiry import ExpiryTracker
from rootsd.state.ledger import Ledger
from support.core_samples import NOTHING_KNOWN, NOW
from support.sample_decisions import NOON as NOON  # noqa: PLC0414 - handed on to the tests
from support.sample_decisions import PERSON, identity, project

HANG_GUARD = 60
HOME = b"/home/ann"
SOURCES = HOME + b"/src"
PLACES = RefusedPlaces(HOME, (HOME + b"/.local/state/rootsd",))


class DiskRefuses(RootsdError):
    """The error that FakeSaver raises."""


class FakeSaver:
    """Keeps the changes, refuses them if told to, and can be stopped in the middle."""

    def __init__(self, projects: Sequence[Project] = (), rules: Sequence[Rule] = ()) -> None:
        self.projects = {p.path: p for p in projects}
        self.rules = {rule.number: rule for rule in rules}
        self.batches: list[tuple[Change | AuditRecord, ...]] = []
        self.refusing = False
        self.look_around: Callable[[], None] = lambda: None
        self._may_go_on = threading.Event()
        self._may_go_on.set()
        self._busy = anyio.Event()

    def append(self, changes: Sequence[Change | AuditRecord], at: datetime) -> None:
        from_thread.run_sync(self._enter)
        assert self._may_go_on.wait(HANG_GUARD), "nobody let the saver go on"
        if self.refusing:
            raise DiskRefuses("no room left")
        assert at.utcoffset() is not None
        self.batches.append(tuple(changes))
        for change in changes:
            self._take_in(change)

    def _take_in(self, change: Change | AuditRecord) -> None:
        match change:
            case ProjectChange(path=path, after=after):
                self.projects.pop(path, None)
                if after is not None:
                    self.projects[path] = after
            case RuleChange(number=number, after=rule):
                self.rules.pop(number, None)
                if rule is not None:
                    self.rules[number] = rule
            case SettingChange() | AuditNote():
                pass

    def _enter(self) -> None:
        self.look_around()
        self._busy.set()

    @contextmanager
    def held_up(self) -> Iterator[anyio.Event]:
        """Block every write until the end of the block. The event is set when one has begun."""
        self._busy = anyio.Event()
        self._may_go_on.clear()
        try:
            yield self._busy
        finally:
            self._may_go_on.set()


class FakeVerifier:
    """A table of the directory at each path. Without projects, it trusts everything."""

    def __init__(self, projects: Sequence[Project] | None = None) -> None:
        self.is_trusting = projects is None
        known = projects or ()
        self.folders = {p.path: p.observed.identity for p in known if p.observed.identity}
        self.says: list[Observation] = []
        self.asked: list[Mapping[bytes, Identity]] = []

    async def verify_more(self, roots: Mapping[bytes, Identity]) -> Sequence[Observation]:
        return self._look(roots)

    async def verify(self, roots: Mapping[bytes, Identity]) -> Sequence[Observation]:
        self.asked.append(roots)
        return self._look(roots)

    def _look(self, roots: Mapping[bytes, Identity]) -> Sequence[Observation]:
        observations, self.says = self.says, []
        for path, approved in roots.items():
            now = approved if self.is_trusting else self.folders.get(path)
            if now is None:
                observations.append(ProjectGone(path))
            elif not approved.same_as(now):
                observations.append(ProjectObserved(path, ProjectKind.GIT, now))
        return observations


class FakeClock:
    """Both clocks, which advance only on request, and an alarm that fires by itself."""

    def __init__(self) -> None:
        self.wall = NOON
        self.boot = "this start"
        self.since_boot_ns = 10**12
        self.alarm: int | None = None
        self._changed = anyio.Event()

    def now(self) -> ClockReading:
        return ClockReading(self.wall, self.boot, self.since_boot_ns)

    def set(self, since_boot_ns: int | None) -> None:
        self.alarm = since_boot_ns
        self._change()

    async def wait(self) -> None:
        while self.alarm is None or self.since_boot_ns < self.alarm:
            await self._changed.wait()
        self.alarm = None

    def pass_time(self, seconds: int) -> None:
        """Advance both clocks, as while the machine runs or sleeps."""
        self.wall += timedelta(seconds=seconds)
        self.since_boot_ns += seconds * 10**9
        self._change()

    def boot_again(self, seconds: int) -> None:
        """Reboot after `seconds` without power."""
        self.wall += timedelta(seconds=seconds)
        self.boot, self.since_boot_ns = "another start", 10**9

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def no_expiries() -> ExpiryTracker:
    """Return an expiry clock for a ledger without ends of approvals."""
    clock = FakeClock()
    return ExpiryTracker(clock.now, clock)


class LedgerHarness:
    """A ledger with its fakes."""

    def __init__(self, *projects: Project, rules: Sequence[Rule] = ()) -> None:
        self.saver = FakeSaver(projects, rules)
        self.disk = FakeVerifier(projects)
        next_rule = max((rule.number for rule in rules), default=0) + 1
        catalog = Catalog.of(projects, rules, PLACES, next_rule)
        self.clock = FakeClock()
        self.ledger = Ledger(
            catalog,
            self.saver,
            self.disk,
            expiries=ExpiryTracker(self.clock.now, self.clock),
            now=lambda: NOON,
        )

    def published(self) -> set[bytes]:
        """Return the published paths, without verification."""
        return set(self.ledger.catalog.roots)

    async def told(self) -> set[bytes]:
        """Return the paths that a client would get now."""
        with anyio.fail_after(HANG_GUARD):
            return {root.path for root in (await self.ledger.current()).roots}

    def verdict(self, path: bytes) -> Verdict:
        """Return the verdict on the project at `path`."""
        return self.ledger.catalog.judgments[path].verdict

    def is_kept(self) -> bool:
        """Return whether the store holds exactly the ledger's state in memory."""
        catalog = self.ledger.catalog
        rules = tuple(self.saver.rules[number] for number in sorted(self.saver.rules))
        return dict(catalog.projects) == self.saver.projects and catalog.rules == rules


class TrustingVerifier:
    """Finds every folder as it was, even one without an identity of its own."""

    async def verify(self, _: Mapping[bytes, Identity]) -> Sequence[Observation]:
        return ()

    verify_more = verify


class LedgerWorld:
    """A ledger that carries out inputs for `support.approval_machine`, and keeps each change."""

    def __init__(self) -> None:
        self.saver = FakeSaver()
        self._portal_ends = ExitStack()
        self._portal = self._portal_ends.enter_context(start_blocking_portal())
        self._ledger = Ledger(
            NOTHING_KNOWN, self.saver, TrustingVerifier(), expiries=no_expiries(), now=lambda: NOW
        )

    @property
    def catalog(self) -> Catalog:
        return self._ledger.catalog

    def take(self, inputs: Sequence[Input]) -> Sequence[Change]:
        written = len(self.saver.batches)
        self._portal.call(self._give, inputs)
        assert dict(self.catalog.projects) == self.saver.projects
        assert {rule.number: rule for rule in self.catalog.rules} == self.saver.rules
        told = {root.path for root in self._portal.call(self._ledger.current).roots}
        assert told == set(self.catalog.roots)
        batches = self.saver.batches[written:]
        return [each for batch in batches for each in batch if not isinstance(each, AuditRecord)]

    async def _give(self, inputs: Sequence[Input]) -> None:
        observations = [each for each in inputs if isinstance(each, Observation)]
        if len(observations) == len(inputs):
            await self._ledger.observe(observations)
            await self._ledger.save_now()
        else:
            await self._ledger.execute([each for each in inputs if isinstance(each, Order)])

    def close(self) -> None:
        self._portal_ends.close()


def path(number: int) -> bytes:
    """Return the path of project `number`."""
    return project(number).path


def at(where: bytes, known: Project) -> Project:
    """Return `known`, moved to `where`."""
    return replace(known, path=where)


def sight(number: int, *, now: int | None = None) -> ProjectObserved:
    """Return the observation of project `number`; `now` is the number of the directory there."""
    return ProjectObserved(path(number), ProjectKind.GIT, identity(number if now is None else now))


def approve(number: int, *, name: str | None = None) -> Approve:
    """Return the order by which a person approves project `number` as first seen."""
    return Approve(path(number), identity(number), PERSON, name)


def deny(number: int) -> Deny:
    """Return the order by which a person denies project `number`."""
    return Deny(path(number), PERSON)


def forget(number: int) -> Forget:
    """Return the order by which a person forgets the decision on project `number`."""
    return Forget(path(number), PERSON)


def add_rule(verdict: Verdict, pattern: bytes = SOURCES) -> AddRule:
    """Return the order by which a person adds a rule for the sources."""
    return AddRule(pattern, verdict, PERSON)


def rule(verdict: Verdict, pattern: bytes = SOURCES, number: int = 1) -> Rule:
    """Return a rule for the sources."""
    return Rule(number, pattern, verdict, PERSON, NOON)


def missing(known: Project) -> Project:
    """Return `known`, gone from the disk."""
    gone = replace(known.observed, presence=Presence.MISSING, absent_since=NOON)
    return replace(known, observed=gone)


def lapsed(known: Project) -> Project:
    """Return `known`, replaced after its approval."""
    return replace(known, ruling=Ruling(lapse=Lapse(LapseReason.REPLACED, NOON)))


@asynccontextmanager
async def saving_again(ledger: Ledger) -> AsyncIterator[None]:
    """Run the ledger's task that retries the disk, without pauses."""
    async with anyio.create_task_group() as group:
        group.start_soon(ledger.keep_saving, (0.0,))
        yield
        group.cancel_scope.cancel()


async def until_kept(world: LedgerHarness) -> None:
    """Wait until no change or grant waits for the disk.

    `unsaved` counts only what waits because of a refused write. A grant that was deferred also
    waits after another write was accepted, and so does what its retry changes.
    """
    with anyio.fail_after(HANG_GUARD):
        while world.ledger._queue or world.ledger._deferred:
            await anyio.lowlevel.checkpoint()


class FakeSessions:
    """Sessions that run until they are in `ended`."""

    def __init__(self) -> None:
        self.ended: set[SessionKey] = set()

    async def track(self, key: SessionKey) -> bool:
        return not self.is_over(key)

    def is_over(self, key: SessionKey) -> bool:
        return key in self.ended
