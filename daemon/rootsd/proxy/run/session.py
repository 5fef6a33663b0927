"""Order the messages between one client and its server, across server restarts. Pure.

The session takes lines and fills an `Outbox`; the loop that holds the pipes empties it. Messages
keep their order. Three things can hold the client's queue: the answer to `initialize`, a call
while the server is not ready for it (`ReadinessGate`), and a restart of the server
(`RestartPolicy`). Later messages wait behind the held one. Three kinds skip the queue: the
client's responses, and cancellations of requests that the server has, because the server may wait
for them; and pings, because the client wants to know whether the connection is alive. A
cancellation of a request that waits in the queue removes it, and the server sees neither.

After a restart, the new server gets the handshake and the open requests (`Replay`).

Batches exist only in MCP 2025-03-26. Each member is handled like a single message.

Times are seconds of a clock that never goes back.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from enum import Enum, auto
from functools import partial

from rootsd.core.errors import RootsdError
from rootsd.core.quick_tuple import NamedTuple
from rootsd.proxy.client_roots import parse_client_roots, unknown_place
from rootsd.proxy.run import input_required
from rootsd.proxy.run.client_queue import (
    ClientQueue,
    ParsedLine,
    QueuedLine,
    contains_call,
    forward_batch,
)
from rootsd.proxy.run.command import LaunchSpec
from rootsd.proxy.run.input_required import StateSigner
from rootsd.proxy.run.line_reader import MAX_LINE_BYTES
from rootsd.proxy.run.outbox import Outbox
from rootsd.proxy.run.own_ids import OwnIds
from rootsd.proxy.run.place import SessionPlace, Standing, uses_place
from rootsd.proxy.run.readiness import ReadinessGate, ServerProfile
from rootsd.proxy.run.relayed_session import RelayedSession
from rootsd.proxy.run.restart import NO_RESTART, RestartDecision, RestartNeed, RestartPolicy
from rootsd.proxy.run.roots import (
    STAY_REMEDY,
    RootFolder,
    RootsProvider,
    WallState,
)
from rootsd.proxy.run.router import MessageRouter
from rootsd.wire import mcp_messages
from rootsd.wire.hello import MoveResult
from rootsd.wire.jsonrpc import (
    INVALID_REQUEST,
    Batch,
    ErrorResponse,
    Id,
    Malformed,
    Notification,
    Request,
    Response,
    encode,
    is_plain_line,
    parse_repaired,
    parse_strict,
)
from rootsd.wire.roots_subscription import RootsUpdate

_RESTART_WAIT_S = 2.0
"""How long a call waits for other calls to end, which a restart would fail."""
_UNREAD_MIN_BYTES = 1 << 14  # shorter lines are always parsed
_MAX_UNANSWERED = 1_000  # roots requests of a server that wait for an answer
_COMPLETE = re.compile(rb'"result": ?\{"resultType": ?"complete"')
_BUSY = RootsdError(
    "the approved roots have changed, so the server must restart, but it is busy",
    "cancel the call in flight, or ask again",
)
_NOT_KNOWN = RootsdError("rootsd does not answer, so no folder is open", "rootsd status")
_NO_APPROVED_ROOTS = RootsdError("no folder is approved for this server", "rootsd pending")


class _Action(Enum):
    """What to do with the first line of the client's queue."""

    FORWARD = auto()
    HOLD = auto()


class _ServerState(Enum):
    """The state of the server. The first server starts as `RUNNING`: the client initializes it."""

    RUNNING = auto()
    STOPPING = auto()
    INITIALIZING = auto()
    ABSENT = auto()
    """It does not run without a root, and there is none."""


class _Look(NamedTuple):
    """A look for a daemon, which ends when there is one, or when it is certain that there is none.

    It is on behalf of one held call, and says nothing about later ones.
    """

    call: QueuedLine
    found_none: bool = False


class RunSession(RelayedSession):
    """One client's session. Pass it the lines of both sides, root updates, and server events."""

    def __init__(
        self,
        provider: RootsProvider,
        restart_policy: RestartPolicy,
        gate: ReadinessGate,
        out: Outbox,
        signer: StateSigner,
        place: SessionPlace | None = None,
    ) -> None:
        self._provider = provider
        self._restart_policy = restart_policy
        self._gate = gate
        self._out = out
        self._signer = signer
        self._place = place  # None for a session that stays where it began
        self._router = MessageRouter(provider, gate, out, signer)
        self._queue = ClientQueue()
        self._last_folders: tuple[RootFolder, ...] = ()
        self._wait_until = math.inf  # while a call waits for others before a restart
        self._may_wait = True
        self._look: _Look | None = None
        self._server_state = _ServerState.RUNNING
        self._own_ids = OwnIds(signer.tag, "again")  # for a new server
        self._handshake_id: Id | None = None

    @property
    def backlog(self) -> int:
        """How many bytes of the client wait in the queue."""
        return self._queue.size

    @property
    def deadline(self) -> float:
        """When to call `tick` at the latest."""
        return min(
            self._gate.deadline,
            self._provider.deadline,
            self._restart_policy.deadline,
            self._wait_until,
            math.inf if self._place is None else self._place.deadline,
        )

    def from_client(self, line: bytes, now: float) -> None:
        """Take a line of the client, without its newline."""
        if not line.strip():
            return
        message = parse_strict(line)
        if isinstance(message, Malformed) and not message.is_call:
            line, message = parse_repaired(line)
        if isinstance(message, Response | ErrorResponse | Malformed):
            passed = self._router.from_client(line, message, now)
            if self._server_state in (
                _ServerState.RUNNING,
                _ServerState.INITIALIZING,
            ):  # otherwise the server that asked is gone
                self._to_server(passed)
            self._apply_roots(now)
            self._advance(now)
            return
        if isinstance(message, Notification) and self._queue.cancel(message):
            self._advance(now)
            return
        if self._may_skip_queue(message):
            assert not isinstance(message, Batch)
            passed = self._router.from_client(line, message, now)
            if self._server_state is _ServerState.RUNNING:  # no other server has the request
                self._to_server(passed)
            self._advance(now)
            return
        if (queued := self._to_queue(line, message)) is not None:
            self._queue.append(queued)
            self._advance(now)

    def _to_queue(self, line: bytes, message: ParsedLine) -> QueuedLine | None:
        """Return what to queue, or None for a line that the client has to send again."""
        if self._place is None or not uses_place(message):
            return QueuedLine(line, message, None)
        told = None
        if isinstance(message, Request):
            if (question := input_required.place_question(message, self._signer)) is not None:
                self._out.to_client += question
                return None
            if input_required.brings_place(message, self._signer):
                if (answer := input_required.told_place(message)) is None:
                    self._router.refuse_unsent(
                        message, unknown_place("the client did not say", STAY_REMEDY)
                    )
                    return None
                told = parse_client_roots(answer)
                line = input_required.without_place(line.decode()).encode()
                message = parse_strict(line)
        place = self._place.place_of(message)
        return QueuedLine(line, message, place if told is None else place._replace(told=told))

    def from_server(self, line: bytes, now: float) -> None:
        """Take a line of the server, without its newline."""
        if not line.strip():
            return
        if self._may_forward_unread(line):
            self._out.to_client += line + b"\n"
            self._advance(now)
            return
        line, message = parse_repaired(line)
        if isinstance(message, Batch):
            self._to_client(forward_batch(line, message, now, self._router.from_server))
        elif isinstance(message, Response | ErrorResponse) and message.id in self._own_ids:
            self._own_response(message, now)
        elif isinstance(message, Malformed) and self._may_be_own(line, message):
            self._own_response(message.error, now)
        else:
            self._to_client(self._router.from_server(line, message, now))
        self._advance(now)

    def may_stream(self, begun: bytes) -> bool:
        """Whether a long line of the server may go to the client before its end has arrived.

        `begun` is the beginning of the line. After such a line, call `stream_ended`.
        """
        if self._server_state is not _ServerState.RUNNING:
            return False
        id_ = mcp_messages.quick_response_id(begun)
        if id_ is None:
            return (
                begun.startswith(mcp_messages.RESULT_PREFIX) and self._router.ignores_all_responses
            )
        complete = _COMPLETE.search(begun, 0, mcp_messages.SCAN_BYTES) is not None
        return id_ not in self._own_ids and self._router.may_stream(id_, is_complete=complete)

    def stream_ended(self, ends: bytes, now: float) -> None:
        """Note the end of a streamed line. `ends` are its beginning and its end."""
        id_ = mcp_messages.quick_response_id(ends)
        if id_ is not None:
            self._router.close_unread(self._router.replay.answered_by(id_))
        self._advance(now)

    def roots_outdated(self) -> None:
        """Note that the last update may no longer be true. Calls wait for the next update."""
        self._gate.roots_outdated = True

    def roots_updated(self, update: RootsUpdate[RootFolder], now: float) -> None:
        """Apply an update of the approved roots."""
        self._gate.roots_outdated = not update.is_current
        if update.is_known:
            self._provider.set_approved(update.roots)
        else:
            self._provider.forget_approved()
        self._roots_changed(update.requests, now)

    def moved(self, outcome: MoveResult | RootsdError, now: float) -> None:
        """Note what the daemon says about the place where the session works now."""
        if self._place is not None:
            self._place.moved(outcome)
            self._apply_move()
            self._apply_roots(now)
            self._advance(now)

    def _apply_move(self) -> None:
        if self._place is not None and self._place.take_move():
            self._restart_policy.move_to(self._place.working_directory)
            self._provider.move_to(self._place.working_directory)

    def wall_changed(self, state: WallState, requests: int, now: float) -> None:
        """Apply a change of the roots behind the wall. Calls wait until it is settled.

        `requests` counts the queries of the server that it answers.
        """
        self._provider.set_wall(state)
        self._roots_changed(requests, now)

    def _roots_changed(self, requests: int, now: float) -> None:
        self._apply_roots(now)
        for _ in range(requests):
            self._provider.daemon_answered(now)
        self._advance(now)

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        self._gate.tick(now)
        self._provider.tick(now)
        if self._place is not None:
            self._place.tick(now)
        self._apply_roots(now)
        if now >= self._wait_until:
            self._wait_until, self._may_wait = math.inf, False
        if now >= self._restart_policy.deadline:
            self._request_restart()
        self._advance(now)

    def start(self) -> LaunchSpec:
        """Return the command of the server that is about to start."""
        self._last_folders = self._provider.folders
        folders = self._provider.verified_folders()
        if self._restart_policy.roots_in_command:
            self._provider.record_sent(folders)
        return self._restart_policy.start(folders)

    def started(self, now: float, is_busy: Callable[[], bool]) -> None:
        """Note that the server runs, and restore the session if it replaces another server.

        `is_busy` returns whether the server is busy.
        """
        self._gate.is_busy = is_busy
        if self._server_state is _ServerState.RUNNING:
            return
        self._server_state = _ServerState.INITIALIZING
        self._handshake_id = id_ = self._own_ids.new()
        line = self._router.replay.handshake(id_)
        if line is None:
            self._resume(now)
        else:
            self._out.to_server += line

    def refuse_oversized_line(self) -> None:
        """Refuse a line of the client that is too long. Its id is not known."""
        text = f"the line is longer than {MAX_LINE_BYTES} bytes"
        if self._out.client_reads:
            self._out.to_client += encode(ErrorResponse(None, INVALID_REQUEST, text))
        self._out.dropped_lines.append(f"a line of the client was dropped: {text}")

    def fail_oversized_response(self, ends: bytes) -> None:
        """Drop a line of the server that is too long. If it was a response, answer with an
        error.
        """
        text = f"the answer of the server is longer than {MAX_LINE_BYTES} bytes"
        self._router.fail_unreadable(ends, text)

    @property
    def printed_text(self) -> str:
        """The label of text that the server printed after its last message; mostly empty."""
        return self._router.printed_text

    @property
    def pending_responses(self) -> int:
        """How many responses the client waits for, without those that end a stream."""
        return self._router.pending_responses

    @property
    def is_flooded(self) -> bool:
        """Whether the server has sent so many roots requests that the loop must stop reading
        it.
        """
        return self._provider.unanswered >= _MAX_UNANSWERED

    def output_written(self) -> None:
        """Note that the server may have read its input, and answer more of its requests if so."""
        self._provider.query_daemon()

    def server_exited(self) -> bool:
        """Note that the server ended by itself. Return whether it lacked roots.

        In that case, the session goes on without a server until there are roots.
        """
        if self._provider.folders or not self._restart_policy.roots_in_command:
            return False
        self._server_state = _ServerState.ABSENT
        self._gate.open()
        self._router.fail_all(_NO_APPROVED_ROOTS)
        self._server_lost(_NO_APPROVED_ROOTS)
        self._refuse_queue(_NO_APPROVED_ROOTS)
        return True

    def server_revoked(self) -> None:
        """Note that a revoke has ended the server, which another one replaces now."""
        self._request_restart()

    def fail_all(self, error: RootsdError) -> None:
        """Answer everything that the client waits for with `error`: no server follows."""
        self._router.fail_all(error)
        self._refuse_queue(error)

    def _refuse_queue(self, error: RootsdError) -> None:
        while self._queue:
            self._refuse(self._queue.take().message, error)

    def _refuse(self, message: ParsedLine, error: RootsdError) -> None:
        for member in message.members if isinstance(message, Batch) else (message,):
            self._router.refuse_unsent(member, error)

    # Towards the server

    def _advance(self, now: float) -> None:
        while (
            self._queue
            and (action := self._action_for(self._queue.first, now)) is not _Action.HOLD
        ):
            line, message, _ = self._queue.take()
            if isinstance(action, RootsdError):
                self._refuse(message, action)
            elif isinstance(message, Batch):
                self._to_server(forward_batch(line, message, now, self._router.from_client))
            else:
                self._to_server(self._router.from_client(line, message, now))
            self._apply_roots(now)
        if not self._queue:
            self._wait_until, self._may_wait, self._look = math.inf, True, None

    def _action_for(self, queued: QueuedLine, now: float) -> _Action | RootsdError:
        is_absent = self._server_state is _ServerState.ABSENT and not self._provider.folders
        if not is_absent and (
            self._server_state is not _ServerState.RUNNING
            or self._router.awaits_roots
            or self._router.is_initializing
        ):
            return _Action.HOLD
        standing = self._standing_of(queued, now)
        if standing is Standing.WAIT:
            return _Action.HOLD
        if isinstance(standing, RootsdError):
            return standing
        if is_absent:
            return _NO_APPROVED_ROOTS
        if not contains_call(queued.message):
            return _Action.FORWARD
        if not self._provider.wall_is_settled:
            return _Action.HOLD
        if self._restart_policy.wall_is_outdated():
            return self._action_for_call(queued, now)
        if (
            self._gate.profile is ServerProfile.IN_CALLS
            and not self._restart_policy.roots_in_command
        ):
            return _Action.FORWARD  # it asks for roots when it needs them
        if self._gate.is_closed or self._provider.awaits_client:
            return _Action.HOLD
        return self._action_for_call(queued, now)

    def _standing_of(self, queued: QueuedLine, now: float) -> Standing | RootsdError:
        """Return whether the server is where the session works, if a line depends on that."""
        if self._place is None or queued.place is None:
            return Standing.HERE
        may_ask = self._router.may_ask_client and not _is_2026(queued.message)
        if queued.place.told is None and not may_ask:
            return Standing.HERE
        is_idle = next(self._router.in_flight(), None) is None
        return self._place.look(queued.place, now, is_idle=is_idle)

    def _action_for_call(self, queued: QueuedLine, now: float) -> _Action | RootsdError:
        """Return what to do with a call, which may need another server first."""
        due = self._needed_restart()
        if due.need is RestartNeed.NONE:
            return _Action.FORWARD
        if due.need is RestartNeed.NARROWER and not self._provider.is_known:
            # A daemon that restarts should not cost the state of the server.
            return self._look_for_daemon(queued)
        if all(_mentions(each, due.lost) for each in self._router.in_flight()):
            self._request_restart()
            return _Action.HOLD
        if self._may_wait:
            self._wait_until = min(self._wait_until, now + _RESTART_WAIT_S)
            return _Action.HOLD
        return _Action.FORWARD if due.need is RestartNeed.WIDER else _BUSY

    def _look_for_daemon(self, call: QueuedLine) -> _Action | RootsdError:
        """Hold a call until it is certain that no daemon says what is approved."""
        if self._look is None or self._look.call is not call:
            self._look = _Look(call)
            self._provider.when_known(partial(self._looked, call))
        return _NOT_KNOWN if self._look.found_none else _Action.HOLD

    def _looked(self, call: QueuedLine, _: float) -> None:
        if self._look is not None and self._look.call is call:
            self._look = None if self._provider.is_known else _Look(call, found_none=True)

    def _needed_restart(self) -> RestartDecision:
        if self._restart_policy.wall_is_outdated():
            return RestartDecision(RestartNeed.WALL)
        folders = self._provider.folders
        # A server that never asked for roots may use its working directory instead.
        if self._restart_policy.roots_in_command or not self._gate.has_asked:
            return self._restart_policy.for_command(folders, self._provider.folder_exists)
        if not self._gate.stale or not self._router.has_sent_roots:
            return NO_RESTART
        kept = self._provider.kept
        due = self._restart_policy.for_sent_roots(kept, folders, self._provider.folder_exists)
        if not due.lost and self._restart_policy.keeps_old_place(self._provider.sent, folders):
            return RestartDecision(RestartNeed.MOVED)
        if due.need is RestartNeed.WIDER and self._gate.may_ask_again:
            return NO_RESTART  # the call shows whether the server needs a restart
        return due

    def _may_skip_queue(self, message: ParsedLine) -> bool:
        """Whether a message must not wait: a ping, or the end of a request that has no answer."""
        if isinstance(message, Request):
            return message.method == "ping" and self._server_state is _ServerState.RUNNING
        return isinstance(message, Notification) and self._router.cancels_open(message)

    def _to_server(self, line: bytes | None) -> None:
        if line is not None:
            self._out.to_server += line + b"\n"

    # Towards the client

    def _may_forward_unread(self, line: bytes) -> bool:
        """Whether a line is a response that may go on without being parsed.

        It does not mention roots. If a client still finds a question about roots in it, the proxy
        reads the client's answer: see `rootsd.proxy.run.router`.
        """
        if len(line) < _UNREAD_MIN_BYTES or b"roots" in line or not is_plain_line(line):
            return False
        id_ = mcp_messages.quick_response_id(line)
        return id_ is not None and id_ not in self._own_ids and self._router.close_unread(id_)

    def _to_client(self, line: bytes | None) -> None:
        if line is not None:
            self._out.to_client += line + b"\n"

    # Changes of the roots, and of servers

    def _apply_roots(self, now: float) -> None:
        """Tell the server about changed roots, in the way that works for this server."""
        folders = self._provider.folders
        if folders == self._last_folders:
            return
        self._last_folders = folders
        if self._server_state is _ServerState.ABSENT:
            self._restart_policy.roots_appeared(now)
        elif self._restart_policy.changes_command(folders):
            return  # the next call restarts the server
        elif self._router.has_sent_roots and self._server_state is _ServerState.RUNNING:
            if self._router.replay.has_handshake:
                self._out.to_server += encode(Notification(mcp_messages.ROOTS_CHANGED))
                self._gate.roots_changed(now)
            else:
                self._gate.roots_changed_untold()

    def _request_restart(self) -> None:
        self._server_state = _ServerState.STOPPING
        self._handshake_id = None
        self._restart_policy.deadline = math.inf
        self._gate.open()
        self._out.to_server.clear()
        self._out.restart_requested = True
        reason = "the server was restarted because the approved roots have changed"
        self._server_lost(RootsdError(reason, "ask again"))

    def _server_lost(self, error: RootsdError) -> None:
        self._router.server_lost(error)
        self._look = None  # it was dropped with the requests of the server

    def _may_be_own(self, line: bytes, malformed: Malformed) -> bool:
        """Whether a malformed line may answer a request of the proxy itself.

        A line without a usable id ends the handshake with a new server: nothing better may come.
        """
        if malformed.error.id in self._own_ids:
            return True
        return (
            self._server_state is _ServerState.INITIALIZING
            and malformed.error.id is None
            and not malformed.is_call
            and mcp_messages.looks_like_response(line)
        )

    def _own_response(self, answer: Response | ErrorResponse, now: float) -> None:
        """Handle a response to a request that the proxy sent to a new server."""
        if answer.id in (self._handshake_id, None):
            self._handshake_id = None
            self._resume(now)

    def _resume(self, now: float) -> None:
        replay = self._router.replay
        self._server_state = _ServerState.RUNNING
        for message in replay.after_handshake(iter(self._own_ids.new, "")):
            self._out.to_server += encode(message)
        if replay.initialized:
            self._gate.handshake_done(now)
        self._out.to_server += replay.repeat()
        self._out.to_client += b"".join(replay.change_notifications())
        self._apply_roots(now)
        self._advance(now)


def _is_2026(message: ParsedLine) -> bool:
    """Whether a line is a request of MCP 2026-07-28, whose client is not asked separately."""
    return isinstance(message, Request) and input_required.carries_protocol_version(message)


def _mentions(request: Request, folders: Iterable[RootFolder]) -> bool:
    """Whether a request names one of these folders, or something in it."""
    text = json.dumps(request.params, ensure_ascii=False)
    return any(folder.text in text for folder in folders)
