"""Order the messages between one client and its server, across server restarts. Pure.

Batches, which MCP 2025-03-26 alone has: each member is dealt with like a message. Pure.

The lines of one client and of the servers that serve it, one after another. Pure.

Lines in, and an outbox that fills: whoever holds the pipes empties it. What passes does so in the
order it came in. Calls wait where the server is not ready for them, and everything waits for the
answer to `initialize`; what the client says after them waits behind them, but for its answers to
what the server asks: those may be what the server waits for. Times are seconds of a clock that
never goes back.
"""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum, auto
from itertools import count

from rootsd.core.errors import RootsdError
from rootsd.proxy.run.command import LaunchSpec
from rootsd.proxy.run.input_required import StateSigner
from rootsd.proxy.run.line_reader import MAX_LINE_BYTES
from rootsd.proxy.run.outbox import Outbox
from rootsd.proxy.run.readiness import ReadinessGate, ServerProfile
from rootsd.proxy.run.restart import NO_RESTART, RestartDecision, RestartNeed, RestartPolicy
from rootsd.proxy.run.roots import RootFolder, RootsProvider
from rootsd.proxy.run.router import CALL_METHODS, MessageRouter
from rootsd.proxy.run.subscription import RootsUpdate
from rootsd.wire import jsonrpc, mcp_messages
from rootsd.wire.jsonrpc import (
    INVALID_REQUEST,
    Batch,
    ErrorResponse,
    Id,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
    encode,
    parse_strict,
)

ForwardMember = Callable[[bytes, Message | Malformed, float], bytes | None]


def forward_batch(line: bytes, batch: Batch, now: float, pass_on: ForwardMember) -> bytes | None:
    """What goes on of the line of a batch: of each member what `pass_on` says.

    What stands between the members stays, unless one of them is gone.
    """
    text = line.decode()
    places = jsonrpc.element_spans(text)
    parts = [text[start:end].encode() for start, end in places]
    outcome = [pass_on(*each, now) for each in zip(parts, batch.members, strict=True)]
    kept = [part for part in outcome if part is not None]
    if len(kept) < len(parts):
        return b"[" + b",".join(kept) + b"]" if kept else None
    gaps = [0, *(end for _, end in places)]
    before = [text[gap:start].encode() for gap, (start, _) in zip(gaps, places, strict=False)]
    return b"".join(map(bytes.__add__, before, kept)) + text[gaps[-1] :].encode()


_PATIENCE_S = 2.0
"""How long a call waits for others to end that another server would fail."""
_LONG = 1 << 14  # bytes of a line that is looked at from its ends first
_MOST_OWED = 1_000  # questions of a server about roots that wait for their answer
_COMPLETE = re.compile(rb'"result": ?\{"resultType": ?"complete"')
_BUSY = RootsdError(
    "the approved roots have changed, and the server has to be started again, but it is at work",
    "cancel the call in flight, or ask again",
)
_NO_ROOTS = RootsdError("no folder is approved for this server", "rootsd pending")

ParsedLine = Message | Batch | Malformed


class _Fate(Enum):
    """What becomes of the client's oldest line that waits."""

    PASSED = auto()
    HELD = auto()
    REFUSED = auto()


class _Life(Enum):
    """Where a server is. The first one needs no greeting by the relay."""

    RUNNING = auto()
    ENDING = auto()
    GREETED = auto()
    ABSENT = auto()
    """It does not run without a root, and there is none."""


class RunSession:
    """Feed it each line of both sides, what the daemon tells, and what becomes of servers."""

    def __init__(
        self,
        supply: RootsProvider,
        renewal: RestartPolicy,
        barrier: ReadinessGate,
        out: Outbox,
        seal: StateSigner,
    ) -> None:
        self.backlog = 0
        """How many bytes of the client wait here."""
        self._supply = supply
        self._renewal = renewal
        self._barrier = barrier
        self._out = out
        self._traffic = MessageRouter(supply, barrier, out, seal)
        self._own = f"rootsd-run-{seal.tag}-again-"
        self._queue: deque[tuple[bytes, ParsedLine]] = deque()
        self._told: tuple[RootFolder, ...] = ()
        self._patient_until = math.inf  # while a call waits for others to end
        self._is_patient = True
        self._life = _Life.RUNNING
        self._numbers = count(1)
        self._greeting: Id | None = None

    @property
    def deadline(self) -> float:
        """When to call `tick`, at the latest."""
        return min(
            self._barrier.deadline,
            self._supply.deadline,
            self._renewal.deadline,
            self._patient_until,
        )

    def from_client(self, line: bytes, now: float) -> None:
        """A line of the client, without its newline."""
        if not line.strip():
            return
        message = parse_strict(line)
        if isinstance(message, Response | ErrorResponse | Malformed):
            passed = self._traffic.from_client(line, message, now)
            if self._life in (_Life.RUNNING, _Life.GREETED):  # else whoever asked that is gone
                self._to_server(passed)
            self._review(now)
            self._advance(now)
            return
        if isinstance(message, Notification) and self._may_overtake(message):
            self._to_server(self._traffic.from_client(line, message, now))
            self._advance(now)
            return
        self._queue.append((line, message))
        self.backlog += len(line)
        self._advance(now)

    def from_server(self, line: bytes, now: float) -> None:
        """A line of the server, without its newline."""
        if not line.strip():
            return
        if self._may_pass_unread(line):
            self._out.to_client += line + b"\n"
            self._advance(now)
            return
        message = parse_strict(line)
        if isinstance(message, Batch):
            self._to_client(forward_batch(line, message, now, self._traffic.from_server))
        elif isinstance(message, Response | ErrorResponse) and self._is_own(message.id):
            self._hear(message, now)
        elif isinstance(message, Malformed) and self._is_own(message.fault.id):
            self._hear(message.fault, now)
        else:
            self._to_client(self._traffic.from_server(line, message, now))
        self._advance(now)

    def may_stream(self, begun: bytes) -> bool:
        """Whether a long line of the server may go to the client as it comes, before its end is
        there: told by how it has `begun`. If so, tell `streamed` afterwards."""
        if self._life is not _Life.RUNNING:
            return False
        id_ = mcp_messages.quick_response_id(begun)
        if id_ is None:
            return begun.startswith(mcp_messages.RESULT_PREFIX) and self._traffic.reads_no_answer
        complete = _COMPLETE.search(begun, 0, mcp_messages.SCAN_BYTES) is not None
        return not self._is_own(id_) and self._traffic.may_stream(id_, is_complete=complete)

    def streamed(self, ends: bytes, now: float) -> None:
        """Such a line is over; `ends` are its beginning and its end."""
        id_ = mcp_messages.quick_response_id(ends)
        if id_ is not None:
            self._traffic.settle(id_)
        self._advance(now)

    def doubt(self) -> None:
        """What it told last may not hold any more: calls wait until it has told what does."""
        self._barrier.in_doubt = True

    def told(self, told: RootsUpdate, now: float) -> None:
        """The daemon has told what is approved."""
        self._barrier.in_doubt = not told.holds
        self._supply.learn(told.folders)
        self._review(now)
        for _ in range(told.wishes):
            self._supply.grant(now)
        self._advance(now)

    def tick(self, now: float) -> None:
        """Do what is due."""
        self._barrier.tick(now)
        self._supply.tick(now)
        self._review(now)
        if now >= self._patient_until:
            self._patient_until, self._is_patient = math.inf, False
        if now >= self._renewal.deadline:
            self._replace()
        self._advance(now)

    def start(self) -> LaunchSpec:
        """A server is about to be started: how."""
        self._told = self._supply.folders
        folders = self._supply.checked()
        if self._renewal.is_by_command:
            self._supply.note_told(folders)
        return self._renewal.start(folders)

    def started(self, now: float, is_at_work: Callable[[], bool]) -> None:
        """It runs; `is_at_work` tells whether it has something to do. Where another one ran
        before, it is brought to where that one was."""
        self._barrier.is_at_work = is_at_work
        if self._life is _Life.RUNNING:
            return
        self._life = _Life.GREETED
        handshake = self._traffic.replay.handshake
        if handshake is None:
            self._resume(now)
            return
        self._greeting = self._next_id()
        again = jsonrpc.set_member(handshake.decode(), ("id",), f'"{self._greeting}"')
        self._to_server(again.encode())

    def refuse_line(self) -> None:
        """The client has sent a line that is too long; its id is not known."""
        text = f"the line is longer than {MAX_LINE_BYTES} bytes"
        if self._out.client_reads:
            self._out.to_client += encode(ErrorResponse(None, INVALID_REQUEST, text))
        self._out.complaints.append(f"a line of the client was dropped: {text}")

    def lose_answer(self, ends: bytes) -> None:
        """The server has; if it was an answer, the client gets another one."""
        id_ = mcp_messages.quick_response_id(ends)
        if id_ is not None:
            text = f"the answer of the server is longer than {MAX_LINE_BYTES} bytes"
            self._traffic.lose_answer(id_, text)

    @property
    def owed(self) -> int:
        """For how many answers the client waits; the end of a stream is none."""
        return self._traffic.owed

    @property
    def is_flooded(self) -> bool:
        """Whether the server has asked for roots so often that it is not read any more."""
        return self._supply.owed >= _MOST_OWED

    def drained(self) -> None:
        """The server may have read what it was told: answer on if so."""
        self._supply.ask()

    def waits_for_roots(self) -> bool:
        """The server has ended by itself: whether that is for want of roots, so that the client
        need not be left alone."""
        if self._supply.folders or not self._renewal.is_by_command:
            return False
        self._life = _Life.ABSENT
        self._barrier.open()
        self._traffic.fail(_NO_ROOTS)
        self._traffic.lose(_NO_ROOTS)
        self._refuse_queue(_NO_ROOTS)
        return True

    def ended(self, error: RootsdError) -> None:
        """The server is gone, and there will be none after it."""
        self._traffic.fail(error)
        self._refuse_queue(error)

    def _refuse_queue(self, error: RootsdError) -> None:
        for _, message in self._queue:
            self._refuse(message, error)
        self._queue.clear()
        self.backlog = 0

    def _refuse(self, message: ParsedLine, error: RootsdError) -> None:
        for member in message.members if isinstance(message, Batch) else (message,):
            self._traffic.ended(member, error)

    # Towards the server

    def _advance(self, now: float) -> None:
        if self._life is _Life.ABSENT and not self._supply.folders:
            self._refuse_queue(_NO_ROOTS)
        while self._queue and (fate := self._fate_of(self._queue[0][1], now)) is not _Fate.HELD:
            line, message = self._queue.popleft()
            self.backlog -= len(line)
            if fate is _Fate.REFUSED:
                self._refuse(message, _BUSY)
            elif isinstance(message, Batch):
                self._to_server(forward_batch(line, message, now, self._traffic.from_client))
            else:
                self._to_server(self._traffic.from_client(line, message, now))
            self._review(now)
        if not self._queue:
            self._patient_until, self._is_patient = math.inf, True

    def _fate_of(self, message: ParsedLine, now: float) -> _Fate:
        if self._life is not _Life.RUNNING or self._traffic.waits or self._traffic.shakes_hands:
            return _Fate.HELD
        members = message.members if isinstance(message, Batch) else (message,)
        if not any(isinstance(each, Request) and each.method in CALL_METHODS for each in members):
            return _Fate.PASSED
        if self._barrier.habit is ServerProfile.IN_CALLS and not self._renewal.is_by_command:
            return _Fate.PASSED  # it asks when it needs its roots
        if self._barrier.closed or self._supply.awaits_client:
            return _Fate.HELD
        return self._fate_of_call(now)

    def _fate_of_call(self, now: float) -> _Fate:
        """Return what becomes of a call, which may need another server first."""
        due = self._due()
        if due.need is RestartNeed.NONE:
            return _Fate.PASSED
        if all(_is_about(each, due.lost) for each in self._traffic.in_flight()):
            self._replace()
            return _Fate.HELD
        if self._is_patient:
            self._patient_until = min(self._patient_until, now + _PATIENCE_S)
            return _Fate.HELD
        return _Fate.PASSED if due.need is RestartNeed.WIDER else _Fate.REFUSED

    def _due(self) -> RestartDecision:
        folders = self._supply.folders
        if self._renewal.is_by_command:
            return self._renewal.by_command(folders, self._supply.is_there)
        if self._barrier.stale and self._traffic.has_listed:
            return self._renewal.by_answer(self._supply.given, folders, self._supply.is_there)
        return NO_RESTART

    def _may_overtake(self, notice: Notification) -> bool:
        """Whether a notice cancels what the server works on, so that nothing has to wait."""
        return (
            self._life is _Life.RUNNING
            and not self._traffic.waits
            and self._traffic.cancels_open(notice)
        )

    def _to_server(self, line: bytes | None) -> None:
        if line is not None:
            self._out.to_server += line + b"\n"

    # Towards the client

    def _may_pass_unread(self, line: bytes) -> bool:
        """Whether a line is an answer that goes on without being read whole.

        It is UTF-8 and one line for all readers, and does not name roots. Even if a client finds
        a question about roots in it, the client's answer is read: see `rootsd.proxy.run.router`.
        """
        if len(line) < _LONG or b"roots" in line or b"\\u" in line:
            return False
        if line.find(b"\r", 0, -1) >= 0 or not _is_utf8(line):
            return False
        id_ = mcp_messages.quick_response_id(line)
        return id_ is not None and not self._is_own(id_) and self._traffic.settle(id_)

    def _to_client(self, line: bytes | None) -> None:
        if line is not None:
            self._out.to_client += line + b"\n"

    # Changes of the roots, and of servers

    def _review(self, now: float) -> None:
        """Tell the server, in the way it can be told, where its roots are others now."""
        folders = self._supply.folders
        if folders == self._told:
            return
        self._told = folders
        if self._life is _Life.ABSENT:
            self._renewal.appear(now)
        elif self._renewal.is_by_command:
            return  # the next call starts another server, if need be
        elif self._traffic.has_listed and self._life is _Life.RUNNING:
            self._out.to_server += encode(Notification(mcp_messages.ROOTS_CHANGED))
            self._barrier.change(now)

    def _replace(self) -> None:
        self._life = _Life.ENDING
        self._greeting = None
        self._renewal.deadline = math.inf
        self._barrier.open()
        self._out.to_server.clear()
        self._out.wants_another = True
        reason = "the server was started again, as the approved roots have changed"
        self._traffic.lose(RootsdError(reason, "ask again"))

    def _hear(self, answer: Response | ErrorResponse, now: float) -> None:
        """An answer to what the relay itself has said to a new server."""
        if answer.id == self._greeting:
            self._greeting = None
            self._resume(now)

    def _resume(self, now: float) -> None:
        replay = self._traffic.replay
        self._life = _Life.RUNNING
        for message in replay.after_handshake(iter(self._next_id, "")):
            self._out.to_server += encode(message)
        if replay.initialized:
            self._barrier.begin(now)
        self._out.to_server += b"".join(replay.questions())
        self._out.to_client += b"".join(replay.news())
        self._review(now)
        self._advance(now)

    def _next_id(self) -> str:
        return f"{self._own}{next(self._numbers)}"

    def _is_own(self, id_: Id | None) -> bool:
        return isinstance(id_, str) and id_.startswith(self._own)


def _is_utf8(line: bytes) -> bool:
    try:
        return line.isascii() or bool(line.decode())
    except UnicodeDecodeError:
        return False


def _is_about(request: Request, folders: Iterable[RootFolder]) -> bool:
    """Whether a request names one of these folders, or something in it."""
    said = json.dumps(request.params, ensure_ascii=False)
    return any(folder.text in said for folder in folders)
