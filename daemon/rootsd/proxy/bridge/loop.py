"""Move lines between the client's pipes and the current daemon, across daemon restarts.

Passes on first and looks afterwards: the session, and with it `json`, is loaded while the daemon
thinks about the first request. Holds one chunk of the client and one line of the daemon, so that a
client which does not read keeps its own answers waiting and nothing else. Only whole lines pass:
half a line of a daemon that was lost could never be put right.
"""

from __future__ import annotations

import math
import select
import socket
import sys
import time

from rootsd.core.errors import RootsdError
from rootsd.proxy.daemon_link import AutostartProcess, connect_to_daemon
from rootsd.proxy.reconnect import ReconnectPolicy
from rootsd.proxy.stdio import STDIN, STDOUT, make_stdout_writer, read_stdin
from rootsd.system.ipc.connect import NotRunning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rootsd.proxy.bridge.session import BridgeOutput, BridgeSession
    from rootsd.wire.hello import Hello

_CHUNK = 64 * 1024
_LONGEST_LINE = 1 << 20


class BridgeProxy:
    """One client, from its first byte to its last. `run` it once."""

    def __init__(self, greeting: Hello | None) -> None:
        self._greeting = greeting
        self._made: BridgeSession | None = None
        self._connection: socket.socket | None = None
        self._answers_before = 0
        self._is_silent = False  # a daemon that came after a loss, and has not said anything yet
        self._absence = ReconnectPolicy()
        self._awakening: AutostartProcess | None = None
        self._obstacle: RootsdError | None = None  # why none can be started
        self._why: RootsdError | None = None  # what the client was told, while it holds
        self._write = make_stdout_writer()
        self._is_refused = False
        self._client_speaks = True
        self._polls: dict[tuple[tuple[int, int], ...], select.poll] = {}
        self._begun = bytearray()  # a line of the client that lacks its end
        self._skips = False  # until the end of a line that is too long
        self._up = bytearray()
        self._coming = bytearray()  # a line of the daemon that lacks its end
        self._down = bytearray()

    def run(self) -> RootsdError | None:
        """Pump until the client has left and has its answers; what there is to complain of.

        Raises BrokenPipeError when the client does not want its answers.
        """
        self._take(read_stdin())
        while self._down or self._is_needed:
            self._turn()
        return self._why

    @property
    def _is_needed(self) -> bool:
        owes = self._made is not None and self._made.owes
        # A client that has left does not wait for a daemon that may never accept.
        talks = self._connection is not None and not self._is_silent
        return self._client_speaks or talks or owes

    @property
    def _session(self) -> BridgeSession:
        if self._made is None:
            from rootsd.proxy.bridge.session import BridgeSession  # noqa: PLC0415  # json costs 7 ms

            self._made = BridgeSession(self._greeting)
        return self._made

    @property
    def _passes(self) -> bool:
        """Whether lines of the client may go to the daemon as they come."""
        if self._connection is None:
            return False
        return self._greeting is None if self._made is None else self._made.passing

    def _turn(self) -> None:
        if self._is_away and time.monotonic() >= self._absence.retry_at:
            self._attempt()
        for descriptor, event in self._ready():
            if descriptor == STDIN:
                self._take(read_stdin())
            elif descriptor == STDOUT:
                if event & ~select.POLLOUT and not self._down:
                    raise BrokenPipeError
                self._hand_down()
            elif self._awakening and descriptor == self._awakening.fileno():
                self._watch(self._awakening)
            elif self._connection and descriptor == self._connection.fileno():
                self._receive(self._connection)
                self._send()
                self._hand_down()

    @property
    def _is_away(self) -> bool:
        """Whether there is no daemon, and none on its way."""
        return self._connection is None and self._awakening is None and not self._is_refused

    def _ready(self) -> list[tuple[int, int]]:
        interest = []
        if self._listens:
            interest.append((STDIN, select.POLLIN))
        if self._down:
            interest.append((STDOUT, select.POLLOUT))
        elif not self._client_speaks:
            interest.append((STDOUT, 0))  # that it is closed, too, is told all the same
        if self._awakening:
            interest.append((self._awakening.fileno(), select.POLLIN))
        # Registered for nothing, a hang-up would wake us again and again.
        wanted = (0 if self._down else select.POLLIN) | (select.POLLOUT if self._up else 0)
        if self._connection and wanted:
            interest.append((self._connection.fileno(), wanted))
        return self._poll_for(tuple(interest)).poll(self._timeout())

    def _poll_for(self, interest: tuple[tuple[int, int], ...]) -> select.poll:
        """The same few interests come again and again: each is made once."""
        poll = self._polls.get(interest)
        if poll is None:
            poll = self._polls[interest] = select.poll()
            for descriptor, wanted in interest:
                poll.register(descriptor, wanted)
        return poll

    @property
    def _listens(self) -> bool:
        """Whether there is room for what the client says."""
        if not self._client_speaks:
            return False
        if self._passes:
            return not self._up
        # Also while a daemon is told what the last one knew: it may never answer, and the client
        # may leave.
        return len(self._down) < _CHUNK and not self._session.full

    def _timeout(self) -> float | None:
        if not self._is_away or self._absence.retry_at == math.inf:
            return None
        return math.ceil(max(self._absence.retry_at - time.monotonic(), 0.0) * 1000)

    def _take(self, data: bytes) -> None:
        """Pass on what the client says; nothing says that it will say no more."""
        lines = self._whole_lines(data)
        if lines and self._is_away:
            self._absence.asked(time.monotonic())
            if time.monotonic() >= self._absence.retry_at:
                self._attempt()
        passed = self._passes
        if passed:
            self._up += lines
            self._send()
        for line in lines.split(b"\n")[:-1]:
            self._down += self._session.ask(line, passed=passed)
        if lines and self._why and (self._is_away or self._is_refused):
            self._down += self._session.fail(self._why)

    def _whole_lines(self, data: bytes) -> bytes:
        if not data:
            self._client_speaks = False
            data = b"\n" if self._begun else b""  # the last line may lack its newline
        if self._skips:
            _, newline, data = data.partition(b"\n")
            self._skips = not newline
        head, newline, tail = data.rpartition(b"\n")
        lines = b""
        if newline:
            lines = bytes(self._begun) + head + newline
            self._begun.clear()
        self._begun += tail
        if len(self._begun) > _LONGEST_LINE:
            self._begun.clear()
            self._skips = True
            self._down += self._session.refuse_line(_LONGEST_LINE)
        return lines

    def _attempt(self) -> None:
        now = time.monotonic()
        try:
            connection = connect_to_daemon()
        except RootsdError as error:
            if isinstance(error, NotRunning) and self._absence.start(now):
                self._awakening = AutostartProcess()
            else:
                self._miss(self._obstacle or error)
            return
        connection.settimeout(0)
        self._connection = connection
        self._absence.connected()
        self._obstacle = self._why = None
        self._is_silent = self._made is not None
        if self._made or self._greeting:
            self._answers_before = self._session.answers
            self._follow(self._session.begin())
            self._send()

    def _watch(self, awakening: AutostartProcess) -> None:
        if not awakening.has_ended():
            return
        self._awakening = None
        error = awakening.outcome()
        if error is None:
            self._attempt()
        else:
            self._absence.not_started()
            self._obstacle = error
            self._miss(error)

    def _miss(self, error: RootsdError) -> None:
        """There is no daemon: the client waits on, or is told why."""
        now = time.monotonic()
        self._absence.missed(now)
        if self._absence.is_hopeless(now):
            self._tell(error)

    def _tell(self, error: RootsdError) -> None:
        if self._why is None:
            sys.stderr.write(f"rootsd bridge: {error.message}; try: {error.remedy}\n")
        self._why = error
        if self._made:
            self._down += self._made.fail(error)

    def _follow(self, step: BridgeOutput) -> None:
        self._down += step.to_client
        self._up += step.to_daemon

    def _send(self) -> None:
        if self._connection is None:
            return
        try:
            if self._up:
                del self._up[: self._connection.send(self._up)]
            if not self._up and not self._client_speaks and self._passes:
                self._connection.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            pass
        except OSError:  # lost; what it had sent before is still to be read
            self._up.clear()

    def _receive(self, connection: socket.socket) -> None:
        if self._down:
            return
        try:
            data = connection.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose(connection)
            return
        self._is_silent = False
        head, newline, tail = data.rpartition(b"\n")
        if not newline:
            self._coming += data
            return
        lines = bytes(self._coming) + head
        self._coming = bytearray(tail)
        try:
            for line in lines.split(b"\n"):
                self._follow(self._session.take(line))
        except RootsdError as error:
            self._hang_up(connection)
            self._is_refused = True
            self._tell(error)

    def _hand_down(self) -> None:
        """Write what the client takes at once: mostly all of it, and a turn is saved."""
        if self._down:
            del self._down[: self._write(self._down)]

    def _lose(self, connection: socket.socket) -> None:
        self._hang_up(connection)
        if self._made is None:
            return  # it has not been asked anything
        self._down += self._made.lose()
        useful = self._made.answers > self._answers_before
        self._absence.lost(time.monotonic(), useful=useful)

    def _hang_up(self, connection: socket.socket) -> None:
        connection.close()
        self._connection = None
        self._up.clear()
        self._coming.clear()
