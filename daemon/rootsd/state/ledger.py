"""Decide, save and publish: the ledger is the single writer of the catalog.

The catalog holds every project with its decision. The published set holds the roots that clients
may get. The ledger keeps both in memory, changes them together, and has each change written to the
store. Everything that changes the catalog goes through one of two methods:

* `apply_events` takes events: observations of the disk, and approvals that ended. It cannot
refuse. * `execute` takes orders, which are a person's decisions. It applies all orders of a call
or none.

When does a change take effect, and when is it saved? A change that narrows the published set takes
effect at once. It is saved afterwards, and it stays in force in memory if the disk refuses it. A
change that widens the published set is saved before it takes effect. Such a change is an order
that approves something, or the grant of a rule. Everything that took effect earlier is saved with
it. Three properties follow:

* The published set always agrees with the catalog.
* A failed write never publishes anything new.
* A failed write never brings back a root that was taken away.

How is an answer verified? `current` has the folder of each root compared with the approved one
before it returns the set (`Verifier`). A root whose folder was replaced is removed from the set,
so it is not in the answer. Other tasks may publish in the meantime, so the ledger verifies again
until it finds nothing new.

How do sessions learn of changes? The ledger sends no notifications. A session waits in
`wait_for_revision_past` until the revision is newer than the one that it sent. So no code path can
forget to notify.

How are conflicts detected? A caller passes the projects as they were when a person chose the
orders. If another decision about one of them came in between, `execute` raises `Conflict`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

import anyio
from anyio import lowlevel

from rootsd.core.catalog import Catalog, identities_behind
from rootsd.core.changes import AuditRecord, Change, SettingChange
from rootsd.core.errors import Busy, RootsdError
from rootsd.core.inputs import (
    Approve,
    Input,
    InputEvent,
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
from rootsd.core.policy import MachinePolicy
from rootsd.core.shared_git import shared_git
from rootsd.state.effects import (
    grantable_projects,
    granted_projects,
    only_grants,
    only_narrows,
    plan_deferred_grants,
    policy_grants_that_ended,
)
from rootsd.state.expiry import ExpiryTracker
from rootsd.state.write_behind import ChangeStore, WriteBehindQueue


class Verifier(Protocol):
    """The interface to the code that compares folders with the approved identities.

    It reports the folders that differ. It does not wait for a file system that does not answer. It
    reports the roots there as unreachable.
    """

    async def verify(self, roots: Mapping[bytes, Identity]) -> Sequence[Observation]:
        """Verify all published roots, and return the observations that contradict them."""

    async def verify_more(self, roots: Mapping[bytes, Identity]) -> Sequence[Observation]:
        """Verify some roots, which are published or about to be approved.

        The verifier keeps what it knows about all other roots.
        """


class Conflict(Busy):
    """There is a newer decision about one of the projects, so the order may be out of date."""


def refuse_conflicts(seen: Iterable[Project], catalog: Catalog) -> None:
    """Raise Conflict if one of the projects was decided about since it was `seen`."""
    if any(_is_conflict(project, catalog) for project in seen):
        raise Conflict("another command decided about this in the meantime", "rootsd ls")


def _is_conflict(seen: Project, catalog: Catalog) -> bool:
    """Return whether a person has decided about the project since it was `seen`.

    A lapse is not a person's decision. An approval of a lapsed project is refused later, because
    of the identity that it carries.
    """
    known = catalog.projects.get(seen.path)
    if known is None or known.ruling.decision == seen.ruling.decision:
        return False
    return known.ruling.lapse is None or known.ruling.lapse == seen.ruling.lapse


CheckPlan = Callable[[Catalog, Plan], None]
"""A check of a plan before it takes effect. It gets the catalog before the plan, and may raise."""


def _accept(_before: Catalog, _made: Plan) -> None:
    pass


log = logging.getLogger(__name__)
T = TypeVar("T")

RETRY_SECONDS = (1.0, 2.0, 5.0, 15.0, 60.0)
# Changes within this time are written together.
WRITE_DELAY_SECONDS = 0.005


class Ledger:
    """The catalog and the published set, with all operations that change them."""

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
        self._queue = WriteBehindQueue(saver, now)
        self._verifier = verifier
        self.expiries = expiries
        self._now = now
        # `fast_acquire`: if the lock is free, acquire it without yielding, so that a check made
        # just before still holds.
        self._lock = anyio.Lock(fast_acquire=True)
        self._published = PublishedSet(first_revision, (), focus)
        self._changed = anyio.Event()
        self._catalog_changed = anyio.Event()
        self._deferred: set[bytes] = set()
        self._needs_saving = anyio.Event()
        expiries.follow(catalog)
        if catalog.roots:
            self._publish(catalog.sorted_roots, focus)

    @property
    def catalog(self) -> Catalog:
        """The current catalog. Its roots are the published set."""
        return self._catalog

    @property
    def revision(self) -> int:
        """The revision of the published set."""
        return self._published.revision

    @property
    def focus(self) -> Focus:
        """The focus, which narrows the sessions that have no scope of their own."""
        return self._published.focus

    @property
    def unsaved(self) -> int:
        """The number of changes and grants that wait because the disk refused a write."""
        return len(self._queue) + len(self._deferred) if self._queue.is_refused else 0

    async def current(self) -> PublishedSet:
        """Return the published set after verifying the folder and the end time of each root.

        Roots that fail are not in the result. They are saved later, in the background.
        """
        return await self._verified(lambda catalog: self._verifier.verify(catalog.identities))

    async def root_at(self, path: bytes) -> PublishedRoot | None:
        """Return the innermost published root at or above the absolute `path`.

        Verify as `current` does, but only the roots that can affect the result. Ignore roots that
        are approved for one session, because the path does not say which session asks.
        """
        await self._verified(
            lambda catalog: self._verifier.verify_more(identities_behind(path, catalog))
        )
        roots = self._catalog.roots
        above = (roots[at] for at in (path, *ancestors(path)) if at in roots)
        return next((root for root in above if root.session is None), None)

    async def is_current(self, path: bytes) -> bool:
        """Return whether the project at `path` is known, and no other folder is there now."""
        project = self._catalog.projects.get(path)
        identity = None if project is None else project.observed.identity
        return identity is not None and not await self._verifier.verify_more({path: identity})

    async def _verified(
        self, verify: Callable[[Catalog], Awaitable[Sequence[Observation]]]
    ) -> PublishedSet:
        while True:
            published = self._published
            seen = await verify(self._catalog)
            before = self._catalog
            if contradictions := [*self.expiries.ended(before), *seen]:
                made = plan(before, contradictions, self._now())
                alone = self._published is published and not self._lock.locked()
                if alone and made.immediate is made:
                    # No other task has published in the meantime, so all other roots still hold.
                    self._apply_now(made)
                    return self._published
                async with self._lock:
                    with anyio.CancelScope(shield=True):
                        if self._catalog is not before:  # another change came first
                            made = plan(self._catalog, contradictions, self._now())
                        await self._apply(made)
            # Other tasks may have published in the meantime. Verify again until nothing is new.
            if self._catalog is before and self._published is published:
                return published

    async def keep_expiring(self) -> None:
        """End approvals when their time is over, for as long as the daemon runs."""

        async def on_alarm() -> None:
            await self.current()
            self.expiries.follow(self._catalog)

        await self.expiries.keep(on_alarm)

    async def wait_for_revision_past(self, revision: int) -> PublishedSet:
        """Wait until the published set is newer than `revision`, and return it.

        The set is not verified. Use it to detect changes, never for an answer.
        """
        while self._published.revision <= revision:
            await self._changed.wait()
        return self._published

    async def wait_for_change(self, catalog: Catalog) -> Catalog:
        """Wait until the catalog differs from `catalog`, and return the new one.

        The published set may be the same. Catalogs in between may be skipped.
        """
        while self._catalog is catalog:
            await self._catalog_changed.wait()
        return self._catalog

    async def wait_for_catalog_or_focus(self, catalog: Catalog, focus: Focus) -> None:
        """Wait until the catalog differs from `catalog`, or the focus from `focus`."""
        while self._catalog is catalog and self._published.focus is focus:
            await self._catalog_changed.wait()

    async def apply_events(self, events: Iterable[InputEvent]) -> None:
        """Apply observations of the disk, and approvals that ended.

        `keep_saving` writes them later. A grant is the exception, because it must be saved before
        it takes effect.
        """
        async with self._lock:
            with anyio.CancelScope(shield=True):
                await self._apply(plan(self._catalog, events, self._now()))

    async def observe(self, events: Iterable[InputEvent]) -> None:
        """Apply events as `apply_events` does, and wait until they are saved or refused."""
        await self.apply_events(events)
        with anyio.CancelScope(shield=True):
            await self._write()

    async def execute(
        self,
        orders: Sequence[Order | ProjectObserved],
        *,
        seen: Iterable[Project] = (),
        check: CheckPlan = _accept,
    ) -> Plan:
        """Carry out all orders or none of them.

        The folders of approvals are verified first. `orders` may begin with an observation of a
        folder that is not known yet. A rule does not publish that folder before the orders apply.

        `seen` holds projects as they were when the orders were chosen. Raises Conflict if there is
        a newer decision about one of them, OrderRefused, what `check` raises for the plan, or the
        error of the store.

        Orders that only narrow take effect even if the disk refuses them. They stay in memory and
        are written as soon as possible. If one of the orders widens, all of them wait for the
        disk.

        When this returns, every task that waits for a new revision has run. So sessions are
        notified before the order is answered.
        """
        async with self._lock:
            with anyio.CancelScope(shield=True):
                made = await self._execute(orders, seen, check)
        with anyio.CancelScope(shield=True):
            await self._write()
        # The change woke the waiting tasks, so they come before this one in the event loop's
        # queue.
        await lowlevel.cancel_shielded_checkpoint()
        return made

    async def note(self, *notes: AuditRecord) -> None:
        """Save audit records, which no catalog contains. Raises the error of the store."""
        await self._queue.write(notes)

    async def change_focus(self, note: SettingChange, change: Callable[[Focus], Focus]) -> None:
        """Save and apply a new focus, which changes what the sessions without a scope see.

        Raises the error of the store. The focus is then unchanged.
        """
        async with self._lock:
            with anyio.CancelScope(shield=True):
                await self._queue.write((note,))
                self._publish(self._catalog.sorted_roots, change(self._published.focus))
                self._wake_watchers()
        await lowlevel.cancel_shielded_checkpoint()  # as in `execute`

    async def set_places(self, places: RefusedPlaces) -> None:
        """Refuse these places from now on. Approvals of projects in them lapse."""
        async with self._lock:
            with anyio.CancelScope(shield=True):
                self._set_catalog(self._catalog.with_places(places))
                refused = [
                    ProjectUnsafe(project.path, LapseReason.REFUSED_PLACE)
                    for project in self._catalog.projects.values()
                    if project.ruling.approves and places.why_lapsing(project.path)
                ]
                await self._apply(plan(self._catalog, refused, self._now()))
        with anyio.CancelScope(shield=True):
            await self._write()
        await self.current()  # this also finds the places under other names

    async def set_policy(self, policy: MachinePolicy) -> None:
        """Decide under `policy` from now on.

        No decision changes. What the policy denies is withheld at once, and what it no longer
        denies is published again. Its approve rules grant only what is known and pending; new
        projects get their grant when they are observed.
        """
        async with self._lock:
            with anyio.CancelScope(shield=True):
                self._set_catalog(self._catalog.with_policy(policy))
                ended = policy_grants_that_ended(self._catalog)
                await self._apply(plan(self._catalog, ended, self._now()))
                grantable = grantable_projects(self._catalog)
                await self._apply(plan_deferred_grants(self._catalog, grantable, self._now()))
        with anyio.CancelScope(shield=True):
            await self._write()
        await self.current()

    def dry_run(self, inputs: Sequence[Input]) -> Plan:
        """Return the plan that `execute` or `observe` would apply, without applying it.

        Raises OrderRefused.
        """
        return plan(self._catalog, inputs, self._now())

    def next_save(self) -> anyio.Event:
        """Return an event that is set as soon as the disk has accepted another write."""
        return self._queue.next_save()

    async def keep_saving(self, retry_seconds: Sequence[float] = RETRY_SECONDS) -> None:
        """Write the changes that took effect, and retry those that the disk refused.

        Runs for as long as the daemon. `retry_seconds` are the pauses between retries. The last
        one repeats.
        """
        attempt = 0
        while True:
            await self._needs_saving.wait()
            if self._queue.is_refused:
                pause, attempt = retry_seconds[attempt], min(attempt + 1, len(retry_seconds) - 1)
            else:
                pause = WRITE_DELAY_SECONDS
            with anyio.move_on_after(pause):
                await self.next_save().wait()  # the write of a later change includes earlier ones
            await self.save_now()
            if not self._queue.is_refused:
                attempt = 0
            if not self._queue and not self._deferred:
                self._needs_saving = anyio.Event()

    async def save_now(self) -> None:
        """Write everything that waits. `unsaved` tells what the disk refused."""
        with anyio.CancelScope(shield=True):
            await self._write()
            if self._deferred and not self._queue:
                async with self._lock:
                    deferred, self._deferred = self._deferred, set()
                    await self._apply(plan_deferred_grants(self._catalog, deferred, self._now()))
                await self._write()  # what can take effect without the grants

    async def run_exclusively(self, work: Callable[[], T]) -> T:
        """Run `work`, which uses the store, in a worker thread while nothing else uses the store.

        Changes that took effect are saved first, unless the disk refuses them. Later writes wait
        for `work`, so it has to be short.
        """
        if not self._queue.is_refused:
            await self._write()
        return await self._queue.run_exclusively(work)

    async def _execute(
        self,
        orders: Sequence[Order | ProjectObserved],
        seen: Iterable[Project],
        check: CheckPlan,
    ) -> Plan:
        refuse_conflicts(seen, self._catalog)
        approvals = [order for order in orders if isinstance(order, Approve | Reinstate | Restore)]
        if approvals:
            chosen = {o.path: identity for o in approvals if (identity := _approved_identity(o))}
            confirmed = (o.worktrees for o in approvals if isinstance(o, Approve))
            chosen |= {each.path: each.identity for trees in confirmed for each in trees}
            chosen |= _included_checkouts(self._catalog, approvals)
            seen_now = await self._verifier.verify_more(chosen)
            if seen_now:
                await self._apply(plan(self._catalog, seen_now, self._now()))
        made = plan(self._catalog, orders, self._now())
        check(self._catalog, made)
        if only_narrows(self._catalog, made):
            return await self._apply(made)
        await self._queue.write(made.changes)
        self._set_catalog(made.catalog)
        return made

    async def _apply(self, made: Plan) -> Plan:
        """Apply the plan at once, except for its grants, which are saved first.

        If the rest of it can wait for the grants, everything takes effect together.
        Return the plan that took effect: without the grants, if the disk refused to save them.
        """
        without_grants = made.immediate
        if without_grants is made:
            self._apply_now(made)
            return made
        if not only_grants(self._catalog, made):
            self._set_catalog(without_grants.catalog)
        try:
            await self._queue.write(made.changes)
        except RootsdError as error:
            log.warning("the store refuses writes, so this is not granted yet: %s", error)
            self._set_catalog(without_grants.catalog)
            self._deferred.update(granted_projects(made))
            self._save_later(without_grants.changes)
            return without_grants
        self._set_catalog(made.catalog)
        return made

    def _apply_now(self, made: Plan) -> None:
        """Apply a plan that approves nothing. Does not yield to other tasks."""
        if made.changes:
            self._set_catalog(made.catalog)
            self._save_later(made.changes)

    def _save_later(self, changes: Sequence[Change]) -> None:
        self._queue.put(changes)
        self._needs_saving.set()

    async def _write(self) -> None:
        try:
            await self._queue.write()
        except RootsdError as error:
            log.warning("the store refuses writes, so this is kept in memory only: %s", error)

    def _set_catalog(self, catalog: Catalog) -> None:
        """Replace catalog and published set together. Does not yield to other tasks."""
        before = self._catalog.roots
        self._catalog = catalog
        self.expiries.follow(catalog)
        self._wake_watchers()
        if catalog.roots != before:
            self._publish(catalog.sorted_roots, self._published.focus)

    def _wake_watchers(self) -> None:
        self._catalog_changed.set()
        self._catalog_changed = anyio.Event()

    def _publish(self, roots: tuple[PublishedRoot, ...], focus: Focus) -> None:
        self._published = PublishedSet(self._published.revision + 1, roots, focus)
        self._changed.set()
        self._changed = anyio.Event()


def _included_checkouts(
    catalog: Catalog, orders: Iterable[Approve | Reinstate | Restore]
) -> dict[bytes, Identity]:
    """Return the checkouts whose Git directories the orders include, with the identity shown."""
    included = {}
    for order in orders:
        project = catalog.projects.get(order.path)
        if isinstance(order, Approve) and order.shared_git is not None and project is not None:
            git = shared_git(catalog, project)
            if git is not None:
                included[git.checkout] = order.shared_git
    return included


def _approved_identity(order: Approve | Reinstate | Restore) -> Identity | None:
    """Return the identity of the folder that the order approves, or None."""
    match order:
        case Approve(identity=identity) | Reinstate(approval=Approve(identity=identity)):
            return identity
        case Restore(ruling=ruling):
            return ruling.decision.identity if ruling.decision is not None else None
