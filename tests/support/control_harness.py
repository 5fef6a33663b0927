"""A dispatcher with fakes: discovery, the daemon, and a disk that is a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from posixpath import join, normpath
from typing import Any

import anyio
from msgspec.structs import replace

from rootsd.config.schema import ChangePolicy, NotifyTable
from rootsd.control.daemon_parts import ScanStats, SeenBelow
from rootsd.control.dispatch import Dispatcher
from rootsd.control.inspector import Inspector
from rootsd.control.project_reader import ProjectReader, Risks
from rootsd.control.routes import ConnectionState, ProgressSink, RequestContext
from rootsd.control.services import ControlServices
from rootsd.control.session_requests import SessionRequests
from rootsd.control.wardens import WallServices, WardenRegistry
from rootsd.core.catalog import Catalog
from rootsd.core.errors import NotPresent, Unconfirmed
from rootsd.core.exclusion import Exclusion
from rootsd.core.history import CHAIN_START, HistoryEvent, events_for
from rootsd.core.inputs import Observation, ProjectObserved
from rootsd.core.model import (
    Actor,
    Inspection,
    Parent,
    Project,
    ProjectKind,
    PublishedRoot,
    Rule,
    SessionKey,
)
from rootsd.core.paths import bytes_of, contains
from rootsd.core.scope import SessionStart, session_start_in
from rootsd.core.wall import WallSettings
from rootsd.daemon.notifier import PendingNotifier
from rootsd.mcp.sessions.requests import RootRequest, RootRequestQueue
from rootsd.notify.notification import DesktopNotification
from rootsd.state.change_signal import ChangeSignal
from rootsd.state.store.store import Store
from rootsd.wall.git.left_behind_reports import LeftBehind
from rootsd.wire.daemon import (
    ConfigStatus,
    DaemonStatus,
    ParentItem,
    PolicyStatus,
    SessionItem,
    parent_item,
)
from rootsd.wire.decisions import (
    AddRuleRequest,
    DecideRequest,
    DecisionVerb,
    RemoveRuleRequest,
    TagRequest,
)
from rootsd.wire.guard import UndoRequest
from rootsd.wire.projects import ShownFacts
from rootsd.wire.request import ApplyMode, ControlRequest
from rootsd.wire.scans import ScanProgressItem
from support.ledger_harness import HANG_GUARD, SOURCES, FakeSaver, LedgerHarness
from support.process_table import ProcessTable
from support.recorded_session import FakeServerSessions
from support.sample_decisions import NOON, PERSON

CWD = "/home/ann/src"
Confirmable = DecideRequest | TagRequest | AddRuleRequest | RemoveRuleRequest | UndoRequest
APPROVE, DENY, FORGET = DecisionVerb.APPROVE, DecisionVerb.DENY, DecisionVerb.FORGET
ACCEPT = DecisionVerb.ACCEPT
LINKS = {
    b"/home/ann/link": b"/home/ann/src/p1",
    b"/home/ann/odd-link": b"/home/ann/src/a[b]c",
}


def real_path(typed: str, cwd: str) -> bytes:
    """Resolve a path as the daemon does, on a disk whose only links are LINKS."""
    whole = bytes_of(normpath(join(cwd, typed)))
    if b"\0" in whole:
        raise ValueError("embedded null byte")
    for link, target in LINKS.items():
        if contains(link, whole):
            return target + whole.removeprefix(link)
    return whole


class FakeDiscovery:
    """Discovery that finds the projects in `finds`, and the folders on the disk of the harness."""

    def __init__(self, world: LedgerHarness) -> None:
        self._world = world
        self.finds: Sequence[Observation] = ()
        self.scanned: list[bytes | None] = []
        self.proposed: list[bytes] = []
        self.followed: list[bytes] = []
        self.being_made: frozenset[bytes] = frozenset()
        self.troubles: list[str] = []
        self.looked: list[bytes] = []
        self.below = SeenBelow()
        self.exclusions: dict[bytes, Exclusion] = {}
        self.hazards: dict[bytes, str] = {}
        self.seen_again: dict[bytes, Observation] = {}
        self.appears: Sequence[Observation] = ()
        self.at_work: set[bytes] = set()

    def parents(self) -> Sequence[Parent]:
        return (Parent(SOURCES),)

    def parent_status(self, catalog: Catalog) -> list[ParentItem]:
        return [parent_item(Parent(SOURCES), state="watching", projects=len(catalog.projects))]

    def watches(self) -> int:
        return 5

    def degraded(self) -> list[str]:
        return self.troubles

    async def scan(self, parent: bytes | None, progress: ProgressSink | None) -> ScanStats:
        self.scanned.append(parent)
        if progress is not None:
            progress(ScanProgressItem(folders=1, projects=len(self.finds), parent="/home/ann/src"))
        await self._world.ledger.observe(self.finds)
        return ScanStats(folders=7, seconds=0.12345, being_made=self.being_made)

    async def propose(self, path: bytes) -> None:
        self.proposed.append(path)
        await self._world.ledger.observe([await self.observe_project(path)])

    async def observe_project(self, path: bytes) -> ProjectObserved:
        there = self._world.disk.folders.get(path)
        if there is None:
            raise NotPresent("there is no such folder", "rootsd ls")
        return ProjectObserved(path, ProjectKind.GIT, there)

    async def look_again(self, paths: Sequence[bytes]) -> None:
        again = [self.seen_again[path] for path in paths if path in self.seen_again]
        again += self.appears
        await self._world.ledger.observe(again)

    async def why_unseen(self, path: bytes) -> Exclusion | None:
        return self.exclusions.get(path)

    async def left_out(self) -> Sequence[Exclusion]:
        return tuple(self.exclusions.values())

    async def why_unsafe(self, path: bytes) -> str | None:
        return self.hazards.get(path)

    async def is_at_work(self, seen: ProjectObserved) -> bool:
        return seen.path in self.at_work

    async def refresh_worktrees(self, mains: Sequence[bytes]) -> None:
        self.followed += mains

    async def look_below(self, projects: Sequence[Project]) -> SeenBelow:
        self.looked += [project.path for project in projects]
        return self.below


def a_session(id_: str) -> SessionItem:
    """Return a session that has not got any roots yet."""
    return SessionItem(
        id=id_,
        client="an editor",
        pid=5,
        scope=[],
        since="2026-03-04T12:00:00Z",
        until=None,
        end=None,
        given=[],
        told=None,
    )


class FakeDaemonControl:
    """A daemon that records the calls to it."""

    def __init__(self) -> None:
        self.policy: PolicyStatus | None = None
        self.left: list[str] = []
        self.troubles: list[str] = []
        self.told: list[str] = []
        self.open_sessions = [a_session("open")]
        self.roots_by_session: dict[str, Sequence[PublishedRoot]] = {}

    def about(self) -> DaemonStatus:
        return DaemonStatus(version="1.2.3", pid=4, since="2026-03-04T12:00:00Z", confined="none")

    def config_status(self) -> ConfigStatus:
        return ConfigStatus(
            file="/home/me/config.toml", read_at="2026-03-04T12:00:00Z", checksum="00000000",
            changes=[], error=None,
        )  # fmt: skip

    def policy_status(self) -> PolicyStatus | None:
        return self.policy

    def session_items(self) -> list[SessionItem]:
        return list(self.open_sessions)

    def session_roots(self, id_: str) -> Sequence[PublishedRoot]:
        return self.roots_by_session.get(id_, ())

    def session_history(self, last: int) -> list[SessionItem]:
        return [a_session(f"old{number}") for number in range(last)]

    def closed_connections(self) -> dict[str, int]:
        return {"of another user": 3}

    def left_behind(self) -> LeftBehind:
        return LeftBehind(self.left, ())

    async def degraded(self) -> list[str]:
        return self.troubles

    def mark_degraded_seen(self) -> None:
        pass

    async def reload(self, actor: Actor | None, /) -> None:
        del actor
        self.told.append("reload")

    def stop(self) -> None:
        self.told.append("stop")


class FakeRequestFeed(RootRequestQueue):
    """A feed without root requests, unless a test adds a note."""

    def __init__(self) -> None:
        self.on_pending: Callable[[RootRequest], None] = lambda wish: None
        self.notes: dict[bytes, str] = {}

    def note_on(self, path: bytes) -> str | None:
        return self.notes.get(path)


class FakeProjectReader(ProjectReader):
    """A reader that finds nothing, unless a test replaces its methods.

    `seen` has what a look into projects finds.
    """

    def __init__(self) -> None:
        self.seen: dict[bytes, Inspection | None] = {}

    async def facts(self, projects: Sequence[Project]) -> Sequence[ShownFacts | None]:
        return [None for _ in projects]

    async def risks(self, projects: Sequence[Project], seconds: float) -> Risks:
        del projects, seconds
        return {}

    async def inspections(
        self, projects: Sequence[Project], seconds: float
    ) -> Mapping[bytes, Inspection | None]:
        del projects, seconds
        return self.seen

    async def origins(self, projects: Iterable[Project]) -> Mapping[bytes, str]:
        del projects
        return {}


async def _no_session_runs(_: SessionKey) -> bool:
    return False


NO_SESSION_REQUESTS = SessionRequests(lambda _: (), _no_session_runs)


async def show_nothing(_: DesktopNotification) -> None:
    """Show no notification."""


class FakeEventStore(Store):
    """The events of `first`, then the batches of the saver, one second apart."""

    def __init__(self, saver: FakeSaver, first: Callable[[], Sequence[HistoryEvent]]) -> None:
        self._saver = saver
        self._first = first

    def events(self, after: int = 0, limit: int | None = None) -> tuple[HistoryEvent, ...]:
        whole = [*self._first()]
        for number, batch in enumerate(self._saver.batches):
            head = whole[-1].head if whole else CHAIN_START
            whole += events_for(batch, NOON + timedelta(seconds=number), head)
        later = tuple(event for event in whole if event.seq > after)
        return later if limit is None else later[:limit]

    def last_events(self, count: int) -> tuple[HistoryEvent, ...]:
        return self.events()[-count:]


class ControlHarness:
    """A dispatcher with its fakes. `ask` sends a request as a person does."""

    def __init__(self, *projects: Project, rules: Sequence[Rule] = ()) -> None:
        self.world = LedgerHarness(*projects, rules=rules)
        self.discovery = FakeDiscovery(self.world)
        self.daemon = FakeDaemonControl()
        self.events: list[HistoryEvent] = []
        self.wall_settings = WallSettings()
        self.servers = FakeServerSessions()
        self.sessions_by_pid: dict[int, frozenset[str]] = {}
        self.lineages: dict[str, frozenset[str]] = {}
        self.process_table = ProcessTable()
        self.guard = self.process_table.guard(self.world.ledger.note)
        self.reader = FakeProjectReader()
        self.changed: list[str] = []
        self.notes: dict[bytes, str] = {}
        self.inspector = Inspector(
            self.world.ledger,
            self.reader,
            lambda _, names: self.changed.extend(names),
            ChangePolicy.TELL,
        )
        archive = FakeEventStore(self.world.saver, lambda: self.events)
        self.services = ControlServices(
            ledger=self.world.ledger,
            discovery=self.discovery,
            daemon=self.daemon,
            command_guard=self.guard,
            archive=archive,
            more_routes=PendingNotifier(
                self.world.ledger, FakeRequestFeed(), settings=NotifyTable(), show=show_nothing
            ).routes,
            wall=self._wall(),
            note_on=self.notes.get,
            requests=NO_SESSION_REQUESTS,
            reader=self.reader,
            inspector=self.inspector,
            real_path=real_path,
            is_canonical=lambda _: False,
            state=b"/",
            changes=ChangeSignal(),
        )

    def _wall(self) -> WallServices:
        async def canonical(path: bytes) -> bytes:
            return real_path(path.decode(), "/")

        async def session_start(folder: bytes) -> SessionStart:
            return session_start_in(self.world.ledger.catalog, folder)

        async def sessions_of(pid: int) -> frozenset[str]:
            return self.sessions_by_pid.get(pid, frozenset())

        async def lineage_of(session: SessionKey) -> frozenset[str]:
            await anyio.lowlevel.checkpoint()
            return self.lineages.get(session.id, frozenset())

        return WallServices(
            WardenRegistry(self.world.ledger, lambda: NOON, lineage_of),
            lambda: self.wall_settings,
            canonical,
            session_start,
            sessions_of,
            self.servers,
        )

    @property
    def dispatcher(self) -> Dispatcher:
        """The dispatcher, with the means as they are."""
        return Dispatcher(self.services)

    async def ask(
        self, request: ControlRequest, connection: ConnectionState | None = None
    ) -> dict[str, Any]:
        """Return the result of a request, on a new connection or on `connection`.

        The person confirms what the request decides about.
        """
        try:
            return await self.ask_unconfirmed(request, connection)
        except Unconfirmed:
            assert isinstance(request, Confirmable)
            plan = await self.ask_unconfirmed(replace(request, effect=ApplyMode.DRY_RUN))
            tokens = tuple(each["token"] for each in plan["confirmation"]["projects"])
            return await self.ask_unconfirmed(replace(request, confirmed=tokens), connection)

    async def ask_unconfirmed(
        self, request: ControlRequest, connection: ConnectionState | None = None
    ) -> dict[str, Any]:
        """Do the same as `ask`, but let the gate refuse a request about several projects."""
        call = RequestContext(PERSON, connection=connection or ConnectionState())
        with anyio.fail_after(HANG_GUARD):
            return await self.dispatcher.answer(request, call)

    async def decide(
        self,
        verb: DecisionVerb,
        *refs: str,
        cwd: str = CWD,
        **more: Any,  # noqa: ANN401 - whatever else a Decide takes
    ) -> dict[str, Any]:
        """Return the result of a decision."""
        return await self.ask(DecideRequest(verb, cwd, refs, **more))


def names(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the items."""
    return [item["name"] for item in items]
