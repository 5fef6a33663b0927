"""The process that keeps what the programs of a wall see, and applies changes to it.

`start_warden` forks it. The warden has its own session, so that no Ctrl-Z stops it: it must always
be able to take a root away. It ends when its owner closes the channel. When the warden ends, for
whatever reason, its programs end: `supervision` watches the pipe `Warden.alive`.

An owner gives orders over the channel (see `orders`). Or the warden follows a `WardenFeed`, which
is how `rootsd confine` follows the daemon: its descriptors are in the warden's poll(2) loop.

An `EnforcedView` is the engine's part of the warden. `MountedView` changes the folders of a
running program. `FixedView` cannot; if a root must go, it ends the warden, and so the programs.
"""

from __future__ import annotations

import errno
import json
import math
import os
import resource
import select
import socket
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, NoReturn, Protocol

from rootsd.core.access import Access
from rootsd.core.mount_plan import (
    ConfinedRoot,
    DesiredMount,
    RemovalReason,
    RemovedRoot,
    ViewEntry,
    desired_mounts,
)
from rootsd.core.parsing import parse_json
from rootsd.core.paths import text_of
from rootsd.core.record import BadRecord, from_line, to_line
from rootsd.core.wall import ProtectionPolicy, RevokePolicy
from rootsd.wall.git.facts import Fact, FactKind
from rootsd.wall.git.session_changes import SessionChanges
from rootsd.wall.git.session_report import SessionEnd, reports_of
from rootsd.wall.git.session_reports import conclude_unfinished
from rootsd.wall.git.shared_folder import shared_git_folder
from rootsd.wall.kernel.disk_room import DiskRoom
from rootsd.wall.kernel.new_worktrees import NewWorktrees
from rootsd.wall.kernel.orders import (
    AppliedChange,
    ChangeNews,
    FailedRoot,
    OrderKind,
    PauseNews,
    PauseState,
    RootNews,
    WardenOrder,
    WardenReport,
    decode_news,
)
from rootsd.wall.kernel.pause import ProgramPause
from rootsd.wall.kernel.removal import remove_tree
from rootsd.wall.kernel.root_news import RootTeller
from rootsd.wall.kernel.supervision import Layer
from rootsd.wall.system_calls import ProcessOption, closing, set_process_option
from rootsd.wall.view.denied_base import is_denied

_READY, _DONE = b"ready", b"done"
_MAX_START_MESSAGE = 1 << 16
_MAX_GATES = 2
_CHUNK = 1 << 16
_MAX_WAIT_S = 3600.0  # poll(2) takes no number of milliseconds that is too large
_HIDDEN = "it is hidden"


class WardenSettings(NamedTuple):
    """The fixed part of a wall. `folder` is private to this warden, on a disk.

    It holds what the engine needs. `kept` is for what all programs of this name keep; by default,
    that is in `folder`, too. `home` is the real home folder of the user. `denied` are the denied
    folders at the start. `without` are the layers that programs run without. `listener` leads to
    who must know the roots: see `root_news`. With `has_new_worktrees`, programs may ask for
    folders beside roots. `lock` is a descriptor that the warden holds until it has done all work.
    """

    folder: bytes
    entries: tuple[ViewEntry, ...]
    home: bytes
    protection: ProtectionPolicy = ProtectionPolicy.UNTRACKED
    on_revoke: RevokePolicy = RevokePolicy.TELL
    denied: frozenset[bytes] = frozenset()
    without: frozenset[Layer] = frozenset()
    kept: bytes = b""
    listener: socket.socket | None = None
    has_new_worktrees: bool = False
    lock: int = -1


class WardenFeed(Protocol):
    """A source of roots that the warden's loop drives."""

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


SetRoots = Callable[[Sequence[ConfinedRoot], frozenset[bytes], Mapping[bytes, RemovedRoot]], None]
"""Sets the roots, and the denied folders. The last argument says why roots are gone, by path."""
GiveFile = Callable[[bytes, bytes], str]
"""Shows a copy of a file at a path. Returns why it cannot, or an empty text.

The copy is a name in the folder `GIVEN` of the wall.
"""
FollowRoots = Callable[[SetRoots, ProgramPause, GiveFile], WardenFeed]
"""Makes the feed of a warden. The feed sets the roots, stops the programs, and gives files."""
ServeUntil = Callable[[socket.socket], None]
"""Serves the listener of a warden (see `root_news`), until a channel is readable."""
GIVEN = b"/given"
"""The folder, in that of a wall, with copies of files that a person has given to its programs."""


class WallSetupFailed(OSError):
    """An error of the kernel while a wall is built. `step` says what was attempted."""

    def __init__(self, error: int, step: str) -> None:
        super().__init__(error, step)
        self.step = step


class EnforcedView(Protocol):
    """What the programs of one warden see, as an engine enforces it.

    It lives in the warden's process. `watched` is a descriptor for POLLIN, or -1. `notes` are
    what could not be shown as described, for people.
    """

    watched: int
    notes: list[str]

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

    def withdraw(self) -> None:
        """Take all roots away from programs that are about to end, as far as it can."""

    def repair(self) -> AppliedChange:
        """Do what `watched` has signaled: restore protections, or try again what failed."""

    def carry_over(self) -> Iterable[Fact]:
        """Carry changes of git's settings over, and return facts about those that stay inside."""

    def gates(self) -> list[int]:
        """Return new descriptors that a program needs to get in."""

    def variables(self) -> dict[str, str]:
        """Return variables that a program needs."""

    def close(self) -> None:
        """Remove what is left on the disk."""


MakeView = Callable[[WardenSettings], EnforcedView]


class Warden(NamedTuple):
    """A running warden, as its owner sees it.

    `gates` are descriptors with which a program gets behind the wall; their meaning depends on the
    engine. `folder` is that of the settings, `alive` is readable (at its end) when the warden has
    ended, and `channel` is for orders. Programs need `variables` in their environment. `notes` are
    what could not be shown at the start, as sentences, and `first` is the first state. `since` is
    the time of the start, in seconds.
    """

    pid: int
    gates: tuple[int, ...]
    folder: bytes
    alive: int
    channel: socket.socket
    variables: Mapping[str, str]
    notes: tuple[str, ...]
    first: WardenReport
    since: float

    def close_gate(self) -> None:
        """Close the gates and the pipe, after the last program was started."""
        for fd in (*self.gates, self.alive):
            os.close(fd)

    def news(self) -> WardenNews:
        """Return what the warden tells while its programs run, if it follows a feed."""
        return WardenNews(self.channel)

    def end(self) -> list[str]:
        """Let the warden end, and with it the programs, and wait until it has done all its work.

        Returns what the programs have left behind, as sentences. The process may live a little
        longer, because the kernel takes time for the end of namespaces and watches.
        """
        last, lines = b"", []
        with suppress(OSError):  # it may have ended already
            self.channel.settimeout(None)
            self.channel.shutdown(socket.SHUT_WR)
            while data := self.channel.recv(_CHUNK):
                last = last[-_CHUNK:] + data
        self.channel.close()
        if last.endswith(_DONE):
            lines = parse_json(last.splitlines()[-2])
        else:  # it was killed, and may hold its lock until the very end
            self.reap()
        with suppress(OSError):  # if the warden was killed, this process looks
            conclude_unfinished(self.folder, SessionEnd.ORDERLY)
        new = (each for each in reports_of(self.folder) if each.ended >= self.since)
        return [*(sentence for report in new for sentence in report.sentences()), *lines]

    def reap(self) -> None:
        """Wait for the end of the process. An owner that goes on must call this after `end`."""
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


class WardenNews:
    """What a warden tells the process that waits for its program."""

    def __init__(self, channel: socket.socket) -> None:
        channel.settimeout(0)
        self._channel = channel
        self._lines = bytearray()
        self.lost: tuple[bytes, ...] = ()
        """The roots for which the warden has ended itself and its programs."""
        self._last = PauseNews(PauseState.RUNNING)

    @property
    def state(self) -> PauseState:
        """Whether the programs run."""
        return self._last.state

    def fileno(self) -> int:
        """Return the descriptor to wait for. It is -1 after the end of the warden."""
        return self._channel.fileno()

    def take(self) -> list[PauseNews | RootNews]:
        """Return what has changed for the programs. Do nothing if there is no news."""
        changes: list[PauseNews | RootNews] = []
        try:
            data = self._channel.recv(_CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._channel.close()
        *lines, self._lines = (self._lines + data).split(b"\n")
        for line in lines:
            match decode_news(bytes(line)):
                case WardenReport(change=change):
                    self.lost += change.lost
                case PauseNews() as news:
                    changes += [news] if news != self._last else []
                    self._last = news
                case RootNews() as news:
                    changes.append(news)
                case ChangeNews():
                    pass  # it tells its feed
        return changes

    def let_run(self) -> None:
        """Ask the warden to let stopped programs run for a while."""
        with suppress(OSError):
            self._channel.send(to_line(WardenOrder(0, OrderKind.CONTINUE)))


def start_warden(
    make_view: MakeView,
    settings: WardenSettings,
    roots: Iterable[ConfinedRoot] = (),
    follow: FollowRoots | None = None,
    serve_until: ServeUntil | None = None,
) -> Warden:
    """Fork a warden that shows `roots`, and return when it is ready.

    `make_view` and `follow` are called in the warden's process. Raises WallSetupFailed.
    """
    since = time.time()
    ours, theirs = socket.socketpair()
    alive, held_by_warden = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            os.close(alive)
            _be_warden(make_view, settings, tuple(roots), follow, theirs, held_by_warden)
        except BaseException as error:  # noqa: BLE001 - this process must never return
            with suppress(OSError):
                theirs.sendall(_describe(error))
        finally:
            os._exit(1)
    theirs.close()
    os.close(held_by_warden)
    if serve_until is not None:
        serve_until(ours)
    message, fds, _, _ = socket.recv_fds(ours, _MAX_START_MESSAGE, _MAX_GATES)
    if not message.startswith(_READY):
        ours.close()
        os.close(alive)
        os.waitpid(pid, 0)
        raise _parse_failure(message)
    start, _, report = message.removeprefix(_READY).partition(b"\n")
    found = parse_json(start)
    return Warden(
        pid, tuple(fds), settings.folder, alive, ours, found["variables"], tuple(found["notes"]),
        from_line(WardenReport, report), since,
    )  # fmt: skip


def _be_warden(
    make_view: MakeView,
    settings: WardenSettings,
    roots: tuple[ConfinedRoot, ...],
    follow: FollowRoots | None,
    channel: socket.socket,
    alive: int,
) -> NoReturn:
    os.setsid()
    view = make_view(settings)
    _release_standard_files()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # each root takes a descriptor
    loop = _WardenLoop(
        view, channel, SessionChanges(settings.folder, settings.protection), settings
    )
    _forget_given(settings.folder)  # those of a warden that was killed
    try:
        first = loop.build(roots)
        failed = first.change.failed
        notes = [*view.notes, *(f"{text_of(path)} is not shown: {why}" for path, why in failed)]
        # Not earlier: the uid_map of a process that is not dumpable belongs to root.
        set_process_option(ProcessOption.SET_DUMPABLE, 0)
        start = {"variables": view.variables(), "notes": notes}
        message = _READY + json.dumps(start).encode() + b"\n" + to_line(first)
        if follow is not None:  # first, so that no program sees what was denied meanwhile
            loop.follow(follow, first)
        gates = view.gates()
        socket.send_fds(channel, [message], gates)
        for fd in gates:
            os.close(fd)
        loop.run()
        os.close(alive)  # this ends the programs
        _wait_for_end(channel)
        last = json.dumps(loop.conclude()).encode() + b"\n"
    finally:
        _forget_given(settings.folder)
        view.close()
    if settings.lock >= 0:
        os.close(settings.lock)
    with suppress(OSError):
        channel.sendall(b"\n" + last + _DONE)
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
        channel: socket.socket,
        changes: SessionChanges,
        settings: WardenSettings,
    ) -> None:
        self._worktrees = NewWorktrees(settings.folder) if settings.has_new_worktrees else None
        self._view = view
        self._given = settings.folder + GIVEN
        self._changes = changes
        self._teller = RootTeller(settings.listener)
        self._channel = channel
        self._feed: WardenFeed | None = None
        self._roots: dict[bytes, ConfinedRoot] = {}
        self._denied = settings.denied
        self._room = DiskRoom(settings.folder, ProgramPause(os.getppid(), self._tell))
        self._wanted: Mapping[bytes, DesiredMount] = {}
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self._has_ended = False
        self._reasons: dict[bytes, str] = {}  # why roots and git directories are not shown
        channel.settimeout(0)

    def follow(self, make_feed: FollowRoots, first: WardenReport) -> None:
        """Follow a feed from now on. `first` is the state until its first change."""
        pause = ProgramPause(os.getppid(), self._tell)
        self._feed = make_feed(self._set_roots, pause, self._give)
        self._feed.report(first)
        self._feed.attend()  # it may hold messages that arrived before the fork

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
        self._changes.begin(os.getppid())
        self._note_roots()
        while not self._has_ended:
            self._flush()
            ready = self._poll()
            if self._feed is not None:
                self._feed.attend()
            self._room.attend()
            if self._channel.fileno() in ready and not self._serve_owner():
                return
            if self._worktrees is not None:
                self._attend_worktrees(self._worktrees, ready)
            self._changes.drop_all_but(self._wanted)
            if self._changes.fd in ready and (names := self._changes.attend()):
                self._tell_changes(ChangeNews(names))
            if self._teller.fd in ready:
                self._teller.attend()
                self._tell_changes(ChangeNews((), self._teller.refused))
            if self._view.watched in ready:
                repaired = self._view.repair()
                if repaired.failed or repaired.restored or repaired.lost:
                    self._report(self._state(0, repaired))
            self._changes.keep(self._view.carry_over())
        self._flush()

    def _attend_worktrees(self, worktrees: NewWorktrees, ready: Container[int]) -> None:
        before = worktrees.roots
        asking = worktrees.attend(ready, self._visible_roots(), self._denied)
        self._changes.keep(_unread(worktrees.settle(self._roots)))
        if worktrees.roots != before:
            self._wanted = self._desired()
            change = self._view.change(self._wanted, self._denied)
            if change.lost:
                self._report(self._state(0, change))
        worktrees.shown(asking, self._view.shown)
        worktrees.tell(self._roots)

    def build(self, roots: Iterable[ConfinedRoot]) -> WardenReport:
        """Build the view, and return the first state."""
        self._roots = {root.path: root for root in roots}
        self._wanted = desired = self._desired()
        self._teller.announce(self._teller.unknown(desired), desired, self._git_directories())
        self._changes.note(self._changes.unknown(desired))
        change = self._view.build(desired, self._denied)
        self._changes.wait_listed()
        self._teller.wait()
        self._tell_roots()
        return self._state(0, change)

    def conclude(self) -> list[str]:
        """Report what the programs have left behind. Return what people need to know about files.

        They may still be about to end, if their owner was killed. Without roots, they can do no
        more.
        """
        self._view.withdraw()
        if self._worktrees is not None:
            self._changes.keep(_unread(self._worktrees.settle(self._roots, math.inf)))
        self._changes.keep(self._view.carry_over())
        lines = self._changes.conclude()
        if self._feed is not None:
            self._feed.close()  # before the owner ends: the next command finds no program any more
        return lines

    def change(self, order: WardenOrder) -> WardenReport:
        """Apply an order, and return the state after it."""
        self._reasons.clear()  # the view tries again to show what is missing
        match order.kind:
            case OrderKind.SET:
                self._roots = {root.path: root for root in order.roots}
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
            known = {path: mount for path, mount in desired.items() if path not in unseen}
            earlier = self._view.change(known, self._denied)
            self._tell_roots()
            self._teller.announce(untold, desired, self._git_directories())
            self._changes.note(new)
            self._changes.wait_listed()
            self._teller.wait()
        change = self._view.change(desired, self._denied)
        change = change._replace(
            holders=(*earlier.holders, *change.holders), lost=earlier.lost or change.lost
        )
        return self._state(order.number, change)

    def _desired(self) -> dict[bytes, DesiredMount]:
        return desired_mounts(self._folders().values(), self._git_directories())

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
        for fd in (self._changes.fd, self._teller.fd):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        deadline = self._room.deadline
        if self._feed is not None:
            deadline = min(deadline, self._feed.deadline)
            for fd, events in self._feed.interest():
                poll.register(fd, events)
        if self._worktrees is not None:
            deadline = min(deadline, self._worktrees.deadline)
            for fd, events in self._worktrees.interest():
                poll.register(fd, events)
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


def _describe(error: BaseException) -> bytes:
    """Return the line that tells the owner why the start failed."""
    number = error.errno if isinstance(error, OSError) and error.errno else errno.EIO
    step = error.strerror if isinstance(error, OSError) and error.strerror else repr(error)
    return json.dumps({"errno": number, "step": step}).encode()


def _parse_failure(message: bytes) -> WallSetupFailed:
    try:
        found = parse_json(message)
        return WallSetupFailed(int(found["errno"]), str(found["step"]))
    except (ValueError, KeyError, TypeError):
        return WallSetupFailed(errno.EIO, "the warden ended")
