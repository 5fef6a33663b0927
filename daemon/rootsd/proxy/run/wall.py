"""Put the server of `rootsd run --confine` behind a wall, and change the wall in time.

The run proxy owns the warden: it follows the daemon's view itself and orders each change. It has
one thread. So while the warden applies a change, no call passes, and the order is certain:

* A grant: the kernel shows the folder first. Then the server is notified.
* A revoke: the server is notified first, if it reads its input. Then the kernel takes the folder
  away. A server that does not read delays nothing.

The server gets the roots that the kernel shows. A root that the warden could not mount is not one
of them; standard error and `rootsd status` say why.

An engine that cannot change a running program answers with `lost` or `waiting` (see
`wall.kernel.orders`). After a loss, the server is gone, and the loop starts another one. With a
waiting root, the server goes on, and the next call starts another one. Each new server then gets
another warden, with the newest roots.

A daemon that is away is no revocation: the feed stops the server until one answers, and the server
keeps its roots. Without a view, nobody can say whether a root is still approved. So calls wait,
and so do the questions of the server for its roots.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Self

from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.mount_plan import ConfinedRoot, RemovedRoot, only_at
from rootsd.core.record import to_line
from rootsd.link.daemon_link import is_readable
from rootsd.proxy.run.process import ServerSandbox
from rootsd.proxy.run.roots import WallState
from rootsd.wall.kernel.orders import (
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
from rootsd.wall.session.built_wall import BuiltWall
from rootsd.wall.session.daily_work import explain_missing
from rootsd.wall.session.messages import describe_gone, print_line
from rootsd.wall.session.view_feed import ViewFeed
from rootsd.wire.hello import MoveResult, WorkFolders, encode_reported_roots

OnMoved = Callable[[MoveResult | RootsdError], None]

_ANSWER_TIMEOUT_S = 60.0
_CHUNK = 1 << 16


class ServerWall(ServerSandbox):
    """The wall around one server, and around each server that replaces it."""

    def __init__(self, wall: BuiltWall) -> None:
        self._wall = wall
        self._orders = 0
        self._awaited = 0
        """The number of the order without an answer, or 0."""
        self._lines = bytearray()
        self._feed = ViewFeed(wall.subscription, wall.view.followed())
        self._ordered = only_at(self._feed.below, self._feed.roots)
        self._ordered_denied = self._feed.denied
        self._shown: frozenset[bytes] = frozenset()
        self._queries = 0
        """The queries of the server that have no answer."""
        self._was_away = False
        self._on_change: Callable[[WallState, int], None] = _ignore
        self._on_moved: OnMoved = _ignore
        self._printed = set(wall.warden.first.change.failed)  # the start has printed these
        self.has_ended_server = False
        """Whether a revoke has ended the server. No other server has been prepared yet."""
        self._is_outdated = False
        self._is_stopped = False  # by the warden
        wall.warden.channel.settimeout(_ANSWER_TIMEOUT_S)
        self._feed.on_moved = self._moved
        self._feed.start(self._set_view, ProgramPause(os.getpid(), self._tell_pause))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the warden, and print what the server has left behind."""
        for sentence in self._wall.end():
            print_line(sentence)

    @property
    def deadline(self) -> float:
        """When to call `attend` even if no descriptor is ready."""
        return self._feed.deadline

    def start(self, on_change: Callable[[WallState, int], None], on_moved: OnMoved) -> None:
        """Call `on_change` with the first state now, and with each later one.

        Call `on_moved` with the outcome of each move, after the kernel shows the new roots.
        """
        self._on_change, self._on_moved = on_change, on_moved
        self._take_report(self._wall.warden.first)
        self.attend()  # messages may have arrived with the subscription

    def interest(self) -> Iterator[tuple[int, int]]:
        """Yield the descriptors to wait for, with their poll(2) events."""
        yield from self._feed.interest()
        if not self.has_ended_server:
            yield self._wall.warden.channel.fileno(), select.POLLIN

    def attend(self) -> None:
        """Apply what the daemon has sent. Returns after the kernel has applied it."""
        self._feed.attend()
        if self._feed.is_away != self._was_away:
            self._was_away = self._feed.is_away
            self._tell()
        # Without an order, the warden reports roots that it can no longer protect.
        while not self.has_ended_server and is_readable(self._wall.warden.channel.fileno()):
            self._read_reports()

    def query(self) -> None:
        """Answer with the state of this moment, or as soon as a daemon is there."""
        self._queries += 1
        self._tell()

    def report(self, names: tuple[str, ...]) -> None:
        """Report to the daemon which roots the server has."""
        self._feed.tell(told=encode_reported_roots(names).params)

    def propose(self, path: str) -> None:
        """Tell the daemon about a folder that the client has open and that is not approved."""
        self._feed.tell_once(opened=[path])

    def move(self, folders: WorkFolders) -> None:
        """Tell the daemon where the session works now."""
        self._feed.move(folders)

    def close(self) -> None:
        """Hang up."""
        self._feed.close()

    def show_only(self, below: bytes) -> None:
        """Show the server the folder `below` alone, if it is in a root of the session."""
        self._feed.below = below
        self._set_view(self._feed.roots, self._feed.denied, {})

    def let_run(self) -> None:
        """Let a server run for a while that was stopped."""
        self._feed.let_run()
        if self._is_stopped:
            with suppress(OSError):
                self._wall.warden.channel.sendall(to_line(WardenOrder(0, OrderKind.CONTINUE)))

    @property
    def is_outdated(self) -> bool:
        """Whether the server lacks a root that only another server can get, or has ended."""
        return self._is_outdated or self.has_ended_server

    def prepare(self) -> None:
        """Start another warden, if the server that is about to start needs one."""
        if not self.is_outdated:
            return
        self._wall = self._wall.renewed(self._ordered, self._ordered_denied)
        warden = self._wall.warden
        warden.channel.settimeout(_ANSWER_TIMEOUT_S)
        self._lines.clear()
        self.has_ended_server = False
        self._take_report(warden.first)

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the server's environment, without the variables that lead outside."""
        return self._wall.environment(environment)

    def enter(self) -> None:
        """Move the server's new process behind the wall, before it calls execve."""
        signal.set_wakeup_fd(-1)  # the proxy's pipe is closed in there
        wall = self._wall
        wall.kind.engine.enter(wall.warden, wall.view.cell())

    def explain_missing(self, program: str) -> RootsdError:
        """Return the error for a program that is not found inside."""
        return explain_missing(program)

    def _tell_pause(self, news: PauseNews) -> None:
        sys.stderr.write(f"rootsd run: {self._wall.describe_pause(news)}\n")

    def _moved(self, outcome: MoveResult | RootsdError) -> None:
        self._on_moved(outcome)

    def _set_view(
        self,
        roots: Sequence[ConfinedRoot],
        denied: frozenset[bytes],
        removed: Mapping[bytes, RemovedRoot],
    ) -> None:
        wanted = only_at(self._feed.below, roots)
        gone = self._shown - {root.path for root in wanted}
        self._apply(wanted, denied)
        for line in describe_gone([removed[path] for path in gone if path in removed]):
            sys.stderr.write(f"rootsd run: {line}\n")

    def _tell(self) -> None:
        """Tell the owner the state. It answers all queries once it is settled."""
        state = WallState(self._ordered, self._shown, self._awaited > 0, self._feed.is_away)
        answered = self._queries if state.is_settled else 0
        self._queries -= answered
        self._on_change(state, answered)

    def _apply(self, wanted: tuple[ConfinedRoot, ...], denied: frozenset[bytes]) -> None:
        """Make the kernel show the wanted roots, with the server notified in the right order."""
        if (wanted, denied) == (self._ordered, self._ordered_denied):
            return
        before, self._ordered = self._ordered, wanted
        new_denied = None if denied == self._ordered_denied else denied
        self._ordered_denied = denied
        self._shown &= {root.path for root in wanted}
        if self.has_ended_server:  # the next warden gets these roots
            self._tell()
            return
        self._orders += 1
        self._awaited = self._orders
        self._tell()
        try:
            order = _order(self._orders, before, wanted)._replace(denied=new_denied)
            self._wall.warden.channel.sendall(to_line(order))
        except OSError:
            raise self._lost() from None
        while self._awaited:
            self._read_reports()

    def _read_reports(self) -> None:
        """Wait for reports of the warden, and take them. Raises WardenLost."""
        try:
            data = self._wall.warden.channel.recv(_CHUNK)
        except OSError:
            raise self._lost() from None
        if not data:
            raise self._lost()
        self._lines += data
        *lines, self._lines = self._lines.split(b"\n")
        for line in lines:
            match decode_news(bytes(line)):
                case WardenReport() as report:
                    self._take_report(report)
                case ChangeNews() as news:
                    self._feed.tell_changes(news)
                case PauseNews() as news:
                    self._is_stopped = news.state is PauseState.STOPPED
                    self._tell_pause(news)
                case RootNews():
                    pass  # the orders of this process have caused it

    def _take_report(self, report: WardenReport) -> None:
        if report.number != self._awaited:
            return  # it was sent before the order that the report to come answers
        self._awaited = 0
        change = report.change
        self.has_ended_server = bool(change.lost)
        self._is_outdated = bool(change.waiting)
        absent = {each.path for each in change.failed} | {*change.waiting}
        self._shown = frozenset(root.path for root in self._ordered) - absent
        self._print_failures(change.failed)
        self._feed.report(report)
        self._tell()

    def _print_failures(self, failed: Iterable[FailedRoot]) -> None:
        """Print once why a root is not shown."""
        for each in failed:
            if each not in self._printed:
                self._printed.add(each)
                shown = safe_label(each.path, limit=None)
                sys.stderr.write(
                    f"rootsd run: {shown} is not shown to the server: {each.reason};"
                    f" try: rootsd why {shown}\n"
                )

    def _lost(self) -> WardenLost:
        """Return the error. Without a warden nothing can be taken away, and its end kills the
        server. A warden that hangs is ended here, which has the same effect.
        """
        with suppress(ProcessLookupError):
            os.kill(self._wall.warden.pid, signal.SIGKILL)
        return WardenLost("the warden ended, so the server was ended, too", "rootsd doctor")


def _order(
    number: int, before: tuple[ConfinedRoot, ...], wanted: tuple[ConfinedRoot, ...]
) -> WardenOrder:
    """Return the shortest order that changes the roots `before` into those `wanted`.

    One order is applied as a whole. So roots that come and go at once need the whole list.
    """
    known = {root.path: root for root in before}
    new = tuple(root for root in wanted if known.pop(root.path, None) != root)
    if not known:
        return WardenOrder(number, OrderKind.ADD, new)
    if not new:
        return WardenOrder(number, OrderKind.REMOVE, paths=tuple(known))
    return WardenOrder(number, OrderKind.SET, wanted)


def _ignore(*_: object) -> None:
    """Do nothing: the proxy has not started."""


class WardenLost(RootsdError):
    """An error: the warden has ended, and with it the server."""
