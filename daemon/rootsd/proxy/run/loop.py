"""Move bytes between the client, the server, and the daemon with one poll(2) loop.

The way from the server to the client: lines, looked at by the session and passed on in order.

A long answer that nobody has to read goes on while it is still coming: to wait for its end would
double the time that it takes. What the session itself says meanwhile waits until it is over.

Holds the pipes of a client, of its server and of the daemon, and moves what is in them.

One thread and one poll(2). What comes from one side is read only while there is room for what goes
to the other, and neither direction ever waits for the other one: with both pipes full, a relay
that did would stand still for ever.
"""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import time
from collections.abc import Callable

from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.paths import text_of
from rootsd.proxy.run.command import LaunchSpec
from rootsd.proxy.run.daemon_link import DaemonLink, report_error
from rootsd.proxy.run.line_reader import BoundedLineReader, OversizedLine
from rootsd.proxy.run.outbox import DroppedLineReports, Outbox
from rootsd.proxy.run.process import ServerProcess, ServerStartFailed, enlarge_pipe
from rootsd.proxy.run.session import RunSession
from rootsd.proxy.run.subscription import RootsUpdate
from rootsd.proxy.stdio import STDIN, STDOUT, make_stdout_writer, read_stdin
from rootsd.wire.hello import Hello
from rootsd.wire.mcp_messages import SCAN_BYTES

_STREAMED = 1 << 16
"""Bytes of a line that has no end yet, from which on it may go to the client as it comes."""


class Downstream:
    """One client's output. `write` takes what there is room for and returns how much that was;
    it raises BrokenPipeError where nobody reads any more."""

    def __init__(
        self, session: RunSession, out: Outbox, write: Callable[[bytes | bytearray], int]
    ) -> None:
        self.is_heard = True
        """Whether the client reads."""
        self._session = session
        self._out = out
        self._write = write
        self._intake = BoundedLineReader()
        self._unsent = bytearray()
        self._stream: bytes | None = None  # the ends of a line that goes on as it comes

    @property
    def unsent(self) -> int:
        """How many bytes the client has not taken."""
        return len(self._unsent)

    @property
    def streams(self) -> bool:
        """Whether a part of a line was passed on, and its end was not."""
        return self._stream is not None

    def take(self, data: bytes) -> None:
        """The server has said this; nothing, where it will say no more."""
        if self._stream is not None:
            data = self._stream_on(self._stream, data)
        for line in self._intake.take(data) if data else self._intake.rest():
            if isinstance(line, OversizedLine):
                self._session.lose_answer(line.ends)
            else:
                self._session.from_server(line, time.monotonic())
        begun = self._intake.begun
        if len(begun) >= _STREAMED and self._session.may_stream(bytes(begun[:SCAN_BYTES])):
            self._collect()
            self._stream = bytes(begun[:SCAN_BYTES] + begun[-SCAN_BYTES:])
            self._unsent += self._intake.raw_rest()

    def cut(self) -> None:
        """The server is gone: end the line that was under way, and begin anew."""
        if self._stream is not None:
            self._stream = None
            self._unsent += b"\n"  # and its request stays open, for an error that can be read
        self._intake = BoundedLineReader()

    def hand_down(self) -> None:
        """Write what the client takes at once: mostly all of it."""
        self._collect()
        if self.is_heard and self._unsent:
            try:
                del self._unsent[: self._write(self._unsent)]
            except BrokenPipeError:
                self.is_heard = False
        if not self.is_heard:
            self._unsent.clear()
        self._out.unread = len(self._unsent)

    def _collect(self) -> None:
        """What the session says stands between lines."""
        if self._stream is None and self._out.to_client:
            self._unsent += self._out.to_client
            self._out.to_client.clear()

    def _stream_on(self, ends: bytes, data: bytes) -> bytes:
        """Pass on what belongs to the line under way, and return the rest."""
        end = data.find(b"\n")
        part = data if end < 0 else data[:end]
        self._unsent += part
        self._stream = ends = (
            ends[:SCAN_BYTES] + (ends[SCAN_BYTES:] + part[-SCAN_BYTES:])[-SCAN_BYTES:]
        )
        if end < 0:
            return b""
        self._unsent += b"\n"
        self._stream = None
        self._session.streamed(ends, time.monotonic())
        return data[end + 1 :]


_MOST_UNSENT = 1 << 20
_GONE_S = 2.0
"""How long a server has that is asked to end, before it is told to and then killed."""
_IDLE_S = 10.0
"""How long it may stay when its client says no more and waits for nothing."""
_OWED_S = 30.0
"""The same when the client waits for an answer; each answer begins the wait anew."""
_LAG_S = 5.0
"""How long a server may ask for roots again and again, and read nothing."""
_MOST_LATE = 1 << 20
"""Bytes of the client that are still answered when there is no server any more."""
_WHY_PROPOSED = "the MCP client has this folder open"
_HUNG_UP = select.POLLERR | select.POLLHUP | select.POLLNVAL
_FORWARDED = (
    signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
)  # fmt: skip


class RunProxy:
    """One client, from its first byte to its last. `run` it once.

    `waits`: the first server cannot be started before the roots are known.
    """

    def __init__(self, session: RunSession, out: Outbox, greeting: Hello, *, waits: bool) -> None:
        self._session = session
        self._out = out
        self._link = DaemonLink(greeting, self._hear, session.doubt)
        self._waits = waits
        self._server: ServerProcess | None = None
        self._is_replaced = False
        self._told: tuple[str, ...] | None = None
        self._from_client = BoundedLineReader()
        self._complaints = DroppedLineReports()
        self._down = Downstream(session, out, make_stdout_writer())
        self._client_speaks = True
        self._force_at = math.inf
        self._force = signal.SIGTERM
        self._why: RootsdError | None = None  # why the relay ends the server, if it does
        self._left_behind_until = math.inf
        self._lags_until = math.inf
        self._stopped_by = 0
        self._left_out: set[str] = set()  # the paths that were reported
        self._wake, self._waker = os.pipe()

    def run(self) -> int:
        """Pump until the server has ended; the exit status. Raises CannotStart."""
        self._heed_signals()
        enlarge_pipe(STDOUT)
        if not self._waits:
            self._start()
        try:
            while (status := self._status()) is None:
                self._turn()
        finally:
            self._link.close()
        return status

    def _status(self) -> int | None:
        """How it ended; None where it goes on."""
        if self._server is None:
            if self._stopped_by:
                return 128 + self._stopped_by
            return None if self._client_speaks else 0
        if not self._server.has_ended():
            return None
        if self._is_replaced:
            self._exchange(self._server)
            return None
        if self._client_speaks and not self._stopped_by and self._session.waits_for_roots():
            self._server.reap()
            self._server = None
            self._down.cut()
            return None
        if self._is_leaving(self._server):
            return None
        return self._finish(self._server)

    def _is_leaving(self, server: ServerProcess) -> bool:
        """Whether something that it started, as npx does, still has the time to hang up."""
        if server.stdout < 0:
            return False
        server.close_stdin()
        now = time.monotonic()
        self._left_behind_until = min(self._left_behind_until, now + _GONE_S)
        return now < self._left_behind_until

    def _turn(self) -> None:
        ready = self._ready()
        now = time.monotonic()
        # The daemon first: what it takes away counts for all that came at the same time.
        if now >= self._link.deadline or any(f in ready for f, _ in self._link.interest()):
            self._link.attend()
        if self._wake in ready:
            os.read(self._wake, 1 << 10)
        if self._server and not self._is_replaced and self._server.stdout in ready:
            self._take_from_server(self._server)
        if STDIN in ready:
            self._take_from_client()
        if now >= self._session.deadline:
            self._session.tick(now)
        self._carry_out()
        if ready.get(STDOUT, 0) & _HUNG_UP:
            self._down.is_heard = False
        self._see_to_the_end(now)

    def _ready(self) -> dict[int, int]:
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        for descriptor, wanted in self._link.interest():
            poll.register(descriptor, wanted)
        if self._client_speaks and self._has_room_for_client:
            poll.register(STDIN, select.POLLIN)
        if self._down.is_heard:
            poll.register(STDOUT, select.POLLOUT if self._down.unsent else 0)
        server = self._server
        if server and not self._is_replaced:
            if server.stdout >= 0 and self._is_room_for_server:
                poll.register(server.stdout, select.POLLIN)
            if server.stdin >= 0 and self._out.to_server:
                poll.register(server.stdin, select.POLLOUT)
        return dict(poll.poll(self._timeout()))

    @property
    def _has_room_for_client(self) -> bool:
        return len(self._out.to_server) + self._session.backlog < _MOST_UNSENT

    @property
    def _is_room_for_server(self) -> bool:
        return self._down.unsent < _MOST_UNSENT and not self._session.is_flooded

    def _timeout(self) -> int | None:
        until = min(
            self._link.deadline,
            self._session.deadline,
            self._force_at,
            self._left_behind_until,
            self._lags_until,
        )
        if until == math.inf:
            return None
        return math.ceil(max(until - time.monotonic(), 0.0) * 1000)

    # What comes in

    def _hear(self, told: RootsUpdate) -> None:
        self._session.told(told, time.monotonic())
        if self._waits:
            self._waits = False
            self._start()

    def _take_from_client(self) -> int:
        """Take what the client says; return how many bytes that was."""
        data = read_stdin()
        # What the daemon said before the client said this counts for it: where a denial has been
        # answered, news of it lies in our socket, and the next call comes too late.
        self._link.attend()
        lines = self._from_client.take(data) if data else self._from_client.rest()
        for line in lines:
            if isinstance(line, OversizedLine):
                self._session.refuse_line()
            else:
                self._session.from_client(line, time.monotonic())
        self._client_speaks = bool(data)
        return len(data)

    def _take_from_server(self, server: ServerProcess) -> None:
        data = server.read()
        if data is None:
            return
        if self._client_speaks:
            self._down.take(data)
            return
        owed = self._session.owed
        self._down.take(data)
        if self._session.owed < owed and self._force is signal.SIGTERM and self._down.is_heard:
            self._force_at = math.inf  # it answers; the wait begins anew

    # What goes out

    def _carry_out(self) -> None:
        out = self._out
        while out.questions:
            out.questions -= 1
            self._link.ask()
        if out.told != self._told and out.told is not None:
            self._told = out.told
            self._link.report(out.told)
        for path in out.proposals:
            self._link.propose(text_of(path), _WHY_PROPOSED)
        out.proposals.clear()
        for line in self._complaints.pass_on(out.complaints, time.monotonic()):
            sys.stderr.write(line)
        out.complaints.clear()
        if out.wants_another and self._may_replace:
            out.wants_another = False
            if self._server:
                self._is_replaced = True
                self._server.close_stdin()
                self._force_now(self._server)
            elif not self._waits:
                self._start()
        if self._server and not self._is_replaced:
            self._write_to_server(self._server)
        self._down.hand_down()

    def _write_to_server(self, server: ServerProcess) -> None:
        before = len(self._out.to_server)
        if before:
            server.write(self._out.to_server)
        self._session.drained()
        if not self._session.is_flooded or not self._out.to_server:
            self._lags_until = math.inf
        elif len(self._out.to_server) < before or self._lags_until == math.inf:
            self._lags_until = time.monotonic() + _LAG_S

    @property
    def _may_replace(self) -> bool:
        """Whether no line is under way that would be cut; one that takes long is."""
        if not self._down.streams:
            return True
        now = time.monotonic()
        if self._force_at == math.inf:
            self._force_at = now + _GONE_S
        return now >= self._force_at

    # The lives of servers

    def _start(self) -> None:
        launch = self._session.start()
        self._report_left_out(launch)
        try:
            self._server = ServerProcess(launch)
        except ServerStartFailed as error:
            self._refuse_all(error)
            raise
        self._force_at, self._force = math.inf, signal.SIGTERM
        self._session.started(time.monotonic(), self._server.is_at_work)

    def _report_left_out(self, launch: LaunchSpec) -> None:
        """Say once which roots are in no value that joins them."""
        for path, separator in launch.left_out:
            if path not in self._left_out:
                self._left_out.add(path)
                shown = safe_label(path.encode(errors="surrogateescape"), limit=None)
                sys.stderr.write(
                    f"rootsd run: {shown} is left out, as its path contains {separator!a}, which"
                    " separates roots there; try: {roots:SEP} with another separator\n"
                )

    def _exchange(self, old: ServerProcess) -> None:
        old.reap()
        self._is_replaced = False
        self._down.cut()
        self._start()

    def _see_to_the_end(self, now: float) -> None:
        """End a server whose client has left, or that has hung up and stays."""
        server = self._server
        if server is None:
            return
        has_hung_up = server.stdout < 0 and not self._is_replaced
        if not self._client_speaks and not self._out.to_server and not self._session.backlog:
            server.close_stdin()
        if now >= self._lags_until:
            self._lags_until = math.inf
            self._why = RootsdError(
                "the server asked for roots again and again, and read no answer", "rootsd sessions"
            )
            report_error(self._why)
            self._force_now(server)
        if not self._down.is_heard or has_hung_up:
            server.close_stdin()
            self._force_at = min(self._force_at, now + _GONE_S)
        elif not self._client_speaks and self._force_at == math.inf:
            self._force_at = now + (_OWED_S if self._session.owed else _IDLE_S)
        if now >= self._force_at:
            self._force_now(server)

    def _force_now(self, server: ServerProcess) -> None:
        server.send(self._force)
        self._force = signal.SIGKILL
        self._force_at = time.monotonic() + _GONE_S

    def _finish(self, server: ServerProcess) -> int:
        for data in server.rest():
            self._down.take(data)
        self._down.take(b"")  # a last line may lack its newline
        self._down.cut()
        status = server.reap()
        how = f"the server has ended with status {status}"
        why = self._why or RootsdError(how, "restart the MCP server in your client")
        self._refuse_all(why)
        return status

    def _refuse_all(self, error: RootsdError) -> None:
        """There is no server, and there will be none: answer what came, and what came too late."""
        taken = 0
        while self._client_speaks and taken < _MOST_LATE and _has_something(STDIN):
            taken += self._take_from_client()
        self._session.ended(error)
        self._hand_down_all()

    def _hand_down_all(self) -> None:
        """Write what is left, as fast as the client reads. A signal ends that, and so does a
        client that reads nothing for a while."""
        while True:
            before = self._down.unsent + len(self._out.to_client)
            self._down.hand_down()
            if not self._down.unsent or self._stopped_by:
                return
            poll = select.poll()
            poll.register(STDOUT, select.POLLOUT)
            poll.register(self._wake, select.POLLIN)
            ready = dict(poll.poll(_IDLE_S * 1000))
            if not ready and self._down.unsent == before:
                return
            if self._wake in ready:
                os.read(self._wake, 1 << 10)

    def _heed_signals(self) -> None:
        for end in (self._wake, self._waker):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in _FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup(1)
                signal.signal(number, self._forward)

    def _forward(self, number: int, _: object) -> None:
        self._stopped_by = number
        if self._server:
            self._server.send(number)


def _has_something(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
