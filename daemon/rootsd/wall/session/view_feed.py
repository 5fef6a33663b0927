"""Follow the roots that the daemon shows to one confined program.

`subscribe` runs in the front, before anything is built, since the daemon's settings are part of
the view.
`ViewFeed` takes over its connection in the warden. A daemon that is away is no revocation, so the
roots stay. But after `GRACE_S` seconds, the programs are stopped, without a time limit, because
nobody could take a root away from them. Once a daemon answers, its view is applied first, and then
the programs continue. Meanwhile, `ViewFeed` itself takes away each root whose approval ends. The
warden never starts a daemon, since that would run inside the warden's namespaces.

The messages are those of the control socket: the request `confine`, notifications `view`, and the
request `report_confined`. The answer to `confine` has all roots, and each notification a change of
them. After a message that cannot be understood, or a change that was missed, the roots are not
known. Then the programs are stopped at once, and the feed connects again.
"""

from __future__ import annotations

import math
import select
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from rootsd.core.errors import DaemonUnreachable, RootsdError
from rootsd.core.mount_plan import ConfinedRoot
from rootsd.core.paths import bytes_of, text_of
from rootsd.core.record import BadRecord, from_json
from rootsd.core.wall import WallSettings
from rootsd.link import connect, rpc, sandbox
from rootsd.link.daemon_link import AutostartProcess
from rootsd.link.reconnect import GRACE_S, ReconnectPolicy
from rootsd.places.runtime_dir import find_runtime_dirs
from rootsd.wall.kernel.orders import (
    BadOrder,
    PauseState,
    WardenReport,
    decode_denied,
    decode_root,
)
from rootsd.wire.jsonrpc import (
    ErrorResponse,
    LineReader,
    LineTooLong,
    Notification,
    Request,
    Response,
    encode,
    parse,
)
from rootsd.wire.requested_scope import ResumeState

_SUBSCRIBE, _VIEW, _REPORT = "confine", "view", "report_confined"
_SUBSCRIBE_ID = 1
_MAX_LINE_BYTES = 1 << 28
_ANSWER_TIMEOUT_S = 10.0
_CONNECT_TIMEOUT_S = 0.1
_LOOK_AGAIN_S = 2.0
"""How long a program may run that somebody outside continues while no daemon answers."""
_RESTART = "rootsd down && rootsd up"


class FollowedView:
    """The roots of the daemon, as its messages on one connection add up."""

    def __init__(self) -> None:
        self.denied: frozenset[bytes] = frozenset()
        """All denied folders."""
        self._roots: dict[bytes, ConfinedRoot] = {}
        self._awaited = 0

    @property
    def roots(self) -> tuple[ConfinedRoot, ...]:
        """The roots, sorted by name."""
        return tuple(sorted(self._roots.values(), key=lambda root: (root.name, root.path)))

    @property
    def next_end_ns(self) -> float:
        """When the first of the approvals ends, in ns since the machine started."""
        ends = (root.ends_ns for root in self._roots.values())
        return min((end for end in ends if end is not None), default=math.inf)

    def end_approvals(self, now_ns: int) -> bool:
        """Remove the roots whose approval has ended, and return whether there were any."""
        kept = {
            path: root
            for path, root in self._roots.items()
            if root.ends_ns is None or root.ends_ns > now_ns
        }
        has_ended = len(kept) < len(self._roots)
        self._roots = kept
        return has_ended

    def take(self, item: object) -> None:
        """Apply the next change. The first one has all roots. Raises BadView."""
        match item:
            case {
                "number": int() as number, "roots": list() as roots, "removed": list() as gone,
                "denied": list() | None as all_denied,
            }:  # fmt: skip
                pass
            case _:
                raise BadView("the daemon sent no view", _RESTART)
        if number != self._awaited:
            raise BadView("the daemon left out a change of the view", _RESTART)
        try:
            changed = [decode_root(root) for root in roots]
            removed = [bytes_of(path) for path in gone]
            denied = decode_denied(all_denied)
        except (BadOrder, AttributeError, UnicodeEncodeError) as error:
            raise BadView(f"the daemon sent a wrong view: {error}", _RESTART) from error
        for path in removed:
            self._roots.pop(path, None)
        self._roots.update((root.path, root) for root in changed)
        if denied is not None:
            self.denied = denied
        self._awaited += 1


class WallSubscription(NamedTuple):
    """An answered subscription: the connection, and what the daemon sent.

    `params` are those to subscribe with again.
    """

    connection: socket.socket
    lines: LineReader
    params: dict[str, Any]
    settings: WallSettings
    view: FollowedView

    @property
    def roots(self) -> tuple[ConfinedRoot, ...]:
        """The roots of the view."""
        return self.view.roots

    @property
    def start(self) -> ResumeState | None:
        """The start of the session; None for a scope without a folder."""
        match self.params:
            case {"anchor": anchor, "approvals": approvals}:
                return ResumeState(anchor, approvals)
            case _:
                return None


class BadView(RootsdError):
    """An answer of the daemon that this version cannot understand."""


def subscribe(params: dict[str, Any]) -> WallSubscription:
    """Connect to the daemon, starting it if necessary, and subscribe. Raises RootsdError."""
    connection = _connect_or_start()
    try:
        return _subscribe_on(connection, params)
    except RootsdError:
        connection.close()
        raise


def _subscribe_on(connection: socket.socket, params: dict[str, Any]) -> WallSubscription:
    connection.settimeout(_ANSWER_TIMEOUT_S)
    lines = LineReader(_MAX_LINE_BYTES)
    try:
        connection.sendall(encode(Request(_SUBSCRIBE_ID, _SUBSCRIBE, params)))
        while (line := lines.pop()) is None:
            data = connection.recv(1 << 16)
            if not data:
                raise DaemonUnreachable("the daemon hung up before it answered", "rootsd status")
            lines.feed(data)
    except OSError as error:
        raise DaemonUnreachable("the daemon does not answer", _RESTART) from error
    except LineTooLong as error:
        raise BadView("the daemon sent a view that is too long", _RESTART) from error
    result = _result(line)
    view = FollowedView()
    view.take(result.get("view"))
    try:
        settings = from_json(WallSettings, result.get("settings"))
    except BadRecord as error:
        raise BadView(f"the daemon sent no settings: {error}", _RESTART) from error
    return WallSubscription(connection, lines, _resumed(params, result), settings, view)


class Programs(Protocol):
    """The programs behind the wall; see `rootsd.wall.kernel.pause`."""

    state: PauseState

    def stop(self) -> None:
        """Stop those that run."""

    def resume(self) -> None:
        """Let those go on that `stop` has stopped."""


class ViewFeed:
    """The daemon's roots, as the warden's loop drives them.

    `state` is sent with each report. A daemon that is connected later gets the last report, too.
    """

    def __init__(
        self,
        subscription: WallSubscription,
        on_roots: Callable[[Sequence[ConfinedRoot], frozenset[bytes]], None],
        state: dict[str, object],
        programs: Programs,
    ) -> None:
        self._state = state
        self._programs = programs
        self._params = subscription.params
        self._on_roots = on_roots
        self._connection: socket.socket | None = subscription.connection
        self._connection.settimeout(0)
        self._lines = subscription.lines
        self._view = subscription.view
        self._shown = self._view  # until another daemon has sent its view
        self._policy = ReconnectPolicy()
        self._policy.connected()
        self._stop_at = math.inf
        self._reports = _SUBSCRIBE_ID
        self._outgoing = bytearray()

    @property
    def deadline(self) -> float:
        """When to connect again, to stop the programs, or to end an approval."""
        if not self.is_away:
            return self._stop_at
        retry_at = self._policy.retry_at if self._connection is None else math.inf
        left_ns = self._shown.next_end_ns - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        return min(self._stop_at, retry_at, time.monotonic() + left_ns / 1e9)

    @property
    def is_away(self) -> bool:
        """Whether no daemon has sent its view since the last one was lost."""
        return self._connection is None or self._view is not self._shown

    def interest(self) -> Iterator[tuple[int, int]]:
        """Yield the descriptor of the connection."""
        if self._connection is not None:
            wanted = select.POLLIN | (select.POLLOUT if self._outgoing else 0)
            yield self._connection.fileno(), wanted

    def attend(self) -> None:
        """Read what the daemon sent, connect again, or do what is due without a daemon."""
        now = time.monotonic()
        if self._connection is None and now >= self._policy.retry_at:
            self._connect()
        if self._connection is not None:
            self._flush()
            self._receive()
        if self.is_away:
            now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            if self._shown.end_approvals(now_ns):
                self._on_roots(self._shown.roots, self._shown.denied)
        if time.monotonic() >= self._stop_at:
            self._stop_at = time.monotonic() + _LOOK_AGAIN_S
            self._programs.stop()

    def let_run(self) -> None:
        """Let stopped programs run for the time that a restart of the daemon may take."""
        if self._programs.state is PauseState.STOPPED:
            self._stop_at = time.monotonic() + GRACE_S
            self._programs.resume()

    def report(self, report: WardenReport) -> None:
        """Tell the daemon which roots are shown, and which processes hold removed files."""
        self._state = {
            **self._state,
            "roots": report.shown,
            "read_only": report.read_only,
            "masked": report.masked,
            "waiting": len(report.waiting),
            "holders": list(report.holders),
            "not_shown": [f"{text_of(path)}: {reason}" for path, reason in report.failed],
        }
        if self._connection is not None:
            self._send_state()
            self._flush()

    def _send_state(self) -> None:
        self._reports += 1
        self._outgoing += encode(Request(self._reports, _REPORT, self._state))

    def _connect(self) -> None:
        connection = _connect_control(_CONNECT_TIMEOUT_S)
        if connection is None:
            self._policy.missed(time.monotonic())
            return
        connection.settimeout(0)
        self._connection = connection
        self._lines = LineReader(_MAX_LINE_BYTES)
        self._view = FollowedView()
        self._policy.connected()
        self._outgoing = bytearray(encode(Request(_SUBSCRIBE_ID, _SUBSCRIBE, self._params)))
        self._send_state()

    def _receive(self) -> None:
        while self._connection is not None:
            try:
                data = self._connection.recv(1 << 16)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                now = time.monotonic()
                self._disconnect()
                self._policy.lost(now, useful=True)
                self._stop_at = min(self._stop_at, now + GRACE_S)
                return
            self._lines.feed(data)
        has_changed = False
        try:
            while (line := self._lines.pop()) is not None:
                has_changed = self._take(line) or has_changed
        except (RootsdError, LineTooLong):
            if has_changed:  # by a message before this one, which may have taken a root away
                self._show()
            self._disconnect()
            self._policy.lost(time.monotonic(), useful=False)
            self._stop_at = time.monotonic()
            return
        if has_changed:
            self._stop_at = math.inf
            self._show()
            self._programs.resume()

    def _show(self) -> None:
        self._shown = self._view
        self._on_roots(self._view.roots, self._view.denied)

    def _take(self, line: bytes) -> bool:
        """Take a message, and return whether it has changed the view. Raises RootsdError."""
        match parse(line):
            case Notification(method, params) if method == _VIEW:
                self._view.take(params)
                return True
            case Response(id_) | ErrorResponse(id_) if id_ == _SUBSCRIBE_ID:
                result = _result(line)
                self._params = _resumed(self._params, result)
                self._view.take(result.get("view"))
                return True
            case _:
                return False

    def _disconnect(self) -> None:
        assert self._connection is not None
        self._connection.close()
        self._connection = None
        self._outgoing.clear()

    def _flush(self) -> None:
        try:
            while self._outgoing and self._connection is not None:
                del self._outgoing[: self._connection.send(self._outgoing)]
        except BlockingIOError:
            pass
        except OSError:
            self._outgoing.clear()  # `_receive` finds the loss


def _connect_or_start() -> socket.socket:
    try:
        return rpc.connect_control()
    except rpc.DaemonGone:
        if sandbox.in_sandbox():
            raise
    starter = AutostartProcess()
    while not starter.has_ended():
        pass  # each call reads what the starter wrote, and blocks until there is something
    if (failure := starter.outcome()) is not None:
        raise failure
    return rpc.connect_control()


def _connect_control(timeout_s: float) -> socket.socket | None:
    for folder in find_runtime_dirs():
        try:
            return connect.connect(folder.control_socket, timeout_s=timeout_s)
        except RootsdError:
            continue
    return None


def _result(line: bytes) -> dict[str, Any]:
    match parse(line):
        case Response(_, dict() as result):
            return result
        case ErrorResponse(_, _, message, data):
            remedy = data.get("remedy") if isinstance(data, dict) else None
            raise BadView(message, remedy if isinstance(remedy, str) else _RESTART)
        case _:
            raise BadView("the daemon does not answer as expected", _RESTART)


def _resumed(params: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that continue the session after a restart of the daemon."""
    match result.get("start"):
        case {"anchor": anchor, "approvals": approvals}:
            return {**params, "anchor": anchor, "approvals": approvals}
        case _:
            return params
