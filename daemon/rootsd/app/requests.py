"""What each control request does, and the answer it gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Protocol, assert_never, cast

from anyio import to_thread

from rootsd.app.adding import Adding
from rootsd.app.chronicle import Chronicle
from rootsd.app.decisions import Decisions
from rootsd.app.facts import FactsOf, no_facts
from rootsd.app.items import NoteOn, dropped_items_of, items_of, without_note
from rootsd.app.ledger import Ledger
from rootsd.app.references import Resolver, canonical, is_selected, real_path
from rootsd.app.rules import Rules
from rootsd.app.standing import Standing
from rootsd.core.catalog import Catalog
from rootsd.core.errors import UnknownProject
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor, Parent, Presence, Project
from rootsd.core.paths import contains
from rootsd.wire.adding import Addition
from rootsd.wire.control import (
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
    SessionStatus,
    Status,
    StatusQuery,
    Stop,
)
from rootsd.wire.facts import ShowQuery
from rootsd.wire.guarding import GuardQuery, LogQuery, SetGuard
from rootsd.wire.rules import RuleAddition, RuleRemoval, RulesQuery
from rootsd.wire.sessions import SessionItem, SessionListing, SessionsQuery, SessionView
from rootsd.wire.standing import CheckQuery, WhyQuery

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
        """Version, pid, start, confinement."""

    def sessions(self) -> list[SessionStatus]:
        """The MCP connections."""

    def session_items(self) -> list[SessionItem]:
        """The MCP connections, with what each was given last."""

    def session_history(self, last: int) -> list[SessionItem]:
        """The `last` sessions that began, and what each was given; called in a thread."""

    def degraded(self) -> list[str]:
        """What does not work as it should, a sentence each."""

    async def reload(self) -> None:
        """Read the configuration again. Raises BadConfig, and then the old one stays."""

    def stop(self) -> None:
        """End the daemon."""


@dataclass(frozen=True, slots=True)
class Desk:
    """Answers control requests. `note_on` says who asked for a folder; `real_path(typed, cwd)`
    touches the disk: called in a thread."""

    ledger: Ledger
    surveyor: Surveyor
    host: Host
    chronicle: Chronicle
    note_on: NoteOn = without_note
    facts_of: FactsOf = no_facts
    real_path: Callable[[str, str], bytes] = real_path

    async def answer(
        self, request: Request, actor: Actor, progress: ProgressSink | None = None
    ) -> dict[str, Any]:
        """The answer to `request`. Raises RootsdError."""
        answer: Awaitable[Any]
        match request:
            case StatusQuery():
                return dict(self._status(request))
            case (
                ProjectsQuery()
                | ShowQuery()
                | SessionsQuery()
                | RulesQuery()
                | CheckQuery()
                | WhyQuery()
            ):
                answer = self._look_up(request)
            case ScanOrder():
                answer = self._scan(request, progress)
            case Reload():
                await self.host.reload()
                return dict(self._status(StatusQuery()))
            case Decide() | Addition() | RuleAddition() | RuleRemoval():
                answer = self._obey(request, actor)
            case GuardQuery() | SetGuard() | LogQuery():
                answer = self.chronicle.answer(request, actor)
            case Stop():
                return {}
            case _:
                assert_never(request)
        return dict(await answer)

    async def _look_up(
        self,
        query: ProjectsQuery | ShowQuery | SessionsQuery | RulesQuery | CheckQuery | WhyQuery,
    ) -> Mapping[str, Any]:
        match query:
            case ProjectsQuery() | ShowQuery():
                return await self._projects(query)
            case SessionsQuery():
                return await self._sessions(query)
            case RulesQuery():
                return self._rules().listing()
            case CheckQuery():
                return await self._standing().check(query)
            case WhyQuery():
                return await self._standing().why(query)

    async def _obey(
        self, order: Decide | Addition | RuleAddition | RuleRemoval, actor: Actor
    ) -> Mapping[str, Any]:
        match order:
            case Decide():
                return await self._decisions().carry_out(order, actor)
            case Addition():
                return await self._adding().add(order, actor)
            case RuleAddition():
                return await self._rules().add(order, actor)
            case RuleRemoval():
                return await self._rules().remove(order, actor)

    def answered(self, request: Request) -> None:
        """Told once the answer to `request` is out."""
        if isinstance(request, Stop):
            self.host.stop()

    def _decisions(self) -> Decisions:
        return Decisions(self.ledger, self.real_path, self.surveyor.propose, self.surveyor.parents)

    def _adding(self) -> Adding:
        return Adding(self.ledger, self.real_path, self.surveyor.propose, self.surveyor.parents)

    def _rules(self) -> Rules:
        return Rules(self.ledger, self.real_path, self.surveyor.parents)

    def _standing(self) -> Standing:
        return Standing(self.ledger, self.real_path, self.surveyor.parents, self.note_on)

    def _canonical(self, typed: str, cwd: str) -> bytes:
        return canonical(self.real_path, typed, cwd)

    def _status(self, query: StatusQuery) -> Status:
        catalog = self.ledger.catalog
        counts = Counter(j.verdict.value for j in catalog.judgements.values())
        waiting = sum(1 for p in catalog.projects.values() if catalog.is_waiting(p))
        lapsed = sum(1 for p in catalog.projects.values() if p.ruling.is_lapsed)
        incomplete = sum(1 for p in catalog.projects.values() if p.sighting.incomplete)
        degraded = [*self.host.degraded()]
        if self.ledger.unsaved:
            degraded.append(
                f"the disk refuses {self.ledger.unsaved} changes; they hold until the daemon ends"
            )
        guard, refused = self.chronicle.standing(is_look=query.is_look)
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
            guard=guard.value,
            refused=refused,
            degraded=degraded,
            warnings=[],
        )

    async def _projects(self, query: ProjectsQuery | ShowQuery) -> Listing:
        if isinstance(query, ShowQuery):
            return await self._show(query)
        # The two belong together: whoever follows from this revision on misses nothing.
        revision = (await self.ledger.current()).revision
        catalog = self.ledger.catalog
        if query.refs:
            resolver = Resolver(catalog, lambda typed: self._canonical(typed, query.cwd))
            candidates = await to_thread.run_sync(resolver.all, query.refs)
        else:
            candidates = sorted(catalog.projects.values(), key=lambda p: p.path)
        under = (
            await to_thread.run_sync(self._canonical, query.under, query.cwd)
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
            revision=revision,
            items=items_of(catalog, chosen, self.surveyor.parents(), self.note_on),
            warnings=[],
        )

    async def _show(self, query: ShowQuery) -> Listing:
        revision, catalog = self.ledger.revision, self.ledger.catalog
        resolver = Resolver(catalog, lambda typed: self._canonical(typed, query.cwd))
        chosen = await to_thread.run_sync(resolver.all, query.refs)
        items = items_of(catalog, chosen, self.surveyor.parents(), self.note_on)
        for item, facts in zip(items, await self.facts_of(chosen), strict=True):
            cast("dict[str, Any]", item).update(facts)
        return Listing(revision=revision, items=items, warnings=[])

    async def _sessions(self, query: SessionsQuery) -> SessionListing:
        if query.view is SessionView.OPEN:
            items = self.host.session_items()
        else:
            items = await to_thread.run_sync(self.host.session_history, query.last)
        return SessionListing(revision=self.ledger.revision, items=items, warnings=[])

    async def _scan(self, order: ScanOrder, progress: ProgressSink | None) -> Scanned:
        parent = None
        if order.parent is not None:
            parent = await to_thread.run_sync(self._canonical, order.parent, "/")
            if all(known.path != parent for known in self.surveyor.parents()):
                shown = safe_label(order.parent, limit=None)
                raise UnknownProject(f"{shown} is no parent", "rootsd parent ls")
        before = self.ledger.catalog
        cost = await self.surveyor.scan(parent, progress)
        found = _Difference(before, self.ledger.catalog, parent or b"/")
        after, parents = found.after, self.surveyor.parents()
        return Scanned(
            revision=self.ledger.revision,
            new=items_of(after, found.new(), parents),
            gone=[
                *items_of(after, found.missing(), parents),
                *dropped_items_of(before, found.dropped(), parents),
            ],
            changed=items_of(after, found.changed(), parents),
            projects=len(after.projects),
            folders=cost.folders,
            seconds=round(cost.seconds, 3),
            warnings=[],
        )


def _is_selected(catalog: Catalog, project: Project, query: ProjectsQuery) -> bool:
    return (
        is_selected(catalog, project, query.select)
        and (query.verdict is None or catalog.judgements[project.path].verdict is query.verdict)
        and (query.tag is None or query.tag in project.ruling.tags)
    )


@dataclass(frozen=True, slots=True)
class _Difference:
    """What a scan of `parent` made of a catalogue; each project is in one list at most."""

    before: Catalog
    after: Catalog
    parent: bytes

    def new(self) -> list[Project]:
        """What was not known before."""
        return self._of(self.after, self.after.projects.keys() - self.before.projects.keys())

    def dropped(self) -> list[Project]:
        """What is gone, and nothing was decided about it; as it was before."""
        return self._of(self.before, self.before.projects.keys() - self.after.projects.keys())

    def missing(self) -> list[Project]:
        """What is gone, and stays known for what was decided about it."""
        return [project for project in self._other() if _is_missing(project)]

    def changed(self) -> list[Project]:
        """What else differs."""
        return [project for project in self._other() if not _is_missing(project)]

    def _other(self) -> list[Project]:
        both = self.before.projects.keys() & self.after.projects.keys()
        return [
            project
            for project in self._of(self.after, both)
            if project is not (old := self.before.projects[project.path]) and project != old
        ]

    def _of(self, catalog: Catalog, paths: AbstractSet[bytes]) -> list[Project]:
        return [catalog.projects[path] for path in sorted(paths) if contains(self.parent, path)]


def _is_missing(project: Project) -> bool:
    return project.sighting.presence is Presence.MISSING
