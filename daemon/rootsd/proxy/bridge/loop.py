"""Move lines between the client's pipes and the current daemon, across daemon restarts.

The loop forwards a client's line first and looks at it afterwards. It loads the session, and with
it `json`, while the daemon works on the first request. So the bridge adds little to the time of
the first answer.

The loop holds one chunk from the client and one line from the daemon. A client that does not read
delays only its own answers. Only whole lines pass in either direction: nobody could complete half
a line from a daemon that is lost.
"""

from __future__ import annotations

import math
import select
import sys
import time

from rootsd.core.errors import RootsdError
from rootsd.link.daemon_link import DaemonLink
from rootsd.proxy.stdio import STDIN, STDOUT, make_stdout_writer, read_stdin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rootsd.proxy.bridge.session import BridgeOutput, BridgeSession
    from rootsd.wire.hello import Hello

_CHUNK = 64 * 1024
_MAX_LINE_BYTES = 1 << 20
_CALL, _CAPABILITIES = b"tools/call", b"/clientCapabilities"
"""Two texts in each call of MCP 2026-07-28."""


class BridgeProxy:
    """The bridge for one client, from its first byte to its last. Call `run` once."""

    def __init__(self, greeting: Hello | None) -> None:
        self._greeting = greeting
        self._loaded_session: BridgeSession | None = None
        self._link = DaemonLink(self._connected, self._unreachable)
        self._answers_before = 0
        self._is_silent = False  # a daemon that came after a loss, and has sent nothing yet
        self._error: RootsdError | None = (
            None  # the last error that the client got, while it holds
        )
        self._write = make_stdout_writer()
        self._client_open = True
        self._polls: dict[tuple[tuple[int, int], ...], select.poll] = {}
        self._from_client = bytearray()  # a line of the client without its end
        self._skips_line = False  # until the end of a line that is too long
        self._from_daemon = bytearray()  # a line of the daemon without its end
        self._to_client = bytearray()
        self._answered = 0  # how many bytes of answers of our own may wait in `_to_client`

    def run(self) -> RootsdError | None:
        """Run until the client has left and has its answers. Return the error in force, if any.

        Raise BrokenPipeError if the client closes its end before it has its answers.
        """
        while self._to_client or self._is_needed:
            self._step()
        return self._error

    @property
    def _is_needed(self) -> bool:
        session = self._loaded_session
        awaits_answers = session is not None and session.awaits_answers
        # A client that has left does not wait for a daemon that may never accept.
        is_connected = self._link.connection is not None and not self._is_silent
        return self._client_open or is_connected or awaits_answers

    @property
    def _session(self) -> BridgeSession:
        if self._loaded_session is None:
            from rootsd.proxy.bridge.session import BridgeSession  # noqa: PLC0415  # json costs 7 ms

            self._loaded_session = BridgeSession(self._greeting)
        return self._loaded_session

    @property
    def _forwards(self) -> bool:
        """Whether lines of the client may go to the daemon as they come."""
        if self._link.connection is None:
            return False
        session = self._loaded_session
        return self._greeting is None if session is None else session.forwards

    def _step(self) -> None:
        self._link.attend()
        for descriptor, event in self._ready():
            if descriptor == STDIN:
                self._take_from_client(read_stdin())
            elif descriptor == STDOUT:
                if event & ~select.POLLOUT and not self._to_client:
                    raise BrokenPipeError
                self._flush()
            elif descriptor == self._link.starter_fd:
                self._link.attend()
            elif self._link.connection and descriptor == self._link.connection.fileno():
                self._take_from_daemon()
                self._send()
                self._flush()
        if self._loaded_session and (now := time.monotonic()) >= self._loaded_session.deadline:
            forwarded = self._forwards
            lines = self._pass_on(*self._loaded_session.tick(now), forwarded=forwarded)
            self._send()
            self._note(lines, forwarded=forwarded)

    def _ready(self) -> list[tuple[int, int]]:
        interest = []
        if self._has_room_for_client:
            interest.append((STDIN, select.POLLIN))
        if self._to_client:
            interest.append((STDOUT, select.POLLOUT))
        else:
            interest.append((STDOUT, 0))  # poll(2) reports a closed end even without events
        if self._link.starter_fd >= 0:
            interest.append((self._link.starter_fd, select.POLLIN))
        wanted = 0 if self._to_client else select.POLLIN
        if self._link.outgoing:
            wanted |= select.POLLOUT
        # A descriptor without events would still wake the loop again and again after a hang-up.
        if self._link.connection and wanted:
            interest.append((self._link.connection.fileno(), wanted))
        return self._poll_for(tuple(interest)).poll(self._timeout_ms())

    def _poll_for(self, interest: tuple[tuple[int, int], ...]) -> select.poll:
        """Return a cached poll object: the same few sets of descriptors come again and again."""
        poll = self._polls.get(interest)
        if poll is None:
            poll = self._polls[interest] = select.poll()
            for descriptor, wanted in interest:
                poll.register(descriptor, wanted)
        return poll

    @property
    def _has_room_for_client(self) -> bool:
        # What the daemon says is bounded otherwise. A client may have to send before it reads it.
        if not self._client_open or self._answered > _MAX_LINE_BYTES:
            return False
        if self._forwards:
            return not self._link.outgoing
        # Read on while the session is being restored at a new daemon. That daemon may never
        # answer, and the client may leave.
        session = self._loaded_session
        return len(self._to_client) < _CHUNK and (session is None or not session.is_full)

    def _timeout_ms(self) -> float | None:
        session = self._loaded_session
        due = math.inf if session is None else session.deadline
        left_s = min(self._link.retry_at, due) - time.monotonic()
        return None if left_s == math.inf else math.ceil(max(left_s, 0.0) * 1000)

    def _take_from_client(self, data: bytes) -> None:
        """Forward what the client sent. Empty `data` means that it will send no more."""
        lines = self._whole_lines(data)
        if lines and self._link.is_away:
            self._link.policy.asked(time.monotonic())
            self._link.attend()
        forwarded = self._forwards
        session = self._loaded_session
        asks = session is not None and session.has_client_roots
        if asks or (_CALL in lines and _CAPABILITIES in lines):
            lines = self._ask_places(lines, forwarded=forwarded)
        elif forwarded:
            self._link.outgoing += lines
        self._send()
        self._note(lines, forwarded=forwarded)

    def _ask_places(self, lines: bytes, *, forwarded: bool) -> bytes:
        """Forward lines with calls, each after what the daemon must know about its place.

        Return the lines that go on now. Of the others, the client sends each one again.
        """
        going = b""
        for each in lines.split(b"\n")[:-1]:
            output, line = self._session.ask_place(each, time.monotonic())
            going += self._pass_on(output, line, forwarded=forwarded)
        return going

    def _pass_on(self, output: BridgeOutput, lines: bytes, *, forwarded: bool) -> bytes:
        self._answer(output.to_client)
        if forwarded:
            self._link.outgoing += output.to_daemon + lines
        return lines

    def _note(self, lines: bytes, *, forwarded: bool) -> None:
        """Note lines of the client, and answer them if no daemon will."""
        for line in lines.split(b"\n")[:-1]:
            self._answer(self._session.from_client(line, forwarded=forwarded))
        if lines and self._error and (self._link.is_away or self._link.is_refused):
            self._answer(self._session.fail_all(self._error))

    def _answer(self, lines: bytes) -> None:
        self._to_client += lines
        self._answered += len(lines)

    def _whole_lines(self, data: bytes) -> bytes:
        if not data:
            self._client_open = False
            data = b"\n" if self._from_client else b""  # the last line may lack its newline
        if self._skips_line:
            _, newline, data = data.partition(b"\n")
            self._skips_line = not newline
        head, newline, tail = data.rpartition(b"\n")
        lines = b""
        if newline:
            lines = bytes(self._from_client) + head + newline
            self._from_client.clear()
        self._from_client += tail
        if len(self._from_client) > _MAX_LINE_BYTES:
            self._from_client.clear()
            self._skips_line = True
            self._answer(self._session.refuse_oversized_line(_MAX_LINE_BYTES))
        return lines

    def _connected(self) -> None:
        self._error = None
        self._is_silent = self._loaded_session is not None
        if self._loaded_session or self._greeting:
            self._answers_before = self._session.answer_count
            self._apply(self._session.connected())
            self._send()

    def _unreachable(self, error: RootsdError) -> None:
        """Let the client wait on, or answer it with the error."""
        if self._link.policy.is_hopeless(time.monotonic()):
            self._report(error)

    def _report(self, error: RootsdError) -> None:
        if self._error is None:
            sys.stderr.write(f"rootsd bridge: {error.message}; try: {error.remedy}\n")
        self._error = error
        if self._loaded_session:
            self._to_client += self._loaded_session.fail_all(error)

    def _apply(self, output: BridgeOutput) -> None:
        self._to_client += output.to_client
        self._link.outgoing += output.to_daemon

    def _send(self) -> None:
        self._link.send()
        if self._client_open or self._link.outgoing or not self._forwards:
            return
        if self._loaded_session is None or not self._loaded_session.holds_calls:
            self._link.finish_sending()

    def _take_from_daemon(self) -> None:
        if self._to_client:
            return
        data = self._link.receive()
        if data is None:
            return
        if not data:
            self._connection_lost()
            return
        self._is_silent = False
        head, newline, tail = data.rpartition(b"\n")
        if not newline:
            self._from_daemon += data
            return
        lines = bytes(self._from_daemon) + head
        self._from_daemon = bytearray(tail)
        try:
            for line in lines.split(b"\n"):
                self._apply(self._session.from_daemon(line))
        except RootsdError as error:
            self._from_daemon.clear()
            self._link.refuse()
            self._report(error)

    def _flush(self) -> None:
        """Write what the client takes at once. That is mostly everything, which saves a step."""
        if self._to_client:
            del self._to_client[: self._write(self._to_client)]
        if not self._to_client:
            self._answered = 0

    def _connection_lost(self) -> None:
        self._link.hang_up()
        self._from_daemon.clear()
        session = self._loaded_session
        if session is None:
            return  # Nothing was requested, so there is no reason to reconnect now.
        self._to_client += session.connection_lost()
        useful = session.answer_count > self._answers_before
        self._link.policy.lost(time.monotonic(), useful=useful)
