"""The followers of roots on the control socket, and the wardens among them.

A follower gets its whole view, and then what a change of the catalog or the focus changes in it.
The roots are not verified on the disk, because a change that takes a root away must not wait. A
warden compares the identity of each folder itself before it mounts the folder. So an outdated view
opens no other folder.

A root that is approved for one session is in the view if the warden belongs to that session, or if
the session runs behind the wall. An agent there that requests a folder can then open it. Whether a
session runs there is looked up while the warden waits, so the lookup delays no change.

Texts from wardens come from programs that may be hostile. This module cuts them and makes them
safe to show. It also limits the number of wardens.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from itertools import islice
from typing import Any, Protocol

import anyio
from msgspec import Struct
from msgspec.structs import replace

from rootsd.core.errors import Busy, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.model import Identity, PublishedRoot, PublishedSet, SessionKey
from rootsd.core.mount_plan import ConfinedRoot, FolderIdentity
from rootsd.core.processes import Process
from rootsd.core.record import to_json
from rootsd.core.scope import Scope, SessionStart, apply_focus, describe_scope
from rootsd.core.session_keys import handle_of, has_process
from rootsd.core.session_observer import SessionObserver
from rootsd.core.shared_git import GitAccess
from rootsd.core.timestamps import rfc3339
from rootsd.core.wall import WallEngine, WallSettings
from rootsd.core.wall_peers import PeerPlace, WallPeer
from rootsd.core.wall_view import (
    WallRoot,
    WallRoots,
    WallView,
    view_change,
    wall_view,
)
from rootsd.state.change_signal import ChangeSignal
from rootsd.state.ledger import Ledger
from rootsd.wire.feed import (
    CHANGE_METHOD,
    GIVE_METHOD,
    WIDEN_METHOD,
    GivenFiles,
    RootsChange,
    WidenedScope,
)
from rootsd.wire.follow import FeedChange
from rootsd.wire.hello import decode_reported_roots
from rootsd.wire.wall import (
    ConfinedProgramItem,
    GivenReport,
    ReportConfinedRequest,
    WallProgram,
)

MAX_WARDENS = 256
MAX_LINES = 32
MAX_LINE_LENGTH = 200
MAX_CHANGED = 1024

SendNotification = Callable[[str, Mapping[str, Any]], Awaitable[None]]


_GIVE_TIMEOUT_S = 10.0
_APPLY_TIMEOUT_S = 1.0
_CONNECTION_LOST = (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)
_SESSIONS = "rootsd sessions"


class CannotGive(RootsdError):
    """A program behind the wall that no file can be given to."""


class RootsFollower:
    """One follower of the roots in a scope, and the view that it got last."""

    def __init__(self, wardens: WardenRegistry, scope: Scope, sessions: frozenset[str]) -> None:
        self._wardens = wardens
        self.first_scope = scope
        """The scope that the follower asked for when it began."""
        self._scope = replace(scope, sessions=sessions)
        self._own_sessions = sessions
        self._other_sessions = set[str]()
        self._focus = wardens.ledger.focus
        self._view = WallView(wardens.ledger.revision, ())
        self._sent: tuple[object, ...] = ()
        self._number = 0
        self._seen: tuple[object, object] = (None, None)  # the catalog and the focus
        self._looked_in: object = None  # the catalog whose sessions were looked up
        self._progress = ChangeSignal()
        self._send_roots: SendNotification | None = None

    @property
    def start_now(self) -> SessionStart:
        """The start of the session, or of its last move."""
        return self._scope.start

    async def move(self, scope: Scope) -> None:
        """Send the roots of another scope from now on, and return when they are sent."""
        self._set_scope(replace(scope, sessions=self._scope.sessions))
        if self._send_roots is not None:
            await self._send_change(self._send_roots)

    def _set_scope(self, scope: Scope) -> None:
        self._scope = scope

    async def send_updates(self, send: SendNotification) -> None:
        """Send all roots, and then each change, for as long as the connection lives.

        If the follower reads slowly, the next message combines all changes that it has missed.
        """
        ledger, self._send_roots = self._wardens.ledger, send
        await self._find_sessions_inside()
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow_sessions, send)
            while True:
                catalog, focus = ledger.catalog, ledger.focus
                await self._send_change(send)
                # Nothing may come between this wait and the message: when a denial has returned,
                # its message must be in the socket.
                await ledger.wait_for_catalog_or_focus(catalog, focus)

    def close(self) -> None:
        """Do nothing, because the daemon keeps nothing about a follower."""

    def sent_roots(self) -> Sequence[PublishedRoot]:
        """Return the roots in the view that the follower got last."""
        return [shown.root for shown in self._view.roots]

    def scope_in(self, published: PublishedSet) -> Scope:
        """Return the scope that the follower has when this set is published."""
        return apply_focus(self._scope, published.focus, self._focus)

    async def _send_change(self, send: SendNotification) -> None:
        ledger = self._wardens.ledger
        self._seen = ledger.catalog, ledger.focus
        self._progress.notify()
        scope = apply_focus(self._scope, ledger.focus, self._focus)
        view = wall_view(ledger.revision, self._wardens.roots(), scope)
        tag = ledger.focus.tag
        if self._sent == (now := (view.roots, view.denied, tag)):
            return
        change = self._wardens.roots_change(self._view, view)
        self._view, self._sent, self._number = view, now, self._number + 1
        self._note_sent(scope)
        number = self._number - 1
        await send(
            CHANGE_METHOD,
            to_json(FeedChange(number, view.revision, tag, change, None)),
        )

    def _note_sent(self, scope: Scope) -> None:
        """Note that a view in `scope` is about to be sent."""

    async def _follow_sessions(self, send: SendNotification) -> None:
        """Add each session that begins behind the wall of the follower."""
        ledger = self._wardens.ledger
        while True:
            catalog = ledger.catalog
            if await self._find_sessions_inside():
                await self._send_change(send)
            self._looked_in = catalog
            self._progress.notify()
            await ledger.wait_for_change(catalog)

    async def _find_sessions_inside(self) -> bool:
        """Add the sessions behind the wall to the scope, and return whether there are new ones.

        A session whose process cannot be seen is looked up again after the next change.
        """
        bound = self._wardens.ledger.catalog.session_bound.values()
        before = self._scope.sessions
        for session in [each for each in bound if each.id not in before | self._other_sessions]:
            line = await self._wardens.lineage_of(session)
            # All ancestors of the follower are also ancestors of the processes that it started.
            if self._own_sessions and self._own_sessions < line:
                self._scope = replace(self._scope, sessions=self._scope.sessions | {session.id})
            elif line:
                self._other_sessions.add(session.id)
        return self._scope.sessions != before


class ConnectedWarden(RootsFollower):
    """One connected warden, with the entry of its program.

    `servers` is for a program that is an MCP server. It has a session of its own.
    """

    def __init__(
        self,
        wardens: WardenRegistry,
        entry: ConfinedProgramItem,
        scope: Scope,
        sessions: frozenset[str],
        servers: ServerSessions | None,
    ) -> None:
        super().__init__(wardens, scope, sessions)
        self.entry = entry
        self._servers = servers
        self._session: SessionObserver | None = None
        self._changed: set[str] = set()
        self._send: SendNotification | None = None
        self._applied: int | None = None  # until the wall is built
        self._given: dict[str, GivenReport | None] = {}

    async def send_updates(self, send: SendNotification) -> None:
        """Keep the session of a server open for as long as the connection lives, and send the
        roots; see RootsFollower.
        """
        self._send = send
        if self._servers is None:
            await super().send_updates(send)
            return
        async with self._servers.walled_session(self.entry["warden"]) as self._session:
            self._session.named(self.entry["name"])
            await super().send_updates(send)

    def report(self, request: ReportConfinedRequest) -> None:
        """Update the entry of the program, and note which roots a server got."""
        entry = self.entry
        entry["network"] = entry["network"] if request.network is None else request.network
        if request.stays_open is not None:
            entry["stays_open"] = _lines(request.stays_open)
        if request.refused is not None:
            entry["refused"] = _lines(request.refused)
        if (state := request.state) is not None:
            entry["holders"] = _lines(state["holders"])
            entry["not_shown"] = _lines(state["not_shown"])
            entry["roots"] = _count(state["roots"], entry["roots"])
            entry["read_only"] = _count(state["read_only"], entry["read_only"])
            entry["masked"] = _count(state["masked"], entry["masked"])
            entry["waiting"] = _count(state["waiting"], entry["waiting"])
            self._applied = -1 if self._applied is None else self._applied
        if request.applied is not None:
            self._applied = request.applied
            self._progress.notify()
        self._wardens.changes.notify()
        new = [name for name in request.changed[:MAX_LINES] if name not in self._changed]
        if new and len(self._changed) < MAX_CHANGED:  # one notification for each file
            self._changed.update(new)
            self._wardens.on_changed(entry["name"], new)
        if request.given is not None and request.given["folder"] in self._given:
            self._given[request.given["folder"]] = request.given
        told = None if request.told is None else decode_reported_roots(dict(request.told))
        if told is not None and self._session is not None:
            self._session.roots_reported(told[0], tuple(map(safe_label, told[1])))

    def _set_scope(self, scope: Scope) -> None:
        super()._set_scope(scope)
        self.entry["scope"] = [safe_label(word, limit=None) for word in describe_scope(scope)]

    async def give(self, files: GivenFiles) -> list[str]:
        """Show files to the program. Return why it does not see each one; empty if it does.

        Raises CannotGive.
        """
        if self._send is None or self._servers is not None:
            raise CannotGive(f"{self.entry['name']} is no program of rootsd confine", _SESSIONS)
        self._given[files.folder] = None
        changes = self._wardens.changes
        try:
            with anyio.move_on_after(_GIVE_TIMEOUT_S):
                await self._send(GIVE_METHOD, to_json(files))
                while (report := self._given[files.folder]) is None:
                    await changes.wait_past(changes.number)
                return [safe_label(each) if each else "" for each in report["problems"]]
        except _CONNECTION_LOST:
            pass
        finally:
            del self._given[files.folder]
        raise CannotGive(f"the wall of {self.entry['name']} does not answer", _SESSIONS)

    async def add(self, names: Iterable[str]) -> str:
        """Add roots to the scope by their names. Return why the program does not see them yet.

        It is empty if the program sees them. A program that followed the focus keeps the tag that
        the focus has now. Raises CannotGive.
        """
        focus = self._wardens.ledger.focus
        scope = apply_focus(self._scope, focus, self._focus)
        if not scope.is_full:
            scope = replace(scope, names=scope.names | {*names})
            first = self.first_scope
            self.first_scope = replace(scope, folder=first.folder, start=first.start)
            self._set_scope(scope)
        more = WidenedScope(tuple(sorted(self._scope.names)), tuple(sorted(self._scope.tags)))
        try:
            if self._send is not None:
                await self._send(WIDEN_METHOD, to_json(more))
                await self._send_change(self._send)
        except _CONNECTION_LOST:
            raise CannotGive(f"{self.entry['name']} has ended", _SESSIONS) from None
        with anyio.move_on_after(_APPLY_TIMEOUT_S):
            await self.catch_up()
        if self.entry["engine"] is WallEngine.STATIC:
            return "at the program's next start"
        return "" if self.has_applied else "the wall has not confirmed it yet"

    @property
    def has_applied(self) -> bool:
        """Whether the wall shows the roots of now, and no others, or has ended.

        A wall that is not built yet applies what was sent before its program starts.
        """
        ledger = self._wardens.ledger
        if not self._wardens.has(self):
            return True
        catalog, focus = self._seen
        is_seen = catalog is ledger.catalog and focus is ledger.focus
        is_sent = is_seen and self._looked_in is ledger.catalog
        return is_sent and self._applied in (None, self._number - 1)

    async def catch_up(self) -> None:
        """Return when the wall `has_applied` everything."""
        while not self.has_applied:
            await self._progress.wait_past(self._progress.number)

    async def propose(self, paths: Iterable[str]) -> None:
        """Propose the folders that the client of a server has open."""

        async def current() -> PublishedSet:
            return self._sent_set()

        if (servers := self._servers) is None:
            return
        for path in paths:
            pid, name = self.entry["warden"], self.entry["name"]
            await servers.propose(path, pid, name, current)

    def is_owned_by(self, process: Process) -> bool:
        """Return whether `process` is the front or the run proxy that owns this wall.

        The warden's own connection has proved it, unless the lookup of its ancestors failed.
        """
        if has_process(self._own_sessions, process):
            return True
        return not self._own_sessions and process.pid in (self.entry["pid"], self.entry["warden"])

    def is_below(self, line: frozenset[str]) -> bool:
        """Return whether the process with this line of ancestors has started this wall."""
        return line < self._own_sessions

    @property
    def session(self) -> SessionKey | None:
        """The session of the process that owns this wall. None if that is no ancestor."""
        name, pid = self.entry["name"], str(self.entry["pid"])
        keys = (SessionKey(id_, f"{name}, pid {pid}") for id_ in self._own_sessions)
        return next((key for key in keys if handle_of(key) == pid), None)

    def close(self) -> None:
        """Remove the entry, because the connection has ended."""
        self._wardens.remove(self)
        self._progress.notify()

    def _note_sent(self, scope: Scope) -> None:
        if self._session is not None:
            self._session.scoped(scope)
            self._session.roots_sent(self._sent_set())

    def _sent_set(self) -> PublishedSet:
        return PublishedSet(self._view.revision, tuple(self.sent_roots()))


class WardenRegistry:
    """The connected wardens, oldest first.

    `lineage_of` returns the ids of the process of a session and of all processes above it, as
    `SessionTracker.lineage_of`. `changes` is notified when an entry changes. The notifier
    sets `on_changed`, which is called with the name of a program, and the names of files that run
    outside and that it has changed. These names are not made safe.
    """

    def __init__(
        self,
        ledger: Ledger,
        now: Callable[[], datetime],
        lineage_of: Callable[[SessionKey], Awaitable[frozenset[str]]],
        changes: ChangeSignal | None = None,
    ) -> None:
        self.ledger = ledger
        self.lineage_of = lineage_of
        self.changes = changes or ChangeSignal()
        self.on_changed: Callable[[str, Sequence[str]], None] = lambda *_: None
        self._now = now
        self._wardens: dict[str, ConnectedWarden] = {}
        self._roots = WallRoots.of(ledger.catalog)

    def connect(
        self,
        name: str,
        program: WallProgram,
        scope: Scope,
        sessions: frozenset[str],
        pid: int,
        servers: ServerSessions | None,
    ) -> ConnectedWarden:
        """Register the program of a warden that runs as `pid`. Raises Busy if there are too many.

        `sessions` are the ids of the sessions that the warden belongs to. `servers` is for an MCP
        server, which gets a session of its own.
        """
        if len(self._wardens) >= MAX_WARDENS:
            raise Busy(f"{MAX_WARDENS} programs are confined already", "rootsd sessions")
        word = program["program"]
        entry = ConfinedProgramItem(
            id=secrets.token_hex(4),
            name=safe_label(name),
            program=safe_label(word, MAX_LINE_LENGTH) if word else "",
            pid=_count(program["pid"], 0),
            warden=pid,
            engine=program["engine"],
            landlock=_count(program["landlock"], 0),
            network=program["network"],
            scope=[safe_label(word, limit=None) for word in describe_scope(scope)],
            since=rfc3339(self._now()),
            roots=0,
            read_only=0,
            masked=0,
            waiting=0,
            stays_open=[],
            refused=[],
            holders=[],
            not_shown=[],
        )
        warden = ConnectedWarden(self, entry, scope, sessions, servers)
        self._wardens[entry["id"]] = warden
        self.changes.notify()
        return warden

    def remove(self, warden: ConnectedWarden) -> None:
        """Forget a warden."""
        self._wardens.pop(warden.entry["id"], None)
        self.changes.notify()

    def has(self, warden: ConnectedWarden) -> bool:
        """Return whether the program of a warden runs."""
        return warden.entry["id"] in self._wardens

    async def catch_up(self) -> list[str]:
        """Wait until all walls show the roots of now, but not long. Return a sentence for each
        wall that has not confirmed it.
        """
        wardens = [*self._wardens.values()]
        if wardens:
            with anyio.move_on_after(_APPLY_TIMEOUT_S):
                async with anyio.create_task_group() as group:
                    for warden in wardens:
                        group.start_soon(warden.catch_up)
        return [
            f"the wall of {warden.entry['name']} has not confirmed this change yet;"
            f" it may still show what it showed before (try: {_SESSIONS})"
            for warden in wardens
            if not warden.has_applied
        ]

    def items(self) -> list[ConfinedProgramItem]:
        """Return the entries of all confined programs."""
        return [warden.entry.copy() for warden in self._wardens.values()]

    def sessions(self) -> Sequence[SessionKey]:
        """Return the sessions of all walls."""
        found = (warden.session for warden in self._wardens.values())
        return [key for key in found if key is not None]

    def named(self, id_: str) -> ConnectedWarden:
        """Return the warden of a confined program. Raises CannotGive if it has ended."""
        if id_ not in self._wardens:
            raise CannotGive("the program has ended", _SESSIONS)
        return self._wardens[id_]

    def started_by(self, caller: frozenset[str]) -> Sequence[ConnectedWarden]:
        """Return the wardens below the process whose line of ancestors `caller` has."""
        return [each for each in self._wardens.values() if caller and each.is_below(caller)]

    def roots_of(self, id_: str) -> Sequence[PublishedRoot]:
        """Return the roots in the view that a confined program got last; none if it has ended."""
        warden = self._wardens.get(id_)
        return () if warden is None else warden.sent_roots()

    def roots_change(self, before: WallView, after: WallView) -> RootsChange:
        """Return the part of a message that turns the view `before` into `after`."""
        changed, removed = view_change(before, after, self.ledger.catalog)
        return RootsChange(
            tuple(_confined_root(each, self._end_of(each)) for each in changed),
            removed,
            None if after.denied == before.denied else frozenset(after.denied),
        )

    def _end_of(self, shown: WallRoot) -> int | None:
        return None if shown.ending is None else self.ledger.expiries.due_ns(shown.ending)

    def scopes_of(self, peer: WallPeer, published: PublishedSet) -> Sequence[Scope] | None:
        """Return the scopes of the walls that `peer` may be behind; see `rootsd.mcp`.

        None means that it is behind no wall. A peer that hides is behind a wall without roots.
        """
        wardens = self._wardens.values()
        match peer.place:
            case PeerPlace.OUTSIDE:
                return None
            case PeerPlace.HIDDEN:
                return ()
            case PeerPlace.UNSEEN:
                return [warden.scope_in(published) for warden in wardens] or None
            case PeerPlace.BEHIND_WALL:
                owner = peer.owner
                return [
                    warden.scope_in(published)
                    for warden in wardens
                    if owner is not None and warden.is_owned_by(owner)
                ]

    async def wait_for_change(self) -> None:
        """Wait until a warden connects or leaves, or reports."""
        await self.changes.wait_past(self.changes.number)

    def roots(self) -> WallRoots:
        """Return all roots that a warden can show now."""
        self._roots = self._roots.after(self.ledger.catalog)
        return self._roots


class ServerSessions(Protocol):
    """The sessions of MCP servers behind a wall."""

    def walled_session(self, pid: int) -> AbstractAsyncContextManager[SessionObserver]:
        """Open the session of a server, whose `rootsd run` is process `pid`."""

    async def propose(
        self, path: str, pid: int, client: str, current: Callable[[], Awaitable[PublishedSet]]
    ) -> None:
        """Propose a folder that its client has open, unless it is in the `current` roots."""


class WallServices(Struct, frozen=True):
    """The parts of the daemon that the handlers of the wall use.

    * `settings`: returns the settings in force.
    * `canonical` and `session_start`: see `rootsd.wire.scope.resolve_scope`.
    * `sessions_of`: returns the ids of the sessions that a process belongs to.
    """

    wardens: WardenRegistry
    settings: Callable[[], WallSettings]
    canonical: Callable[[bytes], Awaitable[bytes]]
    session_start: Callable[[bytes], Awaitable[SessionStart]]
    sessions_of: Callable[[int], Awaitable[frozenset[str]]]
    servers: ServerSessions


def _confined_root(shown: WallRoot, ends_ns: int | None) -> ConfinedRoot:
    root, git = shown.root, shown.shared_git
    granted = git if git is not None and git.access.is_granted else None
    return ConfinedRoot(
        root.path,
        root.access,
        _folder_identity(shown.identity),
        frozenset(shown.denied),
        None if granted is None else granted.checkout,
        root.name,
        shown.is_withheld,
        None if granted is None else _folder_identity(granted.identity),
        "" if git is None else _describe_access(git.access, root.name),
        ends_ns,
    )


def _describe_access(access: GitAccess, name: str) -> str:
    if access is GitAccess.CHECKOUT_PENDING:
        how = f"rootsd approve {shlex.quote(name)} --shared-git"
        return f"{access.value}; to include it: {how}"
    return access.value


def _folder_identity(identity: Identity | None) -> FolderIdentity | None:
    if identity is None:
        return None
    device = None if identity.mount is None else identity.mount.device
    return FolderIdentity(
        identity.inode, identity.owner, identity.handle, identity.born_ns, device
    )


def _lines(reported: Iterable[str]) -> list[str]:
    """Return the lines that a warden reported, safe to show."""
    return [safe_label(line, MAX_LINE_LENGTH) for line in islice(reported, MAX_LINES)]


def _count(reported: int, before: int) -> int:
    """Return a number that a warden reported, or `before` if it is a wrong one."""
    return reported if 0 <= reported < 1 << 31 else before
