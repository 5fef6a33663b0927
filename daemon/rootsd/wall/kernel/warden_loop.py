"""Be the warden: keep what the programs of a wall see, and apply changes to it.

The warden's loop serves its owner's orders, or a `WardenFeed`, whose descriptors it waits for.

An `EnforcedView` is the engine's part of the warden. `MountedView` changes the folders of a
running program. `FixedView` cannot; if a root must go, it ends the warden, and so the programs.
"""

from __future__ import annotations

import math
import os
import resource
import select
import socket
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import NoReturn, Protocol

from rootsd.core.access import Access
from rootsd.core.mount_plan import (
    ConfinedRoot,
    DesiredMount,
    FolderIdentity,
    RemovalReason,
    RemovedRoot,
    desired_mounts,
)
from rootsd.core.paths import text_of
from rootsd.core.record import BadRecord, from_line, to_line
from rootsd.wall.git.facts import Fact, FactKind
from rootsd.wall.git.name_watch import WallWatch
from rootsd.wall.git.session_changes import SessionChanges
from rootsd.wall.git.shared_folder import shared_git_folder
from rootsd.wall.kernel.disk_room import DiskRoom
from rootsd.wall.kernel.new_worktrees import NewWorktrees
from rootsd.wall.kernel.orders import (
    AppliedChange,
    ChangeNews,
    FailedRoot,
    OrderKind,
    PauseNews,
    RootNews,
    WardenOrder,
    WardenReport,
)
from rootsd.wall.kernel.pause import ProgramPause
from rootsd.wall.kernel.removal import remove_tree
from rootsd.wall.kernel.root_news import RootTeller
from rootsd.wall.kernel.warden import (
    GIVEN,
    FollowedRoots,
    WardenEnded,
    WardenSettings,
    WardenStart,
    WardenStarted,
    receive_line,
    send_line,
)
from rootsd.wall.kernel.worktree_removal import (
    Refused,
    ShownWorktree,
    check_removable,
    remove_worktree,
)
from rootsd.wall.system_calls import ProcessOption, closing, set_process_option
from rootsd.wall.view.denied_base import is_denied

_CHUNK = 1 << 16
_MAX_WAIT_S = 3600.0  # poll(2) takes no number of milliseconds that is too large
_HIDDEN = "it is hidden"
_LATE = "rootsd still looks for its origin"


SetRoots = Callable[[Sequence[ConfinedRoot], frozenset[bytes], Mapping[bytes, RemovedRoot]], None]
"""Sets the roots, and the denied folders. The last argument says why roots are gone, by path."""
GiveFile = Callable[[bytes, bytes], str]
"""Shows a copy of a file at a path. Returns why it cannot, or an empty text.

The copy is a name in the folder `GIVEN` of the wall.
"""


class WardenFeed(Protocol):
    """A source of roots that the warden's loop drives."""

    @property
    def roots(self) -> Sequence[ConfinedRoot]:
        """The first roots."""

    @property
    def denied(self) -> frozenset[bytes]:
        """The first denied folders."""

    def start(self, set_roots: SetRoots, programs: ProgramPause, give: GiveFile) -> None:
        """Set other roots, stop the programs, and give files from now on."""

    @property
    def deadline(self) -> float:
        """When to call `attend` even if no descriptor is ready."""

    def interest(self) -> Iterator[tuple[int, int]]:
        """Yield the descriptors to wait for, with their poll(2) events."""

    def attend(self) -> None:
        """Do what is due."""

    def report(self, report: WardenReport) -> None:
        """Take the state after a change."""

    def tell_changes(self, news: ChangeNews) -> None:
        """Take the names of files that have changed."""

    def let_run(self) -> None:
        """Let programs run for a while that were stopped because no daemon answers."""

    def close(self) -> None:
        """Hang up."""


FollowRoots = Callable[[FollowedRoots, socket.socket], WardenFeed]
"""Takes over a connection to the daemon."""


class EnforcedView(Protocol):
    """What the programs of one warden see, as an engine enforces it.

    It lives in the warden's process. `watched` is a descriptor for POLLIN, or -1. `notes` are
    what could not be shown as described, for people.
    """

    watched: int
    notes: list[str]

    @property
    def has_news(self) -> bool:
        """Whether something has happened to a name that matters to the view."""

    @property
    def shown(self) -> Mapping[bytes, DesiredMount]:
        """The roots and git directories that programs see now, by path."""

    def build(
        self, desired: Mapping[bytes, DesiredMount], denied: frozenset[bytes]
    ) -> AppliedChange:
        """Build the view with its first roots. Raises OSError."""

    def change(
        self, desired: Mapping[bytes, DesiredMount], denied: frozenset[bytes]
    ) -> AppliedChange:
        """Show these roots and no others, and nothing of the `denied` folders in the base."""

    def give(self, path: bytes, copy: bytes) -> None:
        """Show `copy`, read-only, at `path`, where programs see nothing. Raises OSError."""

    def worktree_at(self, path: bytes) -> ShownWorktree | None:
        """Return the root at `path` as a worktree of a repository that is shown, too."""

    def withdraw(self) -> None:
        """Take all roots away from programs that are about to end, as far as it can."""

    def repair(self) -> AppliedChange:
        """Do what `watched` or `has_news` tell: restore protections, or try again what failed."""

    def carry_over(self) -> Iterable[Fact]:
        """Carry changes of git's settings over, and return facts about those that stay inside."""

    def gates(self) -> list[int]:
        """Return new descriptors that a program needs to get in."""

    def variables(self) -> dict[str, str]:
        """Return variables that a program needs."""

    def close(self) -> None:
        """Remove what is left on the disk."""


MakeView = Callable[[WardenSettings, WallWatch], EnforcedView]


def be_warden(
    make_view: MakeView, follow: FollowRoots | None, channel: socket.socket, alive: int
) -> NoReturn:
    """Be a warden, whose owner has the other ends of the `channel` and of the pipe `alive`.

    It takes over a connection to the daemon by `follow`, or else the owner gives orders.
    """
    line, fds = receive_line(channel)
    if not line:
        os._exit(0)  # the owner gave up
    start = from_line(WardenStart, line)
    lock, listener = (*fds, -1, -1)[:2]
    settings = start.settings
    watch = WallWatch()
    view = make_view(settings, watch)
    _release_standard_files()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # each root takes a descriptor
    loop = _WardenLoop(view, watch, channel, settings, listener)
    _forget_given(settings.folder)  # those of a warden that was killed
    try:
        feed = None
        roots: Sequence[ConfinedRoot] = start.roots
        denied = start.denied
        if follow is not None and start.followed is not None:
            feed = follow(start.followed, socket.socket(fileno=fds[-1]))
            roots, denied = feed.roots, feed.denied
        first = loop.build(roots, denied)
        failed = first.change.failed
        notes = [*view.notes, *(f"{text_of(path)} is not shown: {why}" for path, why in failed)]
        # Not earlier: the uid_map of a process that is not dumpable belongs to root.
        set_process_option(ProcessOption.SET_DUMPABLE, 0)
        if feed is not None:  # first, so that no program sees what was denied meanwhile
            loop.follow(feed, first)
        ready, told = os.pipe2(os.O_CLOEXEC)
        fds = [ready, *view.gates()]
        send_line(channel, WardenStarted(view.variables(), tuple(notes), first), fds)
        for fd in fds:
            os.close(fd)
        loop.note_first_roots()  # the program's process is made meanwhile
        os.write(told, b"\n")
        os.close(told)
        loop.run()
        os.close(alive)  # this ends the programs
        _wait_for_end(channel)
        ended = WardenEnded(tuple(loop.conclude()))
    finally:
        _forget_given(settings.folder)
        view.close()
    if lock >= 0:
        os.close(lock)
    with suppress(OSError):
        channel.sendall(b"\n")  # after a line that the owner did not take as a whole
        send_line(channel, ended)
        channel.close()
    os._exit(0)


def _forget_given(folder: bytes) -> None:
    with suppress(OSError), closing(os.open(folder, os.O_PATH | os.O_DIRECTORY)) as above:
        remove_tree(os.fsdecode(GIVEN[1:]), above)


def _wait_for_end(channel: socket.socket) -> None:
    """Wait until the owner has seen the end of its programs, and closes the channel."""
    channel.settimeout(None)
    with suppress(OSError):
        while channel.recv(_CHUNK):
            pass


def _release_standard_files() -> None:
    """Close the pipes of the program, so that their readers see its end and not this process's."""
    with closing(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)) as nowhere:
        for fd in (0, 1, 2):
            os.dup2(nowhere, fd)


class _WardenLoop:
    """The loop of the warden's process."""

    def __init__(
        self,
        view: EnforcedView,
        watch: WallWatch,
        channel: socket.socket,
        settings: WardenSettings,
        listener: int,
    ) -> None:
        self._worktrees = NewWorktrees(settings.folder) if settings.has_new_worktrees else None
        self._view = view
        self._watch = watch
        self._given = settings.folder + GIVEN
        self._changes = SessionChanges(settings.folder, settings.protection, watch)
        self._teller = RootTeller(None if listener < 0 else socket.socket(fileno=listener))
        self._channel = channel
        self._feed: WardenFeed | None = None
        self._roots: dict[bytes, ConfinedRoot] = {}
        self._denied: frozenset[bytes] = frozenset()
        # The worktrees that git inside has removed: the daemon may still send these.
        self._removed: set[tuple[bytes, FolderIdentity | None]] = set()
        self._room = DiskRoom(settings.folder, ProgramPause(os.getppid(), self._tell))
        self._wanted: Mapping[bytes, DesiredMount] = {}
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self._has_ended = False
        self._reasons: dict[bytes, str] = {}  # why roots and git directories are not shown
        self._late: frozenset[bytes] = frozenset()  # what must be looked at before it is shown

    def follow(self, feed: WardenFeed, first: WardenReport) -> None:
        """Follow a feed from now on. `first` is the state until its first change."""
        pause = ProgramPause(os.getppid(), self._tell)
        self._feed = feed
        feed.start(self._set_roots, pause, self._give)
        feed.report(first)
        feed.attend()  # it may hold messages that arrived before the fork

    def _give(self, path: bytes, copy: bytes) -> str:
        if is_denied(path, self._denied):
            return "it is denied"
        try:
            self._view.give(path, self._given + b"/" + copy)
        except OSError as error:
            return error.strerror or "it cannot be shown"
        return ""

    def run(self) -> None:
        """Serve until the owner closes the channel, or the view cannot go on."""
        self._channel.settimeout(0)
        self._changes.begin(os.getppid())
        self._note_roots()
        while not self._has_ended:
            self._flush()
            ready = self._poll()
            self._watch.attend()
            if self._feed is not None:
                self._feed.attend()
            self._room.attend()
            if self._channel.fileno() in ready and not self._serve_owner():
                return
            if self._worktrees is not None:
                self._attend_worktrees(self._worktrees, ready)
            self._changes.drop_all_but(self._wanted)
            if names := self._changes.attend():
                self._tell_changes(ChangeNews(names))
            if any(fd in ready for fd, _ in self._teller.interest()):
                self._teller.attend()
                self._tell_changes(ChangeNews((), self._teller.refused))
            if self._late:
                self._set_roots([*self._roots.values()], self._denied, {})
            if self._view.watched in ready or self._view.has_news:
                self._repair()
            self._changes.keep(self._view.carry_over())
        self._flush()

    def _attend_worktrees(self, worktrees: NewWorktrees, ready: Container[int]) -> None:
        before = worktrees.roots
        asking = worktrees.attend(ready, self._visible_roots(), self._denied)
        self._changes.keep(_unread(worktrees.settle(self._roots)))
        if worktrees.roots != before:
            change = self._apply()
            if change.lost:
                self._report(self._state(0, change))
        worktrees.shown(asking, self._view.shown)
        worktrees.tell(self._roots)
        worktrees.serve_removals(self._removable, self._remove_worktree)

    def _removable(self, path: bytes) -> ShownWorktree:
        """Return a root that programs may remove as a worktree. Raises Refused."""
        worktree = self._view.worktree_at(path) if path in self._roots else None
        if worktree is None:
            raise Refused("programs do not see its checkout")
        check_removable(worktree, self._view.shown)
        return worktree

    def _remove_worktree(self, path: bytes) -> None:
        """Take a root away, and remove it as a worktree. Raises Refused or OSError.

        After OSError, it stays away: what is left must not be writable without its protection.
        """
        worktree = self._removable(path)
        root = self._roots.pop(path)
        self._removed.add((path, root.identity))
        change = self._apply()
        try:
            if not change.lost:
                remove_worktree(worktree)
        except Refused:
            self._removed.discard((path, root.identity))
            self._roots[path] = root
            change = self._apply()
            raise
        finally:
            self._report(self._state(0, change))
        self._watch.attend()  # so that git can use the path again
        self._repair()

    def _apply(self) -> AppliedChange:
        self._wanted = self._desired()
        return self._view.change(self._wanted, self._denied)

    def _repair(self) -> None:
        repaired = self._view.repair()
        if repaired.failed or repaired.restored or repaired.lost:
            self._report(self._state(0, repaired))

    def build(self, roots: Iterable[ConfinedRoot], denied: frozenset[bytes]) -> WardenReport:
        """Build the view, and return the first state."""
        self._denied = denied
        self._roots = {root.path: root for root in roots}
        self._wanted = desired = self._desired()
        self._teller.announce(self._teller.unknown(desired), desired, self._git_directories())
        change = self._view.build(desired, self._denied)
        self._teller.wait()
        self._tell_roots()
        return self._state(0, change)

    def note_first_roots(self) -> None:
        """Note the state of the roots, before the first program runs."""
        self._changes.note(self._changes.unknown(self._wanted))
        self._changes.wait_listed()

    def conclude(self) -> list[str]:
        """Report what the programs have left behind. Return what people need to know about files.

        They may still be about to end, if their owner was killed. Without roots, they can do no
        more.
        """
        self._view.withdraw()
        if self._worktrees is not None:
            self._changes.keep(_unread(self._worktrees.settle(self._roots, math.inf)))
        self._watch.attend()
        self._changes.keep(self._view.carry_over())
        lines = self._changes.conclude()
        if self._feed is not None:
            self._feed.close()  # before the owner ends: the next command finds no program any more
        return lines

    def change(self, order: WardenOrder) -> WardenReport:
        """Apply an order, and return the state after it."""
        self._reasons.clear()  # the view tries again to show what is missing
        self._late = frozenset()
        match order.kind:
            case OrderKind.SET:
                roots = (
                    each for each in order.roots if (each.path, each.identity) not in self._removed
                )
                self._roots = {root.path: root for root in roots}
            case OrderKind.ADD:
                self._roots.update((root.path, root) for root in order.roots)
            case OrderKind.REMOVE:
                for path in order.paths:
                    self._roots.pop(path, None)
            case OrderKind.CONTINUE:
                pass
        if order.denied is not None:
            self._denied = order.denied
        self._wanted = desired = self._desired()
        asked = self._folders().keys() - self._roots.keys()
        new, untold = (each.unknown(desired) - asked for each in (self._changes, self._teller))
        earlier = AppliedChange()
        if unseen := new | untold:  # to look at these takes time, and a revoke must not wait
            self._late = unseen
            is_revoke = any(
                mount != desired.get(path) and unseen.isdisjoint((path, mount.owner))
                for path, mount in self._view.shown.items()
            )
            earlier = self._view.change(self._desired(), self._denied)
            self._tell_roots()
            self._teller.announce(untold, desired, self._git_directories())
            self._changes.note(new)
            self._changes.wait_listed()
            is_known = self._wait_for_listener(time.monotonic() if is_revoke else math.inf)
            self._late = frozenset() if is_known else untold
            self._reasons.update(dict.fromkeys(self._late, _LATE))
        change = self._view.change(self._desired(), self._denied)
        change = change._replace(
            holders=(*earlier.holders, *change.holders), lost=earlier.lost or change.lost
        )
        return self._state(order.number, change)

    def _desired(self) -> dict[bytes, DesiredMount]:
        mounts = desired_mounts(self._folders().values(), self._git_directories())
        late = self._late
        return {path: each for path, each in mounts.items() if late.isdisjoint((path, each.owner))}

    def _wait_for_listener(self, until: float) -> bool:
        """Wait until the listener knows the roots, but not if a feed has or may have a revoke."""
        if self._feed is None:
            return self._teller.wait()
        others = ((self._channel.fileno(), select.POLLIN), *self._feed.interest())
        return self._teller.wait(others, min(until, self._feed.deadline))

    def _folders(self) -> dict[bytes, ConfinedRoot]:
        """Return the roots, and the folders that git may make into worktrees."""
        made = {} if self._worktrees is None else self._worktrees.roots
        return {**made, **self._roots}

    def _git_directories(self) -> dict[bytes, bytes]:
        """Return the git directories outside their roots, where the daemon allows to show them."""
        allowed = (root.path for root in self._roots.values() if root.shared_git is not None)
        found = ((path, shared_git_folder(path)) for path in allowed)
        return {path: git for path, git in found if git is not None}

    def _state(self, number: int, change: AppliedChange) -> WardenReport:
        known = self._view.shown
        shown = [known[path] for path in self._roots if path in known]
        self._reasons.update(change.failed)
        absent = self._roots.keys() - known.keys() - {*change.lost, *change.waiting}
        reasons = {**dict.fromkeys(absent, _HIDDEN), **self._reasons}
        return WardenReport(
            number,
            shown=len(shown),
            read_only=sum(mount.access is Access.READ for mount in shown),
            masked=sum(bool(mount.masks) for mount in shown),
            change=change._replace(
                failed=tuple(
                    FailedRoot(path, reasons[path])
                    for path in sorted(reasons)
                    if path not in known
                )
            ),
        )

    def _set_roots(
        self,
        roots: Sequence[ConfinedRoot],
        denied: frozenset[bytes],
        removed: Mapping[bytes, RemovedRoot],
    ) -> None:
        """Show the roots of the feed, and tell the owner which are gone and which are new."""
        before = self._visible_roots()
        report = self.change(WardenOrder(0, OrderKind.SET, tuple(roots), denied=denied))
        self._report(report)
        gone = tuple(
            removed.get(path) or RemovedRoot(path, root.name, RemovalReason.UNDECIDED)
            for path, root in before.items()
            if path not in self._roots
        )
        new = tuple(path for path in self._visible_roots() if path not in before)
        if (gone or new) and not report.change.lost:
            self._tell(RootNews(gone, new))

    def _visible_roots(self) -> dict[bytes, ConfinedRoot]:
        known = self._view.shown
        return {path: root for path, root in self._roots.items() if path in known}

    def _tell_roots(self) -> None:
        self._teller.tell(self._roots, self._view.shown, self._git_directories())

    def _note_roots(self) -> None:
        known = self._view.shown
        self._changes.note_roots({path: known[path].access for path in self._visible_roots()})

    def _report(self, report: WardenReport) -> None:
        self._tell_roots()
        self._note_roots()
        self._has_ended = bool(report.change.lost)
        if self._feed is not None:
            self._feed.report(report)
        if self._feed is None or report.change.lost:
            self._outgoing += to_line(report)

    def _tell_changes(self, news: ChangeNews) -> None:
        if self._feed is not None:
            self._feed.tell_changes(news)
        else:
            self._tell(news)

    def _tell(self, news: ChangeNews | PauseNews | RootNews) -> None:
        self._outgoing += to_line(news)

    def _poll(self) -> dict[int, int]:
        poll = select.poll()
        wanted = select.POLLIN | (select.POLLOUT if self._outgoing else 0)
        poll.register(self._channel, wanted)
        if self._view.watched >= 0:
            poll.register(self._view.watched, select.POLLIN)
        if self._watch.fd >= 0:
            poll.register(self._watch.fd, select.POLLIN)
        sources = [each for each in (self._feed, self._worktrees) if each is not None]
        for fd, events in chain.from_iterable(e.interest() for e in (self._teller, *sources)):
            poll.register(fd, events)
        deadline = min((self._room.deadline, *(each.deadline for each in sources)))
        left_s = min(max(deadline - time.monotonic(), 0.0), _MAX_WAIT_S)
        return dict(poll.poll(math.ceil(left_s * 1000)))

    def _serve_owner(self) -> bool:
        """Serve the orders that have arrived. Return whether the owner is still there."""
        try:
            data = self._channel.recv(_CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._incoming += data
        *lines, rest = self._incoming.split(b"\n")
        self._incoming = bytearray(rest)
        for line in lines:
            try:
                self._obey(from_line(WardenOrder, bytes(line)))
            except BadRecord:
                return False  # an owner that cannot be understood must not keep a wall
        self._flush()
        return bool(data)

    def _obey(self, order: WardenOrder) -> None:
        if order.kind is not OrderKind.CONTINUE:
            self._report(self.change(order))
        else:
            self._room.let_run()
            if self._feed is not None:
                self._feed.let_run()

    def _flush(self) -> None:
        with suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            while self._outgoing:
                del self._outgoing[: self._channel.send(self._outgoing)]


def _unread(folders: Iterable[bytes]) -> Iterator[Fact]:
    """Yield facts about folders outside the roots that programs could write, and that stay."""
    return (Fact(FactKind.UNREAD, each) for each in folders)
