"""Decide, save and publish, as the single writer of the catalog.

Who looks at folders for the ledger, before anything is told or approved.

Orders that were chosen by what somebody saw, when somebody else has decided since.

The single writer: decides, saves, publishes.

Everything that changes the catalog comes through two doors. `take_in` takes what the disk
shows and never refuses; `obey` takes orders and may. What only narrows takes effect before it is
saved, and holds in memory where the disk refuses it; what approves anything, an order or the
grant of a rule, is saved before it takes effect, and all that took effect earlier with it. So the
published set is the catalog's at every moment, a failed write publishes nothing new, and it
gives nothing back. Notices are never sent from here: whoever publishes waits until the revision
has passed the one it knows, so no path can forget to tell.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

import anyio
from anyio import lowlevel

from rootsd.core.catalog import Catalog, identities_behind
from rootsd.core.changes import AuditRecord, Change, FocusChange
from rootsd.core.errors import Busy, RootsdError
from rootsd.core.inputs import (
    Approve,
    Fact,
    Input,
    Observation,
    Order,
    ProjectObserved,
    ProjectUnsafe,
    Reinstate,
    Restore,
)
from rootsd.core.model import (
    NO_FOCUS,
    Focus,
    Identity,
    LapseReason,
    Project,
    PublishedRoot,
    PublishedSet,
)
from rootsd.core.paths import RefusedPlaces, ancestors
from rootsd.core.plan import Plan, plan
from rootsd.state.effects import granted_projects, only_narrows, plan_owed_grants
from rootsd.state.expiry import ExpiryTracker
from rootsd.state.write_behind import ChangeStore, WriteBehindQueue


class Verifier(Protocol):
    """Looks at folders; reports those that are not what was approved, or is about to be. It waits
    for no file system that does not answer: what lies there is out of reach."""

    async def verify(self, roots: Mapping[bytes, Identity]) -> Sequence[Observation]:
        """What is to be known about `roots` before anybody is told of them; empty if all hold."""

    async def verify_more(self, roots: Mapping[bytes, Identity]) -> Sequence[Observation]:
        """The same of some alone, published or about to be approved; the others stay known."""


class Conflict(Busy):
    """Somebody decided about one of the projects meanwhile; what was to be done may differ now."""


def refuse_conflicts(seen: Iterable[Project], catalog: Catalog) -> None:
    """Raise Overtaken where one of the projects was decided about since it was `seen`."""
    if any(_is_conflict(project, catalog) for project in seen):
        raise Conflict("somebody else decided about this meanwhile", "rootsd ls")


def _is_conflict(seen: Project, catalog: Catalog) -> bool:
    """A lapse is nobody's decision; an approval runs into it by the identity it carries."""
    known = catalog.projects.get(seen.path)
    if known is None or known.ruling.decision == seen.ruling.decision:
        return False
    return known.ruling.lapse is None or known.ruling.lapse == seen.ruling.lapse


log = logging.getLogger(__name__)
T = TypeVar("T")

RETRY_SECONDS = (1.0, 2.0, 5.0, 15.0, 60.0)
# What comes together is written together, and whoever asks meanwhile has the machine.
WRITE_DELAY_SECONDS = 0.005


class Ledger:
    """Holds the catalog and the published set; see the module's text."""

    def __init__(
        self,
        catalog: Catalog,
        saver: ChangeStore,
        verifier: Verifier,
        *,
        expiries: ExpiryTracker,
        now: Callable[[], datetime],
        first_revision: int = 1,
        focus: Focus = NO_FOCUS,
    ) -> None:
        self._catalog = catalog
        self._backlog = WriteBehindQueue(saver, now)
        self._verifier = verifier
        self.expiries = expiries
        self._now = now
        # Without a turn of the loop where nobody holds it: who looked may then conclude.
        self._lock = anyio.Lock(fast_acquire=True)
        self._published = PublishedSet(first_revision, (), focus)
        self._changed = anyio.Event()
        self._adopted = anyio.Event()
        self._owed: set[bytes] = set()
        self._needs_saving = anyio.Event()
        expiries.follow(catalog)
        if catalog.roots:
            self._publish(catalog.sorted_roots, focus)

    @property
    def catalog(self) -> Catalog:
        """The catalog as it stands; its roots are the published set."""
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
        """How much waits since the disk refused it, changes and grants."""
        return len(self._backlog) + len(self._owed) if self._backlog.is_refused else 0

    async def current(self) -> PublishedSet:
        """The published set, each root's folder and time verified at this moment.

        What the look finds wrong is out of the answer; it is written behind."""
        return await self._verified(lambda catalog: self._verifier.verify(catalog.identities))

    async def root_at(self, path: bytes) -> PublishedRoot | None:
        """Return the innermost published root at or above an absolute path, verified like
        `current`; the roots that have no say in it are not looked at. A root for one session alone
        is none here: nothing tells which session asks."""
        await self._verified(
            lambda catalog: self._verifier.verify_more(identities_behind(path, catalog))
        )
        roots = self._catalog.roots
        above = (roots[at] for at in (path, *ancestors(path)) if at in roots)
        return next((root for root in above if root.session is None), None)

    async def _verified(
        self, look: Callable[[Catalog], Awaitable[Sequence[Observation]]]
    ) -> PublishedSet:
        while True:
            published = self._published
            seen = await look(self._catalog)
            before = self._catalog
            if doubts := [*self.expiries.ended(before), *seen]:
                made = plan(before, doubts, self._now())
                alone = self._published is published and not self._lock.locked()
                if alone and made.immediate is made:
                    # Nobody has had a turn since the look: it holds for all that is left.
                    self._let_hold(made)
                    return self._published
                async with self._lock:
                    with anyio.CancelScope(shield=True):
                        if self._catalog is not before:  # another change came first
                            made = plan(self._catalog, doubts, self._now())
                        await self._hold(made)
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

    async def wait_past(self, revision: int) -> PublishedSet:
        """Wait until the published set is newer than `revision`, then return it verified."""
        await self.news_past(revision)
        return await self.current()

    async def news_past(self, revision: int) -> PublishedSet:
        """Wait until the published set is newer than `revision`. Not verified: it serves to say
        that something changed, and to no answer."""
        while self._published.revision <= revision:
            await self._changed.wait()
        return self._published

    async def another(self, catalog: Catalog) -> Catalog:
        """Wait until the catalog is another than `catalog`, whether what is published changed or
        not; steps may be missed."""
        while self._catalog is catalog:
            await self._adopted.wait()
        return self._catalog

    async def take_in(self, facts: Iterable[Fact]) -> None:
        """Let take effect what the disk shows, or what has ended. `keep_saving` writes it down,
        but a grant, which is saved first."""
        async with self._lock:
            with anyio.CancelScope(shield=True):
                await self._hold(plan(self._catalog, facts, self._now()))

    async def observe(self, facts: Iterable[Fact]) -> None:
        """As `take_in`, and wait until it is written down, or the disk refused it."""
        await self.take_in(facts)
        with anyio.CancelScope(shield=True):
            await self._write()

    async def obey(
        self, orders: Sequence[Order | ProjectObserved], *, seen: Iterable[Project] = ()
    ) -> Plan:
        """Carry out orders, all or none; what is to be approved is verified first. A folder that
        is not known yet is sighted before the order about it, and not published in between.

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
        with anyio.CancelScope(shield=True):
            await self._write()
        # They were woken when it took effect, so they stand before us in the queue of the loop.
        await lowlevel.cancel_shielded_checkpoint()
        return made

    async def note(self, note: AuditRecord) -> None:
        """Make durable what no catalog holds. Raises what the store raised."""
        await self._backlog.write((note,))

    async def refocus(self, note: FocusChange, change: Callable[[Focus], Focus]) -> None:
        """Change the focus, which is another published set to whoever it narrows. Raises what the
        store raised, and then the focus is what it was."""
        async with self._lock:
            with anyio.CancelScope(shield=True):
                await self._backlog.write((note,))
                self._publish(self._catalog.sorted_roots, change(self._published.focus))
        await lowlevel.cancel_shielded_checkpoint()  # as in `obey`

    async def set_places(self, places: RefusedPlaces) -> None:
        """Refuse these places from now on; what was approved in one of them lapses."""
        async with self._lock:
            with anyio.CancelScope(shield=True):
                self._adopt(self._catalog.with_places(places))
                refused = [
                    ProjectUnsafe(project.path, LapseReason.REFUSED_PLACE)
                    for project in self._catalog.projects.values()
                    if project.ruling.approves and places.why_no_root(project.path)
                ]
                await self._hold(plan(self._catalog, refused, self._now()))
        with anyio.CancelScope(shield=True):
            await self._write()
        await self.current()  # which knows them under other names as well

    def rehearse(self, inputs: Sequence[Input]) -> Plan:
        """What `obey` or `observe` would do; nothing is done. Raises OrderRefused."""
        return plan(self._catalog, inputs, self._now())

    def next_save(self) -> anyio.Event:
        """What is set as soon as the disk has taken something more."""
        return self._backlog.next_save()

    async def keep_saving(self, retry_seconds: Sequence[float] = RETRY_SECONDS) -> None:
        """Write what took effect, and what the disk refused until it takes it. Runs as long as the
        daemon does.

        `retry_seconds` are the pauses before the disk is asked again, the last one for good.
        """
        attempt = 0
        while True:
            await self._needs_saving.wait()
            if self._backlog.is_refused:
                pause, attempt = retry_seconds[attempt], min(attempt + 1, len(retry_seconds) - 1)
            else:
                pause = WRITE_DELAY_SECONDS
            with anyio.move_on_after(pause):
                await self.next_save().wait()  # a later change may take the earlier ones along
            await self.save_now()
            if not self._backlog.is_refused:
                attempt = 0
            if not self._backlog and not self._owed:
                self._needs_saving = anyio.Event()

    async def save_now(self) -> None:
        """Have the disk take what waits for it; `unsaved` tells what it refused."""
        with anyio.CancelScope(shield=True):
            await self._write()
            if self._owed and not self._backlog:
                async with self._lock:
                    owed, self._owed = self._owed, set()
                    await self._hold(plan_owed_grants(self._catalog, owed, self._now()))

    async def undisturbed(self, work: Callable[[], T]) -> T:
        """Run `work`, which uses the store, in a worker thread, while nothing else does: all that
        took effect is there, but what the disk refused. What is to be written waits meanwhile, so
        it has to be short."""
        if not self._backlog.is_refused:
            await self._write()
        return await self._backlog.undisturbed(work)

    async def _obey(
        self, orders: Sequence[Order | ProjectObserved], seen: Iterable[Project]
    ) -> Plan:
        refuse_conflicts(seen, self._catalog)
        approvals = [order for order in orders if isinstance(order, Approve | Reinstate | Restore)]
        if approvals:
            chosen = {o.path: identity for o in approvals if (identity := _approved_in(o))}
            confirmed = (o.worktrees for o in approvals if isinstance(o, Approve))
            chosen |= {each.path: each.identity for trees in confirmed for each in trees}
            seen_now = await self._verifier.verify_more(chosen)
            if seen_now:
                await self._hold(plan(self._catalog, seen_now, self._now()))
        made = plan(self._catalog, orders, self._now())
        if only_narrows(self._catalog, made):
            return await self._hold(made)
        await self._backlog.write(made.changes)
        self._adopt(made.catalog)
        return made

    async def _hold(self, made: Plan) -> Plan:
        """Let `made` take effect whatever the disk says, but for grants: those are saved first.

        Returns what did take effect.
        """
        bare = made.immediate
        if bare is made:
            self._let_hold(made)
            return made
        self._adopt(bare.catalog)
        try:
            await self._backlog.write(made.changes)
        except RootsdError as error:
            log.warning("the store refuses, so this is not granted yet: %s", error)
            self._owed.update(granted_projects(made))
            self._wait_for_disk(bare.changes)
            return bare
        self._adopt(made.catalog)
        return made

    def _let_hold(self, made: Plan) -> None:
        """Let what approves nothing take effect. No await in here."""
        if made.changes:
            self._adopt(made.catalog)
            self._wait_for_disk(made.changes)

    def _wait_for_disk(self, changes: Sequence[Change]) -> None:
        self._backlog.put(changes)
        self._needs_saving.set()

    async def _write(self) -> None:
        try:
            await self._backlog.write()
        except RootsdError as error:
            log.warning("the store refuses, so this holds in memory alone: %s", error)

    def _adopt(self, catalog: Catalog) -> None:
        """No await in here: catalog and published set change as one."""
        before = self._catalog.roots
        self._catalog = catalog
        self.expiries.follow(catalog)
        self._adopted.set()
        self._adopted = anyio.Event()
        if catalog.roots != before:
            self._publish(catalog.sorted_roots, self._published.focus)

    def _publish(self, roots: tuple[PublishedRoot, ...], focus: Focus) -> None:
        self._published = PublishedSet(self._published.revision + 1, roots, focus)
        self._changed.set()
        self._changed = anyio.Event()


def _approved_in(order: Approve | Reinstate | Restore) -> Identity | None:
    """The directory that the order approves, if it approves one."""
    match order:
        case Approve(identity=identity) | Reinstate(approval=Approve(identity=identity)):
            return identity
        case Restore(ruling=ruling):
            return ruling.decision.identity if ruling.decision is not None else None
