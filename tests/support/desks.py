"""A desk with everything it speaks to: discovery, the daemon, and a disk that is a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from posixpath import join, normpath
from typing import Any

import anyio

from rootsd.control.dispatch import ControlServices, Dispatcher
from rootsd.control.handlers.audit_log import AuditLogHandlers
from rootsd.control.handlers.scan import ScanStats
from rootsd.control.routes import ProgressSink, RequestContext
from rootsd.core.catalog import Catalog
from rootsd.core.errors import NotPresent
from rootsd.core.history import CHAIN_START, HistoryEvent, events_for
from rootsd.core.inputs import Observation, ProjectObserved
from rootsd.core.model import Actor, Parent, Project, ProjectKind, Rule
from rootsd.core.paths import bytes_of, contains
from rootsd.daemon.notifier import PendingNotifier
from rootsd.mcp.sessions.requests import RootRequest
from rootsd.wire.daemon import (
    ConfigStatus,
    DaemonStatus,
    ParentStatus,
    ScanProgressItem,
    SessionItem,
    SessionStatus,
)
from rootsd.wire.decisions import DecideRequest, DecisionVerb
from rootsd.wire.request import ControlRequest
from support.decisions import NOON, PERSON
from support.fakes import HANG_GUARD, SOURCES, FakeSaver, World
from support.street import Street

CWD = "/home/ann/src"
APPROVE, DENY, FORGET = DecisionVerb.APPROVE, DecisionVerb.DENY, DecisionVerb.FORGET
LINKS = {
    b"/home/ann/link": b"/home/ann/src/p1",
    b"/home/ann/odd-link": b"/home/ann/src/a[b]c",
}


def real_path(typed: str, cwd: str) -> bytes:
    """As the daemon's, on a disk where LINKS are all the links there are."""
    whole = bytes_of(normpath(join(cwd, typed)))
    if b"\0" in whole:
        raise ValueError("embedded null byte")
    for link, target in LINKS.items():
        if contains(link, whole):
            return target + whole.removeprefix(link)
    return whole


class FakeSurveyor:
    """A scan takes in what it was told to find; folders are those that the world's disk holds."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.finds: Sequence[Observation] = ()
        self.scanned: list[bytes | None] = []
        self.proposed: list[bytes] = []
        self.followed: list[bytes] = []
        self.being_made: frozenset[bytes] = frozenset()
        self.troubles: list[str] = []

    def parents(self) -> Sequence[Parent]:
        return (Parent(SOURCES),)

    def parent_status(self, catalog: Catalog) -> list[ParentStatus]:
        return [
            ParentStatus(
                path="/home/ann/src",
                depth=4,
                nested="none",
                state="watching",
                note=None,
                remedy=None,
                projects=len(catalog.projects),
            )
        ]

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
        await self._world.ledger.observe([await self.foresee(path)])

    async def foresee(self, path: bytes) -> ProjectObserved:
        there = self._world.disk.folders.get(path)
        if there is None:
            raise NotPresent("there is no such folder", "rootsd ls")
        return ProjectObserved(path, ProjectKind.GIT, there)

    async def follow(self, mains: Sequence[bytes]) -> None:
        self.followed += mains


def a_session(id_: str) -> SessionItem:
    """A session that was given nothing yet."""
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


class FakeHost:
    """A daemon that remembers what it was told to do."""

    def __init__(self) -> None:
        self.troubles: list[str] = []
        self.told: list[str] = []

    def about(self) -> DaemonStatus:
        return DaemonStatus(version="1.2.3", pid=4, since="2026-03-04T12:00:00Z", confined="none")

    def config_status(self) -> ConfigStatus:
        return ConfigStatus(
            file="/home/me/config.toml", read_at="2026-03-04T12:00:00Z", checksum="00000000",
            changes=[], error=None,
        )  # fmt: skip

    def sessions(self) -> list[SessionStatus]:
        return [SessionStatus(client="an editor", pid=5, since="2026-03-04T12:00:00Z")]

    def session_items(self) -> list[SessionItem]:
        return [a_session("open")]

    def session_history(self, last: int) -> list[SessionItem]:
        return [a_session(f"old{number}") for number in range(last)]

    def closed_connections(self) -> dict[str, int]:
        return {"of another user": 3}

    def degraded(self, *, is_look: bool) -> list[str]:
        return self.troubles

    async def reload(self, actor: Actor | None = None) -> None:
        del actor
        self.told.append("reload")

    def stop(self) -> None:
        self.told.append("stop")


class FakeRequestFeed:
    """Nobody asks for anything, unless a test puts a note there."""

    def __init__(self) -> None:
        self.on_pending: Callable[[RootRequest], None] = lambda wish: None
        self.notes: dict[bytes, str] = {}

    def note_on(self, path: bytes) -> str | None:
        return self.notes.get(path)


class FakeArchive:
    """What the saver was given, behind what `first` gives; a second between two batches."""

    def __init__(self, saver: FakeSaver, first: Callable[[], Sequence[HistoryEvent]]) -> None:
        self._saver = saver
        self._first = first

    def events(self, after: int = 0, limit: int | None = None) -> list[HistoryEvent]:
        whole = [*self._first()]
        for number, batch in enumerate(self._saver.batches):
            head = whole[-1].head if whole else CHAIN_START
            whole += events_for(batch, NOON + timedelta(seconds=number), head)
        later = [event for event in whole if event.seq > after]
        return later if limit is None else later[:limit]

    def last_events(self, count: int) -> list[HistoryEvent]:
        return self.events()[-count:]


class Office:
    """A desk and its surroundings; `ask` is what a person does."""

    def __init__(self, *projects: Project, rules: Sequence[Rule] = ()) -> None:
        self.world = World(*projects, rules=rules)
        self.surveyor = FakeSurveyor(self.world)
        self.host = FakeHost()
        self.events: list[HistoryEvent] = []
        self.street = Street()
        self.gate = self.street.gate(self.world.ledger.note)
        archive = FakeArchive(self.world.saver, lambda: self.events)
        self.means = ControlServices(
            self.world.ledger,
            self.surveyor,
            self.host,
            AuditLogHandlers(self.world.ledger, self.gate, archive),
            PendingNotifier(self.world.ledger, FakeRequestFeed(), clock=lambda: 0.0),
            real_path=real_path,
        )

    @property
    def desk(self) -> Dispatcher:
        """The desk, with the means as they are."""
        return Dispatcher(self.means)

    async def ask(self, request: ControlRequest) -> dict[str, Any]:
        """The answer of the desk."""
        with anyio.fail_after(HANG_GUARD):
            return await self.desk.answer(request, RequestContext(PERSON))

    async def decide(
        self,
        verb: DecisionVerb,
        *refs: str,
        cwd: str = CWD,
        **more: Any,  # noqa: ANN401 - whatever else a Decide takes
    ) -> dict[str, Any]:
        """The answer to an order."""
        return await self.ask(DecideRequest(verb, cwd, refs, **more))


def names(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of the items."""
    return [item["name"] for item in items]
