"""What each control request does, and the answer it gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, assert_never

from anyio import to_thread

from rootsd.app.decisions import Decisions
from rootsd.app.items import items_of
from rootsd.app.ledger import Ledger
from rootsd.app.references import Resolver
from rootsd.core.catalog import Catalog
from rootsd.core.errors import UnknownProject
from rootsd.core.model import Actor, Parent, Project
from rootsd.core.paths import contains
from rootsd.wire.control import (
    Checked,
    CheckQuery,
    DaemonStatus,
    Decide,
    Listing,
    ParentStatus,
    Progress,
    ProjectsQuery,
    Reload,
    Request,
    Scanned,
    ScanOrder,
    Selection,
    SessionStatus,
    Status,
    StatusQuery,
    Stop,
)

ProgressSink = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class ScanCost:
    """What one scan went through."""

    folders: int
    seconds: float


class Surveyor(Protocol):
    """Discovery, as requests need it."""

    def parents(self) -> Sequence[Parent]:
        """The parents in force."""

    def parent_status(self, catalog: Catalog) -> list[ParentStatus]:
        """How each parent stands."""

    async def scan(self, parent: bytes | None, progress: ProgressSink | None) -> ScanCost:
        """Scan now; everything seen is in the catalogue when this returns."""

    async def propose(self, path: bytes) -> None:
        """Look at one folder and take it into the catalogue. Raises RootsdError."""


class Host(Protocol):
    """The running daemon, as requests need it."""

    def about(self) -> DaemonStatus:
        """Version, pid, start."""

    def sessions(self) -> list[SessionStatus]:
        """The MCP connections."""

    def degraded(self) -> list[str]:
        """What does not work as it should, a sentence each."""

    async def reload(self) -> None:
        """Read the configuration again. Raises BadConfig, and then the old one stays."""

    def stop(self) -> None:
        """End the daemon."""


@dataclass(frozen=True, slots=True)
class Desk:
    """Answers control requests. `real_path(typed, cwd)` touches the disk: called in a thread."""

    ledger: Ledger
    surveyor: Surveyor
    host: Host
    real_path: Callable[[str, str], bytes]

    async def answer(
        self, request: Request, actor: Actor, progress: ProgressSink | None = None
    ) -> dict[str, Any]:
        """The answer to `request`. Raises RootsdError."""
        answer: Awaitable[Any]
        match request:
            case StatusQuery():
                return dict(self._status())
            case ProjectsQuery():
                answer = self._projects(request)
            case ScanOrder():
                answer = self._scan(request, progress)
            case Reload():
                await self.host.reload()
                return dict(self._status())
            case Decide():
                answer = self._decisions().carry_out(request, actor)
            case CheckQuery():
                answer = self._check(request)
            case Stop():
                return {}
            case _:
                assert_never(request)
        return dict(await answer)

    def answered(self, request: Request) -> None:
        """Told once the answer to `request` is out."""
        if isinstance(request, Stop):
            self.host.stop()

    def _decisions(self) -> Decisions:
        return Decisions(self.ledger, self.real_path, self.surveyor.propose, self.surveyor.parents)

    def _status(self) -> Status:
        catalog = self.ledger.catalog
        counts = Counter(j.verdict.value for j in catalog.judgements.values())
        waiting = sum(1 for p in catalog.projects.values() if catalog.is_waiting(p))
        lapsed = sum(1 for p in catalog.projects.values() if p.ruling.lapse is not None)
        incomplete = sum(1 for p in catalog.projects.values() if p.sighting.incomplete)
        degraded = self.host.degraded()
        if self.ledger.unsaved:
            degraded.append(
                f"the disk refuses {self.ledger.unsaved} changes; they hold until the daemon ends"
            )
        return Status(
            revision=self.ledger.revision,
            daemon=self.host.about(),
            parents=self.surveyor.parent_status(catalog),
            counts={
                "published": len(catalog.roots),
                "approved": counts["approved"],
                "waiting": waiting,
                "denied": counts["denied"],
                "lapsed": lapsed,
                "incomplete": incomplete,
                "projects": len(catalog.projects),
            },
            sessions=self.host.sessions(),
            degraded=degraded,
            warnings=[],
        )

    async def _projects(self, query: ProjectsQuery) -> Listing:
        await self.ledger.current()
        catalog = self.ledger.catalog
        if query.refs:
            resolver = Resolver(catalog, lambda typed: self.real_path(typed, query.cwd))
            candidates = await to_thread.run_sync(resolver.all, query.refs)
        else:
            candidates = sorted(catalog.projects.values(), key=lambda p: p.path)
        under = (
            await to_thread.run_sync(self.real_path, query.under, query.cwd)
            if query.under is not None
            else None
        )
        chosen = [
            project
            for project in candidates
            if _is_selected(catalog, project, query)
            and (under is None or contains(under, project.path))
        ]
        return Listing(
            revision=self.ledger.revision,
            items=items_of(catalog, chosen, self.surveyor.parents()),
            warnings=[],
        )

    async def _scan(self, order: ScanOrder, progress: ProgressSink | None) -> Scanned:
        parent = None
        if order.parent is not None:
            parent = await to_thread.run_sync(self.real_path, order.parent, "/")
            if all(known.path != parent for known in self.surveyor.parents()):
                raise UnknownProject(f"{order.parent} is no parent", "rootsd parent ls")
        before = self.ledger.catalog
        cost = await self.surveyor.scan(parent, progress)
        after = self.ledger.catalog
        items = partial(items_of, parents=self.surveyor.parents())
        return Scanned(
            revision=self.ledger.revision,
            new=items(after, _only_in(after, before)),
            gone=items(before, _only_in(before, after)),
            changed=items(after, _changed(before, after)),
            projects=len(after.projects),
            folders=cost.folders,
            seconds=round(cost.seconds, 3),
            warnings=[],
        )

    async def _check(self, query: CheckQuery) -> Checked:
        path = await to_thread.run_sync(self.real_path, query.path, "/")
        published = await self.ledger.current()
        for root in published.roots:
            if contains(root.path, path):
                return Checked(
                    published=True,
                    verdict="approved",
                    root=root.name,
                    access=root.access.value,
                )
        catalog = self.ledger.catalog
        project = catalog.holding(path)
        verdict = catalog.judgements[project.path].verdict.value if project else None
        if verdict == "approved":
            # Approved and yet not published: out of reach, so there is nothing to rely on.
            verdict = "pending"
        return Checked(published=False, verdict=verdict, root=None, access=None)


def _is_selected(catalog: Catalog, project: Project, query: ProjectsQuery) -> bool:
    match query.select:
        case Selection.WAITING:
            selected = catalog.is_waiting(project)
        case Selection.LAPSED:
            selected = project.ruling.lapse is not None
        case Selection.PUBLISHED:
            selected = project.path in catalog.roots
        case Selection.ALL | Selection.NAMED:
            selected = True
    return (
        selected
        and (query.verdict is None or catalog.judgements[project.path].verdict is query.verdict)
        and (query.tag is None or query.tag in project.ruling.tags)
    )


def _only_in(one: Catalog, other: Catalog) -> list[Project]:
    return [one.projects[path] for path in sorted(one.projects.keys() - other.projects.keys())]


def _changed(before: Catalog, after: Catalog) -> list[Project]:
    return [
        after.projects[path]
        for path in sorted(before.projects.keys() & after.projects.keys())
        if before.projects[path] is not after.projects[path]
        and before.projects[path] != after.projects[path]
    ]
