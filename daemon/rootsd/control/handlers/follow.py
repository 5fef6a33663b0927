"""Handle the requests to follow the daemon, and to list a session's roots.

`rootsd.control.wardens` follows the roots in a scope. A screen follows all projects: it compares
the catalog with the one that it sent last. Projects are immutable, so the comparison is cheap, and
only projects that differ become items. While a follower sends, changes collect.
So a slow reader gets fewer messages, and the daemon keeps none for it.

Nothing here verifies the roots on the disk. An approval carries the identity of the folder that
was shown, and the ledger compares it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import anyio
from anyio import lowlevel
from msgspec import Struct, field

from rootsd.control.items import project_items, why_not_inherited
from rootsd.control.references import similar_names
from rootsd.control.routes import RequestContext, Result, Route, query_route
from rootsd.control.services import ControlServices, Handlers
from rootsd.control.wardens import (
    ConnectedWarden,
    RootsFollower,
    SendNotification,
)
from rootsd.core.catalog import Catalog
from rootsd.core.encoding import identity_fingerprint
from rootsd.core.model import Focus, Project, ProjectKind, Verdict
from rootsd.core.mount_plan import ConfinedRoot
from rootsd.core.paths import RefusedPlaces
from rootsd.core.record import to_json
from rootsd.core.scope import Scope
from rootsd.core.suggestions import nearest
from rootsd.core.wall import WallUse
from rootsd.state.change_signal import ChangeSignal
from rootsd.state.ledger import Ledger
from rootsd.wire.daemon import SessionItem
from rootsd.wire.feed import CHANGE_METHOD, refuse_other_version
from rootsd.wire.follow import (
    MAX_FOLLOW_ITEMS,
    FeedChange,
    FeedPart,
    FollowedProject,
    FollowRequest,
    FollowResult,
    MoveRequest,
    ProjectGroup,
    ScreenChange,
    SessionRoots,
    SessionRootsQuery,
)
from rootsd.wire.hello import Hello, MoveResult, decode_hello
from rootsd.wire.request import BadRequest
from rootsd.wire.scope import move_scope, resolve_scope, resume_state
from rootsd.wire.wall import ConfinedProgramItem, ReportConfinedRequest

_COMPARED_AT_ONCE = 1_000


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module."""
    handlers = FollowHandlers(services)
    return (
        Route(FollowRequest, handlers.follow, lambda _: None),
        Route(ReportConfinedRequest, handlers.report, lambda _: None),
        Route(MoveRequest, handlers.move, lambda _: None),
        query_route(SessionRootsQuery, handlers.session_roots),
    )


class UnknownWord(NamedTuple):
    """A word of a scope that fits no project, and the known words that are most like it."""

    word: str
    similar: Sequence[str]


class FollowHandlers(Handlers):
    """Handles the requests of followers, and `SessionRootsQuery`."""

    async def follow(self, request: FollowRequest, call: RequestContext) -> Result:
        """Begin a subscription.

        Raises OtherVersion for a program of another version, BadRequest for a wrong scope or a
        second subscription on the connection, and Busy.
        """
        refuse_other_version(request.version)
        if call.connection.subscription is not None:
            raise BadRequest("this connection has a subscription already")
        start = None
        unknown: Sequence[UnknownWord] = ()
        match request.part:
            case FeedPart.SCREEN:
                call.connection.subscription = ScreenFollower(self.services)
            case FeedPart.ROOTS:
                scope, client = await self._scope_of(request)
                wardens, pid = self.services.wall.wardens, call.connection.pid
                sessions = await self.services.wall.sessions_of(pid)
                # Verify the roots, which may have been replaced. Later changes need no
                # verification.
                await self.ledger.current()
                follower = RootsFollower(wardens, scope, sessions)
                if request.wall is not None:
                    servers = self.services.wall.servers if request.use is WallUse.SERVER else None
                    follower = wardens.connect(client, request.wall, scope, sessions, pid, servers)
                    unknown = [*self._unknown_words(scope)]
                call.connection.subscription = follower
                start = resume_state(scope)
        words = tuple(each.word for each in unknown)
        similar = tuple(known for each in unknown for known in each.similar)
        return to_json(FollowResult(start, self.services.wall.settings(), words, similar))

    def _unknown_words(self, scope: Scope) -> Iterator[UnknownWord]:
        catalog = self.ledger.catalog
        projects = catalog.projects.values()
        if scope.names:
            names = {catalog.name_of(each) for each in projects}
            for name in sorted(scope.names - names):
                yield UnknownWord(name, similar_names(name, names))
        if scope.tags:
            tags = {tag for each in projects for tag in each.ruling.tags}
            for tag in sorted(scope.tags - tags):
                similar = [f"tag:{each}" for each in nearest(tag, tags)]
                yield UnknownWord(f"tag:{tag}", similar)

    async def _scope_of(self, request: FollowRequest) -> tuple[Scope, str]:
        """Return the scope of a follower of roots, and its name. Raises BadRequest."""
        greeting = Hello()
        try:
            if request.hello is not None:
                greeting = decode_hello(request.hello)
            wall = self.services.wall
            scope = await resolve_scope(greeting, wall.canonical, wall.session_start)
        except ValueError as error:
            raise BadRequest(f"the scope cannot be used: {error}") from error
        return scope, greeting.client

    async def report(self, request: ReportConfinedRequest, call: RequestContext) -> Result:
        """Update the entry of the connection's program. Raises BadRequest if there is none."""
        warden = call.connection.subscription
        if not isinstance(warden, ConnectedWarden):
            raise BadRequest("this connection has no confined program")
        warden.report(request)
        await warden.propose(request.opened)
        return {}

    async def move(self, request: MoveRequest, call: RequestContext) -> Result:
        """Send the roots of the place where the session works now. Raises BadRequest."""
        follower = call.connection.subscription
        if not isinstance(follower, RootsFollower):
            raise BadRequest("this connection follows no roots")
        wall = self.services.wall
        try:
            moved = await move_scope(
                follower.first_scope,
                follower.start_now,
                request.folders,
                wall.canonical,
                wall.session_start,
                self.ledger.current,
            )
        except ValueError as error:
            raise BadRequest(f"this move cannot be used: {error}") from error
        if isinstance(follower, ConnectedWarden):
            await follower.propose(moved.outside)
        if moved.scope is None:
            return to_json(MoveResult(moved.outside))
        await follower.move(moved.scope)
        return to_json(MoveResult(moved.outside, resume_state(moved.scope)))

    async def session_roots(self, query: SessionRootsQuery) -> Result:
        """Return the roots of a session or a confined program, as they were sent to it."""
        roots = self.services.daemon.session_roots(
            query.id
        ) or self.services.wall.wardens.roots_of(query.id)
        items = (ConfinedRoot(root.path, root.access, name=root.name) for root in roots)
        return to_json(SessionRoots(tuple(items)))


class Shown(NamedTuple):
    """What the reader knows about a project.

    `state` has everything that the item depends on, apart from its name.
    """

    id: str
    state: tuple[object, ...]
    name: str


class ScreenFollower(Struct):
    """One screen, with what its reader knows."""

    services: ControlServices
    _known: dict[bytes, Shown] = field(default_factory=dict)
    """The projects that were sent, by path."""
    _compared: tuple[RefusedPlaces, int] | None = None
    """The refused places, and the number of changes outside the ledger, when the reader last knew
    everything.
    """
    _number: int = 0
    _sessions: list[SessionItem] | None = None
    _confined: list[ConfinedProgramItem] | None = None
    _focus: str | None = None
    _is_complete: bool = False

    async def send_updates(self, send: SendNotification) -> None:
        """Send everything, and then each change, for as long as the connection lives."""
        ledger, changes = self.services.ledger, self.services.changes
        while True:
            catalog, focus, number = ledger.catalog, ledger.focus, changes.number
            if (change := await self._next_change(catalog, number)) is None:
                self._compared = (catalog.places, number)
                await _wait_for_change(ledger, catalog, focus, changes, number)
                continue
            sent, self._number = self._number, self._number + 1
            await send(
                CHANGE_METHOD,
                to_json(FeedChange(sent, ledger.revision, self._focus, None, change)),
            )

    def close(self) -> None:
        """Do nothing, because the daemon keeps nothing about a follower."""

    async def _next_change(self, catalog: Catalog, number: int) -> ScreenChange | None:
        """Return what the reader does not know yet, or None if it knows everything."""
        # A decision can change the proposed names of others, so it is sent before.
        changed = await self._changed(catalog, number) or list(
            islice(self._renamed(catalog), MAX_FOLLOW_ITEMS + 1)
        )
        gone = [path for path in self._known if path not in catalog.projects]
        sessions, confined = (
            self.services.daemon.session_items(),
            self.services.wall.wardens.items(),
        )
        before = (self._sessions, self._confined, self._focus)
        now = (sessions, confined, self.services.ledger.focus.tag)
        if self._is_complete and before == now and not changed and not gone:
            return None
        self._sessions, self._confined, self._focus = now
        self._is_complete = len(changed) <= MAX_FOLLOW_ITEMS
        return ScreenChange(
            projects=self._items(catalog, changed[:MAX_FOLLOW_ITEMS]),
            gone=[self._known.pop(path).id for path in gone],
            sessions=None if sessions == before[0] else sessions,
            confined=None if confined == before[1] else confined,
            is_complete=self._is_complete,
        )

    async def _changed(self, catalog: Catalog, number: int) -> list[Project]:
        """Return the projects whose state is not the one that was sent: one more than is sent.

        Whoever waits for an answer of the daemon gets it in between.
        """
        are_others_same = self._compared == (catalog.places, number)
        changed = []
        for count, (path, project) in enumerate(catalog.projects.items(), 1):
            if count % _COMPARED_AT_ONCE == 0:
                await lowlevel.checkpoint()
            known = self._known.get(path)
            if known is not None and are_others_same and _is_untouched(known, catalog, project):
                continue
            if known is None or known.state != self._state_of(catalog, project):
                changed.append(project)
                if len(changed) > MAX_FOLLOW_ITEMS:
                    break
        return changed

    def _renamed(self, catalog: Catalog) -> Iterator[Project]:
        """Yield the known projects whose proposed name is not the one that was sent.

        A name that is kept is a part of the state.
        """
        for path, name in catalog.proposed_names.items():
            if self._known[path].name != name:
                yield catalog.projects[path]

    def _state_of(self, catalog: Catalog, project: Project) -> tuple[object, ...]:
        path = project.path
        return (
            project,
            catalog.judgments[path],
            catalog.roots.get(path),
            catalog.places,  # with the project, it says whether an approval could publish it
            self.services.note_on(path),
            why_not_inherited(catalog, project),
        )

    def _items(self, catalog: Catalog, projects: Sequence[Project]) -> list[FollowedProject]:
        items = project_items(
            catalog, projects, self.services.discovery.parents(), self.services.note_on
        )
        followed = []
        for item, project in zip(items, projects, strict=True):
            item["identity"] = identity_fingerprint(project.observed.identity)
            state = self._state_of(catalog, project)
            self._known[project.path] = Shown(project.id, state, item["name"])
            group = group_of(catalog, project)
            followed.append(FollowedProject(group=group.value, item=item))
        return followed


def _is_untouched(known: Shown, catalog: Catalog, project: Project) -> bool:
    """Return whether a project is as it was sent, if nothing but the catalog has changed.

    To compare all states of 5,000 projects takes 10 ms, and this 1 ms: a new catalog has the same
    objects for what did not change. With the judgment, the root stays.
    """
    known_project, known_judgment, *_ = known.state
    return (
        known_project is project
        and known_judgment is catalog.judgments[project.path]
        # Its sentence depends on its main checkout.
        and project.observed.kind is not ProjectKind.GIT_WORKTREE
    )


def group_of(catalog: Catalog, project: Project) -> ProjectGroup:
    """Return where a screen lists the project."""
    if catalog.is_pending(project) or catalog.is_incomplete(project):
        return ProjectGroup.PENDING
    match catalog.judgments[project.path].verdict:
        case Verdict.APPROVED:
            return ProjectGroup.APPROVED
        case Verdict.DENIED:
            return ProjectGroup.DENIED
        case Verdict.PENDING:
            return ProjectGroup.OTHER


async def _wait_for_change(
    ledger: Ledger, catalog: Catalog, focus: Focus, changes: ChangeSignal, number: int
) -> None:
    """Wait until the catalog, the focus, or anything that notifies `changes` has changed."""
    async with anyio.create_task_group() as group:

        async def end_after(change: Callable[[], Awaitable[object]]) -> None:
            await change()
            group.cancel_scope.cancel()

        group.start_soon(end_after, partial(ledger.wait_for_catalog_or_focus, catalog, focus))
        group.start_soon(end_after, partial(changes.wait_past, number))
