"""The single writer: decides, saves, publishes.

Everything that changes the catalogue comes through two doors. `observe` takes what the disk
shows and never refuses; `obey` takes orders and may. What only narrows takes effect before it is
saved, and holds in memory where the disk refuses it; what approves anything, an order or the
grant of a rule, is saved before it takes effect. So the published set is the catalogue's at every
moment, a failed write publishes nothing new, and it gives nothing back. Notices are never sent
from here: whoever publishes waits until the revision has passed the one it knows, so no path can
forget to tell.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Protocol, TypeVar

import anyio
from anyio import lowlevel, to_thread

from rootsd.app.deciding.effects import granted_in, granting, only_narrows, without_grants
from rootsd.app.deciding.expiries import Expiries
from rootsd.core.catalog import Catalog
from rootsd.core.changes import Change, FocusChange, Note
from rootsd.core.errors import Busy, RootsdError
from rootsd.core.focus import NO_FOCUS, Focus
from rootsd.core.inputs import Approve, Fact, Input, Observation, Order, Restore, Unsafe
from rootsd.core.model import Identity, LapseReason, Project, Published, Root
from rootsd.core.paths import RefusedPlaces
from rootsd.core.plan import Plan, plan

log = logging.getLogger(__name__)
T = TypeVar("T")
_BY_NAME = attrgetter("name")

RETRY_SECONDS = (1.0, 2.0, 5.0, 15.0, 60.0)


class Overtaken(Busy):
    """Somebody decided about one of the projects meanwhile; what was to be done may differ now."""


class Saver(Protocol):
    """The store, as the ledger needs it; called in a worker thread."""

    def append(self, changes: Sequence[Change | Note], at: datetime) -> object:
        """Make `changes` durable, all or none. Raises RootsdError where the disk refuses."""


class Verifier(Protocol):
    """Looks at folders; reports those that are not what was approved, or is about to be. It waits
    for no file system that does not answer: what lies there is out of reach."""

    async def verify(self, roots: Mapping[bytes, Identity]) -> Sequence[Observation]:
        """What is to be known about `roots` before anybody is told of them; empty if all hold."""

    async def verify_more(self, roots: Mapping[bytes, Identity]) -> Sequence[Observation]:
        """The same of some that are about to be approved, beside those that are published."""


class Ledger:
    """Holds the catalogue and the published set; see the module's text."""

    def __init__(
        self,
        catalog: Catalog,
        saver: Saver,
        verifier: Verifier,
        *,
        expiries: Expiries,
        now: Callable[[], datetime],
        first_revision: int = 1,
        focus: Focus = NO_FOCUS,
    ) -> None:
        self._catalog = catalog
        self._saver = saver
        self._verifier = verifier
        self.expiries = expiries
        self._now = now
        self._lock = anyio.Lock()
        self._published = Published(first_revision, (), focus)
        self._changed = anyio.Event()
        self._adopted = anyio.Event()
        self._unsaved: list[Change] = []
        self._owed: set[bytes] = set()
        self._needs_saving = anyio.Event()
        self._saved = anyio.Event()
        expiries.follow(catalog)
        if catalog.roots:
            self._publish(catalog.roots, focus)

    @property
    def catalog(self) -> Catalog:
        """The catalogue as it stands; its roots are the published set."""
        return self._catalog

    @property
    def revision(self) -> int:
        """The number of the published set."""
        return self._published.revision

    @property
    def focus(self) -> Focus:
        """What sessions without a scope of their own are narrowed to."""
        return self._published.focus

    @property
    def unsaved(self) -> int:
        """How much waits for the disk, changes and grants; 0 where all is durable."""
        return len(self._unsaved) + len(self._owed)

    async def current(self) -> Published:
        """The published set, each root's folder and time verified at this moment."""
        while True:
            published = self._published
            seen = await self._verifier.verify(self._identities())
            before = self._catalog
            if doubts := [*self.expiries.ended(before), *seen]:
                await self.observe(doubts)
            # Others may have published meanwhile: all is verified again, until a look tells
            # nothing that is not known.
            if self._catalog is before and self._published is published:
                return published

    async def keep_expiring(self) -> None:
        """End what has its time, when that is over. Runs as long as the daemon does."""

        async def look() -> None:
            await self.current()
            self.expiries.follow(self._catalog)

        await self.expiries.keep(look)

    async def wait_past(self, revision: int) -> Published:
        """Wait until the published set is newer than `revision`, then return it verified."""
        await self.news_past(revision)
        return await self.current()

    async def news_past(self, revision: int) -> Published:
        """Wait until the published set is newer than `revision`. Not verified: it serves to say
        that something changed, and to no answer."""
        while self._published.revision <= revision:
            await self._changed.wait()
        return self._published

    async def another(self, catalog: Catalog) -> Catalog:
        """Wait until the catalogue is another than `catalog`, whether what is published changed or
        not; steps may be missed."""
        while self._catalog is catalog:
            await self._adopted.wait()
        return self._catalog

    async def observe(self, observations: Iterable[Fact]) -> None:
        """Take in what the disk shows, or what has ended."""
        async with self._lock:
            with anyio.CancelScope(shield=True):
                await self._observe(observations)

    async def obey(self, orders: Sequence[Order], *, seen: Iterable[Project] = ()) -> Plan:
        """Carry out orders, all or none; what is to be approved is verified first.

        `seen` are projects as they were when the orders were chosen. Raises Overtaken where one
        of them was decided about since, OrderRefused, or what the store raised. Orders that only
        narrow are carried out even where the disk refuses: they hold in memory and are written
        as soon as the disk takes them. One that widens makes all of them wait for the disk.

        Whoever waits for news has had its turn when this returns: an order is not answered before
        the sessions have been told.
        """
        async with self._lock:
            with anyio.CancelScope(shield=True):
                made = await self._obey(orders, seen)
        # They were woken when it took effect, so they stand before us in the queue of the loop.
        await lowlevel.cancel_shielded_checkpoint()
        return made

    async def note(self, note: Note) -> None:
        """Make durable what no catalogue holds. Raises what the store raised."""
        async with self._lock:
            with anyio.CancelScope(shield=True):
                await self._save((note,))

    async def refocus(self, note: FocusChange, change: Callable[[Focus], Focus]) -> None:
        """Change the focus, which is another published set to whoever it narrows. Raises what the
        store raised, and then the focus is what it was."""
        async with self._lock:
            with anyio.CancelScope(shield=True):
                await self._save((note,))
                self._publish(self._catalog.roots, change(self._published.focus))
        await lowlevel.cancel_shielded_checkpoint()  # as in `obey`

    async def set_places(self, places: RefusedPlaces) -> None:
        """Refuse these places from now on; what was approved in one of them lapses."""
        async with self._lock:
            with anyio.CancelScope(shield=True):
                self._catalog = replace(self._catalog, places=places)
                await self._observe(
                    Unsafe(project.path, LapseReason.REFUSED_PLACE)
                    for project in self._catalog.projects.values()
                    if project.ruling.approves and places.why_no_root(project.path)
                )

    def rehearse(self, inputs: Sequence[Input]) -> Plan:
        """What `obey` or `observe` would do; nothing is done. Raises OrderRefused."""
        return plan(self._catalog, inputs, self._now())

    def next_save(self) -> anyio.Event:
        """What is set as soon as the disk has taken something more."""
        return self._saved

    async def keep_saving(self, retry_seconds: Sequence[float] = RETRY_SECONDS) -> None:
        """Write what the disk refused, until it takes it. Runs as long as the daemon does.

        `retry_seconds` are the pauses before the disk is asked again, the last one for good.
        """
        attempt = 0
        while True:
            await self._needs_saving.wait()
            with anyio.move_on_after(retry_seconds[attempt]):
                await self._saved.wait()  # a later change may take the earlier ones along
            attempt = min(attempt + 1, len(retry_seconds) - 1)
            await self.save_now()
            if not self.unsaved:
                self._needs_saving = anyio.Event()
                attempt = 0

    async def save_now(self) -> None:
        """Ask the disk once more to take what it refused; `unsaved` tells what came of it."""
        async with self._lock:
            with anyio.CancelScope(shield=True):
                await self._retry()

    async def undisturbed(self, work: Callable[[], T]) -> T:
        """Run `work`, which uses the store, in a worker thread, while nothing else does. Orders
        and observations wait meanwhile, so it has to be short."""
        async with self._lock:
            with anyio.CancelScope(shield=True):
                done = await to_thread.run_sync(work)
        return done

    async def _retry(self) -> None:
        try:
            await self._save(())
        except RootsdError:
            return
        owed, self._owed = self._owed, set()
        await self._hold(granting(self._catalog, owed, self._now()))

    async def _obey(self, orders: Sequence[Order], seen: Iterable[Project]) -> Plan:
        if any(_is_overtaken(project, self._catalog) for project in seen):
            raise Overtaken("somebody else decided about this meanwhile", "rootsd ls")
        approvals = [order for order in orders if isinstance(order, Approve | Restore)]
        if approvals:
            chosen = {o.path: identity for o in approvals if (identity := _approved_in(o))}
            await self._observe(await self._verifier.verify_more(chosen))
        made = plan(self._catalog, orders, self._now())
        if only_narrows(self._catalog, made):
            return await self._hold(made)
        await self._save(made.changes)
        self._adopt(made.catalog)
        return made

    async def _observe(self, observations: Iterable[Fact]) -> None:
        await self._hold(plan(self._catalog, observations, self._now()))

    async def _hold(self, made: Plan) -> Plan:
        """Let `made` take effect whatever the disk says, but for grants: those are saved first.

        Returns what did take effect.
        """
        if not made.changes:
            return made
        bare = without_grants(made)
        self._adopt(bare.catalog)
        try:
            await self._save(made.changes)
        except RootsdError as error:
            log.warning("the store refuses, so this holds in memory alone: %s", error)
            self._unsaved.extend(bare.changes)
            self._owed.update(granted_in(made))
            self._needs_saving.set()
            return bare
        self._adopt(made.catalog)
        return made

    async def _save(self, changes: Sequence[Change | Note]) -> None:
        waiting = [*self._unsaved, *changes]
        if waiting:
            await to_thread.run_sync(self._saver.append, waiting, self._now())
            self._unsaved.clear()
            self._saved.set()
            self._saved = anyio.Event()

    def _adopt(self, catalog: Catalog) -> None:
        """No await in here: catalogue and published set change as one."""
        before = self._catalog.roots
        self._catalog = catalog
        self.expiries.follow(catalog)
        self._adopted.set()
        self._adopted = anyio.Event()
        if catalog.roots != before:
            self._publish(catalog.roots, self._published.focus)

    def _publish(self, roots: Mapping[bytes, Root], focus: Focus) -> None:
        ordered = tuple(sorted(roots.values(), key=_BY_NAME))
        self._published = Published(self._published.revision + 1, ordered, focus)
        self._changed.set()
        self._changed = anyio.Event()

    def _identities(self) -> dict[bytes, Identity]:
        """The folders that are published, each with the identity that was approved."""
        projects = self._catalog.projects
        return {
            path: identity
            for path in self._catalog.roots
            if (identity := projects[path].sighting.identity) is not None
        }


def _approved_in(order: Approve | Restore) -> Identity | None:
    """The directory that the order approves, if it approves one."""
    if isinstance(order, Approve):
        return order.identity
    decision = order.ruling.decision
    return decision.identity if decision is not None else None


def _is_overtaken(seen: Project, catalog: Catalog) -> bool:
    """Whether somebody has decided about the project since it was `seen`.

    A lapse is nobody's decision; an approval runs into it by the identity it carries.
    """
    known = catalog.projects.get(seen.path)
    if known is None or known.ruling.decision == seen.ruling.decision:
        return False
    return known.ruling.lapse is None or known.ruling.lapse == seen.ruling.lapse
