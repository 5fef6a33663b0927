"""Connect the discovery thread to the event loop, the ledger and the control server.

Discovery runs in its own thread and knows nothing of the event loop. The adapter collects its
observations on the loop and passes them to the ledger in batches. So a storm of events becomes one
transaction, and a first scan becomes a few dozen. The adapter also passes requests to discovery:
to scan, to read one folder, and to watch the published roots.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

import anyio
from anyio import lowlevel, to_thread

from rootsd.control.daemon_parts import ScanStats, SeenBelow
from rootsd.control.routes import ProgressSink
from rootsd.core.catalog import Catalog
from rootsd.core.errors import NotPresent, RefusedPlace
from rootsd.core.exclusion import Exclusion, ExclusionReason
from rootsd.core.inputs import (
    Observation,
    ProjectGone,
    ProjectNamed,
    ProjectObserved,
    ProjectUnreachable,
    ProjectUnsafe,
)
from rootsd.core.labels import safe_label
from rootsd.core.model import Parent, Project, ProjectKind
from rootsd.core.paths import contains
from rootsd.core.shared_git import included_checkouts
from rootsd.daemon.sight_explainer import SightExplainer
from rootsd.discovery.service import Discovery, DiscoveryDependencies
from rootsd.discovery.status import ParentReport, ParentState
from rootsd.disk.hung_mounts import HungMountDetector
from rootsd.disk.look import IN_A_REPOSITORY, Look, LookLimits, look_below
from rootsd.disk.safety import FolderSafety, explain_alias
from rootsd.state.ledger import Ledger
from rootsd.vcs.probe import FolderMarks, probe, progress_marks
from rootsd.wire.daemon import ParentItem, parent_item
from rootsd.wire.scans import ScanProgressItem

T = TypeVar("T")

# A folder that a person named may lie on a server that does not answer.
_MAX_CONCURRENT_PROBES = 4
# The number of observations for one transaction: 3 ms, during which no other task runs.
_BATCH = 128
# A project is complete after a quiet period of at most 3 s; see `rootsd.vcs.stages`.
_SETTLE_TIMEOUT_S = 4.0
# A look reads for a second, and then each repository that it found.
_LOOK_TIMEOUT_S = 4.0
_MAX_CONCURRENT_LOOKS = 2
# Between two looks at an incomplete project that a person approves.
_BETWEEN_LOOKS_S = 0.5


class DiscoveryAdapter:
    """Runs discovery for the ledger. Create it on the event loop's thread.

    `on_death` is called on that thread if a bug ended discovery. `index` is the file in which
    discovery keeps snapshots for a quick start. `hung_mounts` knows which file systems do not
    answer. `safety` is for explanations, and no other thread uses it.
    """

    def __init__(
        self,
        ledger: Ledger,
        on_death: Callable[[], None],
        index: Path | None,
        dependencies: DiscoveryDependencies,
        hung_mounts: HungMountDetector,
        safety: FolderSafety,
    ) -> None:
        self.on_observed: Callable[[Iterable[bytes]], None] = lambda _: None
        self._ledger = ledger
        self._loop = asyncio.get_running_loop()
        self._discovery = Discovery(
            report=self._report,
            on_status=self._note_status,
            dependencies=dependencies,
            on_death=lambda: self._on_loop(on_death),
            index=index,
        )
        self._hung_mounts = hung_mounts
        self._sight = SightExplainer(
            lambda: self._parents,
            lambda: self._ledger.catalog.places,
            self._hung_mounts,
            safety,
        )
        self._parents: tuple[Parent, ...] = ()
        self._status: tuple[ParentReport, ...] = ()
        self._status_changed = anyio.Event()
        self._inbox: list[Observation | ProjectNamed] = []
        self._proposed: Mapping[bytes, str] = {}
        self._arrived = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()
        self._probe_limit = anyio.CapacityLimiter(_MAX_CONCURRENT_PROBES)
        self._look_limit = anyio.CapacityLimiter(_MAX_CONCURRENT_LOOKS)

    def start(self, parents: Sequence[Parent]) -> None:
        """Start to scan and watch."""
        self._parents = tuple(parents)
        self._discovery.start(self._parents, self._ledger.catalog.projects)

    def stop(self) -> None:
        """End the discovery thread."""
        self._discovery.stop()

    def set_parents(self, parents: Sequence[Parent]) -> None:
        """Watch these parents from now on."""
        self._parents = tuple(parents)
        self._discovery.set_parents(self._parents)

    def doubt(self, paths: Sequence[bytes]) -> None:
        """Look at these again and report them: an answer could not verify them."""
        self._discovery.recheck(paths)

    def parents(self) -> Sequence[Parent]:
        """Return the parents in use."""
        return self._parents

    async def forward_observations(self) -> None:
        """Pass the observations of discovery to the ledger for as long as the daemon runs."""
        while True:
            await self._arrived.wait()
            self._arrived = anyio.Event()
            while self._inbox or self._name_new():
                batch = self._next_batch()
                await self._ledger.apply_events(batch)
                self.on_observed([each.path for each in batch])
                # This may not yield. Other tasks would have to wait until after the last batch.
                await lowlevel.checkpoint()
            self._idle.set()

    def _name_new(self) -> bool:
        """Have each new project keep its name, and return whether there is one.

        During a first scan there is none: namesakes that one scan finds get names of one form.
        """
        if all(map(self._is_seen, self._parents)):
            before, self._proposed = self._proposed, self._ledger.catalog.proposed_names
            if before is not self._proposed:  # else the ledger refused them all
                self._inbox += [ProjectNamed(*each) for each in self._proposed.items()]
        return bool(self._inbox)

    def _next_batch(self) -> list[Observation | ProjectNamed]:
        """Return the first observations, few enough that other tasks need not wait long."""
        end = _BATCH
        while end < len(self._inbox) and isinstance(self._inbox[end], ProjectUnsafe):
            # Keep an observation and its hazard together: between the two, a rule would publish
            # the project.
            end += 1
        batch, self._inbox = self._inbox[:end], self._inbox[end:]
        return batch

    async def follow_roots(self) -> None:
        """Follow the catalog for as long as the daemon runs: keep discovery's list of roots up to
        date, and have a project that an order added keep its name.

        Discovery watches each published or withheld root, and each pending checkout whose Git
        directory an approval includes. It also looks for approved roots that are gone, and
        stops tracking the folders that a person named and took back.
        """
        seen: tuple[object, ...] = ()
        named: AbstractSet[bytes] = frozenset()
        while True:
            catalog, revision = self._ledger.catalog, self._ledger.revision
            self._collect(())  # an order may have added a project
            if taken_back := named - catalog.named - catalog.projects.keys():
                self._discovery.release(taken_back)
            named = catalog.named
            awaited, withheld = catalog.missing_approved, catalog.withheld.keys()
            included = included_checkouts(catalog)
            if seen != (revision, withheld, included, id(awaited)):
                seen = revision, withheld, included, id(awaited)
                self._discovery.set_roots(catalog.roots.keys() | withheld | included, awaited)
            await self._ledger.wait_for_change(catalog)
            # Sessions are notified first. The change woke them too, and the discovery thread would
            # compete with them for the interpreter.
            await lowlevel.checkpoint()

    async def scan(self, parent: bytes | None, progress: ProgressSink | None) -> ScanStats:
        """Scan now, and return when the catalog holds every project that the scan found.

        A project that was created a moment ago needs a quiet period before it counts as complete.
        The scan waits for that, for a few seconds at most. It does not wait for a project that a
        process still works on: `being_made` of the result holds that one.
        """
        cost = await self._result_of(
            self._discovery.scan(parent, self._progress_into(progress) if progress else None)
        )
        being_made = await self._result_of(self._discovery.when_settled(parent, _SETTLE_TIMEOUT_S))
        await self._idle.wait()
        return ScanStats(cost.folders, cost.seconds, being_made)

    async def scanned(self, path: bytes) -> None:
        """Return once each parent around `path` was scanned at least once since the start."""
        for parent in self._parents:
            if parent.path != path and contains(parent.path, path) and not self._is_seen(parent):
                await self.scan(parent.path, None)

    async def first_scan(self) -> None:
        """Return once every parent was scanned at least once since the start."""
        while not all(map(self._is_seen, self._parents)):
            await self._status_changed.wait()
        await self._idle.wait()

    async def scanned_beside(self, known: AbstractSet[bytes]) -> AbstractSet[bytes]:
        """Return the scanned parents once there is one beside those `known`.

        By then, the catalog holds their projects.
        """
        while (seen := {each.path for each in self._parents if self._is_seen(each)}) <= known:
            await self._status_changed.wait()
        await self._idle.wait()
        return seen

    def _is_seen(self, parent: Parent) -> bool:
        states = {report.path: report.state for report in self._status}
        return states.get(parent.path, ParentState.SCANNING) is not ParentState.SCANNING

    async def observe(self, path: bytes) -> Observation:
        """Read `path` now and return the observation. This changes nothing.

        The caller may be canceled while it waits.
        """
        return await to_thread.run_sync(
            self._probe, path, abandon_on_cancel=True, limiter=self._probe_limit
        )

    async def propose(self, path: bytes) -> None:
        """Read one folder and add it to the catalog.

        Raises NotPresent or RefusedPlace if nothing there can be approved.
        """
        await self._check_place(path)
        _require_sighted(await self._result_of(self._discovery.probe(path)))
        await self._idle.wait()
        await self._ledger.save_now()

    async def look_again(self, paths: Sequence[bytes]) -> None:
        """Read these known folders now, and return when the catalog has their states.

        Also wait for new projects whose quiet period has not passed yet, as `scan` does.
        """
        await self._result_of(self._discovery.recheck(paths))
        await self._result_of(self._discovery.when_settled(None, _SETTLE_TIMEOUT_S))
        await self._idle.wait()

    async def why_unseen(self, path: bytes) -> Exclusion | None:
        """Return why discovery does not propose a folder, or None if it does."""
        return await to_thread.run_sync(
            self._sight.why_unseen, path, abandon_on_cancel=True, limiter=self._probe_limit
        )

    async def left_out(self) -> Sequence[Exclusion]:
        """Return what discovery leaves out although it may hold projects.

        Besides what the walks leave out, these are the worktrees outside of all parents.
        """
        found = await to_thread.run_sync(
            self._sight.left_out, abandon_on_cancel=True, limiter=self._probe_limit
        )
        outside = await self._result_of(self._discovery.outside_worktrees())
        known = self._ledger.catalog.projects
        reason = ExclusionReason.OUTSIDE
        return [*found, *(Exclusion(reason, path) for path in outside if path not in known)]

    async def why_unsafe(self, path: bytes) -> str | None:
        """Return why a folder may not be published, as a clause, or None if it may."""
        return await to_thread.run_sync(
            self._sight.why_unsafe, path, abandon_on_cancel=True, limiter=self._probe_limit
        )

    async def refresh_worktrees(self, mains: Sequence[bytes]) -> None:
        """Update the worktrees of these repositories in the catalog."""
        await self._result_of(self._discovery.scan_worktrees(mains))
        await self._idle.wait()

    async def observe_project(self, path: bytes) -> ProjectObserved:
        """Read one folder without adding it to the catalog. Raises what `propose` raises."""
        await self._check_place(path)
        return _require_sighted(await self.observe(path))

    async def look_below(self, projects: Sequence[Project]) -> SeenBelow:
        """Look for projects below these folders, without adding any to the catalog.

        It does not wait for a scan that runs. After a few seconds, the plain folders that are left
        count as not searched.
        """
        here = [p for p in projects if p.observed.kind is not ProjectKind.URI]
        looks: dict[bytes, Look] = {}
        seen: list[ProjectObserved] = []
        with anyio.move_on_after(_LOOK_TIMEOUT_S):
            await to_thread.run_sync(
                self._look, here, looks, seen, abandon_on_cancel=True, limiter=self._look_limit
            )
        unsearched = (
            project.path
            for project in here
            if project.observed.kind is ProjectKind.PROJECT
            if (look := looks.get(project.path)) is None or not look.is_whole
        )
        return SeenBelow(tuple(seen), frozenset(unsearched))

    def _look(
        self, projects: Sequence[Project], looks: dict[bytes, Look], seen: list[ProjectObserved]
    ) -> None:
        """Look below `projects`, which share the time, and add the results."""
        end = time.monotonic() + LookLimits().seconds
        for project in projects:
            left = end - time.monotonic()
            if left <= 0 or not self._hung_mounts.responds(project.path):
                continue
            kind = project.observed.kind
            most = LookLimits() if kind is ProjectKind.PROJECT else IN_A_REPOSITORY
            limits = LookLimits(seconds=min(left, most.seconds))
            look = look_below(project.path, kind, limits)
            found = map(self._probe, look.projects)
            seen += [each for each in found if isinstance(each, ProjectObserved)]
            looks[project.path] = look

    async def is_at_work(self, seen: ProjectObserved) -> bool:
        """Return whether a program still works on the project `seen`, or it has just changed.

        This takes two looks and compares them. In between, it lists the processes. A program that
        no list shows, such as one in a container, must have been silent for that time.
        """
        before = await self._look_once(seen)
        if await self._result_of(self._discovery.at_work((seen.path,))):
            return True
        with anyio.move_on_after(_BETWEEN_LOOKS_S):
            await anyio.Event().wait()
        return await self._look_once(seen) != before

    async def _look_once(self, seen: ProjectObserved) -> tuple[Observation, FolderMarks]:
        observation = await self.observe(seen.path)
        marks = await to_thread.run_sync(
            progress_marks, seen.path, seen.kind, limiter=self._probe_limit
        )
        return observation, marks

    async def _check_place(self, path: bytes) -> None:
        reason = self._ledger.catalog.places.why_no_root(path)
        if reason is None:
            reason = await to_thread.run_sync(self._why_disguised, path, limiter=self._probe_limit)
        if reason is not None:
            shown = safe_label(path, limit=None)
            raise RefusedPlace(f"{shown} can never be a root: {reason}", "rootsd pending")

    def _probe(self, path: bytes) -> Observation:
        return probe(path) if self._hung_mounts.responds(path) else ProjectUnreachable(path)

    def _why_disguised(self, path: bytes) -> str | None:
        return explain_alias(path) if self._hung_mounts.responds(path) else None

    def parent_status(self, catalog: Catalog) -> list[ParentItem]:
        """Return the state of each parent."""
        reports = {report.path: report for report in self._status}
        items = []
        for parent in self._parents:
            report = reports.get(parent.path)
            items.append(
                parent_item(
                    parent,
                    state=(report.state if report else ParentState.SCANNING).value,
                    note=(report.reason or None) if report else None,
                    remedy=(report.remedy or None) if report else None,
                    projects=len(catalog.paths_below(parent.path))
                    + (parent.path in catalog.projects),
                )
            )
        return items

    def watches(self) -> int:
        """Return the number of kernel watches that discovery holds."""
        return self._discovery.watches()

    def degraded(self) -> list[str]:
        """Return what discovery cannot do, with the remedy, as one sentence each."""
        return [
            f"{safe_label(report.path, limit=None)}: {report.reason}"
            + (f" ({report.remedy})" if report.remedy else "")
            for report in self._status
            if report.reason
        ]

    def _on_loop(self, action: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(action)

    def _note_status(self, status: tuple[ParentReport, ...]) -> None:
        self._loop.call_soon_threadsafe(self._take_status, status)

    def _take_status(self, status: tuple[ParentReport, ...]) -> None:
        self._status = status
        self._status_changed.set()
        self._status_changed = anyio.Event()
        self._collect(())  # the end of a first scan fixes the names

    def _progress_into(self, sink: ProgressSink) -> ProgressSink:
        def forward(progress: ScanProgressItem) -> None:
            self._loop.call_soon_threadsafe(sink, progress)

        return forward

    async def _result_of(self, future: Future[T]) -> T:
        return await asyncio.wrap_future(future, loop=self._loop)

    def _report(self, observations: Sequence[Observation]) -> None:
        self._loop.call_soon_threadsafe(self._collect, observations)

    def _collect(self, observations: Sequence[Observation]) -> None:
        self._inbox.extend(observations)
        if self._idle.is_set():
            self._idle = anyio.Event()
        self._arrived.set()


def _require_sighted(seen: Observation) -> ProjectObserved:
    """Return `seen` if it is a folder that may be proposed. Raises NotPresent or RefusedPlace."""
    shown = safe_label(seen.path, limit=None)
    match seen:
        case ProjectObserved():
            return seen
        case ProjectGone():
            raise NotPresent(f"there is no folder {shown}", "rootsd ls")
        case ProjectUnreachable():
            raise NotPresent(f"no folder can be read at {shown}", f"ls -ld {shown}")
        case ProjectUnsafe():
            raise RefusedPlace(f"{shown} cannot be published: {seen.reason.value}")
