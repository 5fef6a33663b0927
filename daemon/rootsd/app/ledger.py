"""The single writer: decides, saves, publishes.

Everything that changes the catalogue comes through two doors. `observe` takes what the disk
shows and never refuses; `obey` takes orders and may. Effects come in the order that is safe when
any of them fails: what narrows the published set takes effect before it is saved, what widens it
is saved before it takes effect. Notices are never sent from here: whoever publishes waits until
the revision has passed the one it knows, so no path can forget to tell.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

import anyio
from anyio import to_thread

from rootsd.core.catalog import Catalog
from rootsd.core.changes import Change, ProjectChange, Verb
from rootsd.core.errors import RootsdError
from rootsd.core.inputs import Observation, Order
from rootsd.core.model import Identity, Published, Root
from rootsd.core.plan import Plan, plan

log = logging.getLogger(__name__)

_RETRY_SECONDS = (1.0, 2.0, 5.0, 15.0, 60.0)


class Saver(Protocol):
    """The store, as the ledger needs it; called in a worker thread."""

    def append(self, changes: Sequence[Change], at: datetime) -> object:
        """Make `changes` durable, all or none. Raises RootsdError where the disk refuses."""


class Verifier(Protocol):
    """Looks at the roots' folders; reports those that are not what was approved any more."""

    def verify(self, roots: Mapping[bytes, Identity]) -> Sequence[Observation]:
        """What changed among `roots` since they were approved; empty where all is well."""


class Ledger:
    """Holds the catalogue and the published set; see the module's text."""

    def __init__(
        self,
        catalog: Catalog,
        saver: Saver,
        verifier: Verifier,
        *,
        now: Callable[[], datetime],
        first_revision: int = 1,
    ) -> None:
        self._catalog = catalog
        self._saver = saver
        self._verifier = verifier
        self._now = now
        self._lock = anyio.Lock()
        self._roots: Mapping[bytes, Root] = {}
        self._published = Published(first_revision, ())
        self._changed = anyio.Event()
        self._unsaved: list[Change] = []
        self._postponed: list[Observation] = []
        self._needs_saving = anyio.Event()
        self._saved = anyio.Event()
        self._publish(catalog.roots)

    @property
    def catalog(self) -> Catalog:
        """The catalogue as it stands."""
        return self._catalog

    @property
    def revision(self) -> int:
        """The number of the published set."""
        return self._published.revision

    @property
    def unsaved(self) -> int:
        """How many changes wait for the disk; 0 where all is durable."""
        return len(self._unsaved) + len(self._postponed)

    async def current(self) -> Published:
        """The published set, each root's folder verified at this moment."""
        doubts = self._verifier.verify(self._approved_identities())
        if doubts:
            await self.observe(doubts)
        return self._published

    async def wait_past(self, revision: int) -> Published:
        """Wait until the published set is newer than `revision`, then return it verified."""
        while self._published.revision <= revision:
            await self._changed.wait()
        return await self.current()

    async def observe(self, observations: Iterable[Observation]) -> None:
        """Take in what the disk shows."""
        async with self._lock:
            with anyio.CancelScope(shield=True):
                await self._observe(list(observations))

    async def obey(self, orders: Sequence[Order]) -> Plan:
        """Carry out orders, all or none. Raises OrderRefused, or what the store raised.

        An order that only narrows is carried out even where the disk refuses: it holds in
        memory and is written as soon as the disk takes it.
        """
        async with self._lock:
            with anyio.CancelScope(shield=True):
                made = await self._obey(orders)
        return made

    def rehearse(self, orders: Sequence[Order]) -> Plan:
        """What `obey` would do; nothing is done. Raises OrderRefused."""
        return plan(self._catalog, orders, self._now())

    async def keep_saving(self) -> None:
        """Write what the disk refused, until it takes it. Runs as long as the daemon does."""
        attempt = 0
        while True:
            await self._needs_saving.wait()
            with anyio.move_on_after(_RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)]):
                await self._saved.wait()  # a later change may take the earlier ones along
            attempt += 1
            async with self._lock:
                with anyio.CancelScope(shield=True):
                    await self._retry()
            if not self.unsaved:
                self._needs_saving = anyio.Event()
                attempt = 0

    async def _retry(self) -> None:
        try:
            await self._save(())
        except RootsdError:
            return
        postponed, self._postponed = self._postponed, []
        await self._observe(postponed)

    async def _obey(self, orders: Sequence[Order]) -> Plan:
        made = plan(self._catalog, orders, self._now())
        if not made.changes:
            return made
        self._publish(_narrowed(self._roots, made.catalog.roots))
        try:
            await self._save(made.changes)
        except RootsdError as error:
            if not _only_narrows(self._roots, made.catalog.roots, made.changes):
                raise
            log.warning("the store refuses, the order holds in memory: %s", error)
            self._keep_for_later(made.changes)
        self._adopt(made.catalog)
        return made

    async def _observe(self, observations: list[Observation]) -> None:
        made = plan(self._catalog, observations, self._now())
        if not made.changes:
            return
        self._publish(_narrowed(self._roots, made.catalog.roots))
        try:
            await self._save(made.changes)
        except RootsdError as error:
            log.warning("the store refuses: %s", error)
            if any(change.verb is Verb.GRANTED for change in made.changes):
                # What a rule would publish must be durable first; look again when it can be.
                self._postponed.extend(observations)
                self._needs_saving.set()
                return
            self._keep_for_later(made.changes)
        self._adopt(made.catalog)

    async def _save(self, changes: Sequence[Change]) -> None:
        waiting = [*self._unsaved, *changes]
        if waiting:
            await to_thread.run_sync(self._saver.append, waiting, self._now())
            self._unsaved.clear()
            self._saved.set()
            self._saved = anyio.Event()

    def _keep_for_later(self, changes: Sequence[Change]) -> None:
        self._unsaved.extend(changes)
        self._needs_saving.set()

    def _adopt(self, catalog: Catalog) -> None:
        """No await beyond this point: store, catalogue and published set agree."""
        self._catalog = catalog
        self._publish(catalog.roots)

    def _publish(self, roots: Mapping[bytes, Root]) -> None:
        if roots == self._roots:
            return
        self._roots = roots
        ordered = tuple(sorted(roots.values(), key=lambda root: root.name))
        self._published = Published(self._published.revision + 1, ordered)
        self._changed.set()
        self._changed = anyio.Event()

    def _approved_identities(self) -> dict[bytes, Identity]:
        projects = self._catalog.projects
        return {
            path: identity
            for path in self._roots
            if (identity := projects[path].sighting.identity) is not None
        }


def _narrowed(old: Mapping[bytes, Root], new: Mapping[bytes, Root]) -> Mapping[bytes, Root]:
    """The old roots that stay as they are; the very same object where all do."""
    gone = [path for path, root in old.items() if new.get(path) != root]
    if not gone:
        return old
    left = set(gone)
    return {path: root for path, root in old.items() if path not in left}


def _only_narrows(
    old: Mapping[bytes, Root], new: Mapping[bytes, Root], changes: Sequence[Change]
) -> bool:
    """Whether nothing is published, now or after a restart, that the old set did not hold."""
    denials = (Verb.DENIED, Verb.LAPSED, Verb.WITHDRAWN)
    return new.items() <= old.items() and all(
        isinstance(change, ProjectChange) and change.verb in denials for change in changes
    )
