"""Move bytes between the client, the server, and the daemon with one poll(2) loop.

The loop has one thread. It reads from one side only while there is room for the output to the
other side. But neither direction ever waits for the other one: if both pipes were full, such a
wait would never end.

`ClientOutput` writes to the client. A long response that nobody needs to parse goes on while it
arrives, because waiting for its end would double its time. Messages of the session itself wait
until that line is complete.
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
from rootsd.link.daemon_link import is_readable
from rootsd.link.roots_feed import RootsFeed
from rootsd.proxy.run.command import LaunchSpec
from rootsd.proxy.run.line_reader import BoundedLineReader, OversizedLine
from rootsd.proxy.run.outbox import DroppedLineReports, Outbox
from rootsd.proxy.run.process import ServerProcess, enlarge_pipe
from rootsd.proxy.run.refusal import report_error
from rootsd.proxy.run.relayed_session import RelayedSession
from rootsd.proxy.run.roots import RootFolder, WallState, parse_daemon_roots
from rootsd.proxy.stdio import STDIN, STDOUT, make_stdout_writer, read_stdin
from rootsd.wire.hello import Hello, MoveResult
from rootsd.wire.mcp_messages import SCAN_BYTES
from rootsd.wire.roots_subscription import RootsUpdate

TYPE_CHECKING = False
if TYPE_CHECKING:  # it loads the engine of the wall
    from rootsd.proxy.run.wall import ServerWall

_STREAM_MIN_BYTES = 1 << 16
"""The length of a line in bytes from which on it may go to the client before its end arrives."""
_PORTION_BYTES = 1 << 13
"""How many bytes of parsed lines to write at once.

If many lines arrive together, the receiver works on the first ones while the rest is parsed.
"""


class ClientOutput:
    """The output to one client.

    `write` writes what fits, returns the number of bytes, and raises BrokenPipeError if nobody
    reads.
    """

    def __init__(
        self, session: RelayedSession, out: Outbox, write: Callable[[bytes | bytearray], int]
    ) -> None:
        self.is_open = True
        """Whether the client still reads."""
        self._session = session
        self._out = out
        self._write = write
        self._lines = BoundedLineReader()
        self._unsent = bytearray()
        self._partial_line: bytes | None = None  # both ends of the streamed line

    @property
    def unsent(self) -> int:
        """How many bytes the client has not read."""
        return len(self._unsent)

    @property
    def is_mid_line(self) -> bool:
        """Whether the client has got a part of a line, and not its end."""
        return self._partial_line is not None

    def take(self, data: bytes) -> None:
        """Take output of the server. Empty `data` means that no more comes."""
        if self._partial_line is not None:
            data = self._stream_on(self._partial_line, data)
        for line in self._lines.feed(data) if data else self._lines.finish():
            if isinstance(line, OversizedLine):
                self._session.fail_oversized_response(line.ends)
            else:
                self._session.from_server(line, time.monotonic())
                if len(self._out.to_client) >= _PORTION_BYTES:
                    self.flush()
        begun = self._lines.partial_line
        if len(begun) >= _STREAM_MIN_BYTES and self._session.may_stream(bytes(begun[:SCAN_BYTES])):
            self._collect()
            self._partial_line = bytes(begun[:SCAN_BYTES] + begun[-SCAN_BYTES:])
            self._unsent += self._lines.take_partial()

    def server_gone(self) -> None:
        """End the current line, because its server is gone."""
        if self._partial_line is not None:
            self._partial_line = None
            self._unsent += b"\n"  # the request stays open, and gets a readable error
        self._lines = BoundedLineReader()

    def flush(self) -> None:
        """Write what the client accepts now, which is mostly everything."""
        self._collect()
        if self.is_open and self._unsent:
            try:
                del self._unsent[: self._write(self._unsent)]
            except BrokenPipeError:
                self.is_open = False
        if not self.is_open:
            self._unsent.clear()
        self._out.unread = len(self._unsent)

    def _collect(self) -> None:
        """Take the session's messages, unless a line is incomplete."""
        if self._partial_line is None and self._out.to_client:
            self._unsent += self._out.to_client
            self._out.to_client.clear()

    def _stream_on(self, ends: bytes, data: bytes) -> bytes:
        """Pass on the part of `data` that belongs to the current line. Return the rest."""
        end = data.find(b"\n")
        part = data if end < 0 else data[:end]
        self._unsent += part
        self._partial_line = ends = (
            ends[:SCAN_BYTES] + (ends[SCAN_BYTES:] + part[-SCAN_BYTES:])[-SCAN_BYTES:]
        )
        if end < 0:
            return b""
        self._unsent += b"\n"
        self._partial_line = None
        self._session.stream_ended(ends, time.monotonic())
        return data[end + 1 :]


_MAX_WAIT_S = 3600.0  # poll(2) takes no number of milliseconds that is too large
_MAX_UNSENT = 1 << 20
_MAX_UNREAD = 2 << 20
"""With this many unread bytes, the client is not read. A server alone does not reach it: its
output stops at `_MAX_UNSENT`, or with the end of a line.
"""
_TERM_WAIT_S = 2.0
"""How long a server may take to end, before each stronger signal."""
_IDLE_S = 10.0
"""How long a server may go on after its client has left and waits for nothing."""
_PENDING_WAIT_S = 30.0
"""The same if the client waits for responses. Each response restarts the time."""
_FLOOD_WAIT_S = 5.0
"""How long a server may request roots again and again without reading its input."""
_MAX_LATE = 1 << 20
"""How many bytes of the client still get an answer after the last server has ended."""
_HANGUP = select.POLLERR | select.POLLHUP | select.POLLNVAL
_FORWARDED = (
    signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
)  # fmt: skip
_NOT_ENDING = (signal.SIGUSR1, signal.SIGUSR2)


class RunProxy:
    """The proxy for one client, from its first byte to its last. Call `run` once.

    `origin` is the wall around the server, or what to tell a daemon about a server without one.
    `needs_roots`: the first server cannot start before the roots are known. `server` is the first
    server if it runs already.
    """

    def __init__(
        self,
        session: RelayedSession,
        out: Outbox,
        origin: Hello | ServerWall,
        *,
        needs_roots: bool,
        server: ServerProcess | None = None,
    ) -> None:
        self._session = session
        self._out = out
        self._source: RootsFeed[RootFolder] | ServerWall
        self._wall: ServerWall | None = None
        if isinstance(origin, Hello):
            self._source = RootsFeed(
                origin,
                parse_daemon_roots,
                self._on_roots,
                self._report,
                session.roots_outdated,
                self._on_moved,
            )
        else:
            self._source = self._wall = origin
        self._needs_roots = needs_roots
        self._first_server = server
        self._server: ServerProcess | None = None
        self._is_restarting = False
        self._reported_roots: tuple[str, ...] | None = None
        self._from_client = BoundedLineReader()
        self._dropped_lines = DroppedLineReports(session.verb)
        self._client_output = ClientOutput(session, out, make_stdout_writer())
        self._client_open = True
        self._kill_at = math.inf
        self._kill_signal = signal.SIGTERM
        self._stop_reason: RootsdError | None = None  # why the proxy ends the server
        self._orphans_until = math.inf
        self._flooded_until = math.inf
        self._stopped_by = 0
        self._reported_left_out: set[str] = set()  # each path is reported once
        self._wake_read, self._wake_write = os.pipe()
        if self._wall is not None:
            self._wall.start(self._on_wall, self._on_moved)

    def run(self) -> int:
        """Run until the server has ended, and return its exit status.

        Raises ServerStartFailed and other RootsdErrors. The client has got them then.
        """
        self._install_signal_handlers()
        enlarge_pipe(STDIN)
        enlarge_pipe(STDOUT)
        try:
            if not self._needs_roots:
                self._start()
            while (status := self._exit_status()) is None:
                self._step()
        except RootsdError as error:
            self._refuse_all(error)
            raise
        finally:
            self._source.close()
        return status

    def _exit_status(self) -> int | None:
        """Return the exit status, or None if the proxy goes on."""
        if self._server is None:
            if self._stopped_by:
                return 128 + self._stopped_by
            # A client that has left may still wait for answers of a server that starts late.
            return None if self._client_open or self._needs_roots else 0
        if not self._server.has_ended():
            return None
        if self._is_restarting and not self._stopped_by:
            self._restart_server(self._server)
            return None
        if self._client_open and not self._stopped_by and self._session.server_exited():
            self._server.reap()
            self._server = None
            self._client_output.server_gone()
            return None
        if self._has_live_children(self._server):
            return None
        return self._finish(self._server)

    def _has_live_children(self, server: ServerProcess) -> bool:
        """Whether a child of the server (as of npx) still has time to close its output."""
        if server.stdout < 0:
            return False
        server.close_stdin()
        now = time.monotonic()
        self._orphans_until = min(self._orphans_until, now + _TERM_WAIT_S)
        return now < self._orphans_until

    def _step(self) -> None:
        ready = self._poll()
        now = time.monotonic()
        # The daemon comes first: a denial applies to all lines that arrive at the same time.
        if now >= self._source.deadline or any(f in ready for f, _ in self._source.interest()):
            self._attend_source()
        if self._wake_read in ready:
            os.read(self._wake_read, 1 << 10)
            if self._stopped_by and self._wall is not None:
                self._wall.let_run()  # a stopped server would not obey the signal
        if self._server and not self._is_restarting and self._server.stdout in ready:
            self._take_from_server(self._server)
        if STDIN in ready:
            self._take_from_client()
        if now >= self._session.deadline:
            self._session.tick(now)
        self._send_outbox()
        if ready.get(STDOUT, 0) & _HANGUP:
            self._client_output.is_open = False
        self._stop_if_done(now)

    def _poll(self) -> dict[int, int]:
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        for descriptor, wanted in self._source.interest():
            poll.register(descriptor, wanted)
        if self._client_open and self._has_room_for_client:
            poll.register(STDIN, select.POLLIN)
        if self._client_output.is_open:
            poll.register(STDOUT, select.POLLOUT if self._client_output.unsent else 0)
        server = self._server
        if server and not self._is_restarting:
            if server.stdout >= 0 and self._has_room_for_server:
                poll.register(server.stdout, select.POLLIN)
            if server.stdin >= 0 and self._out.to_server:
                poll.register(server.stdin, select.POLLOUT)
        return dict(poll.poll(self._timeout()))

    @property
    def _has_room_for_client(self) -> bool:
        has_room = len(self._out.to_server) + self._session.backlog < _MAX_UNSENT
        return has_room and self._client_output.unsent < _MAX_UNREAD

    @property
    def _has_room_for_server(self) -> bool:
        return self._client_output.unsent < _MAX_UNSENT and not self._session.is_flooded

    def _timeout(self) -> int | None:
        until = min(
            self._source.deadline,
            self._session.deadline,
            self._kill_at,
            self._orphans_until,
            self._flooded_until,
        )
        if until == math.inf:
            return None
        return math.ceil(min(max(until - time.monotonic(), 0.0), _MAX_WAIT_S) * 1000)

    def _report(self, error: RootsdError) -> None:
        report_error(error, self._session.verb)

    # Input

    def _on_roots(self, update: RootsUpdate[RootFolder]) -> None:
        self._session.roots_updated(update, time.monotonic())
        if self._needs_roots:
            self._needs_roots = False
            self._start()

    def _on_moved(self, outcome: MoveResult | RootsdError) -> None:
        self._session.moved(outcome, time.monotonic())

    def _on_wall(self, state: WallState, requests: int) -> None:
        self._session.wall_changed(state, requests, time.monotonic())
        self._notify_server()

    def _notify_server(self) -> None:
        """Write what waits for the server before the kernel changes, if the server reads."""
        self._flush_to_server()

    def _attend_source(self) -> None:
        """Apply what the daemon has sent."""
        self._source.attend()
        if self._wall is not None:
            self._replace_ended_server(self._wall)

    def _replace_ended_server(self, wall: ServerWall) -> None:
        """Restart the server if a revoke has ended it."""
        if wall.has_ended_server and self._server and not self._is_restarting:
            if not self._out.restart_requested:
                self._session.server_revoked()
            self._out.restart_requested = False
            self._is_restarting = True
            self._server.close_stdin()

    def _take_from_client(self) -> None:
        data = read_stdin()
        # Read what the daemon sent before this. Once `deny` has returned, its notification is in
        # our socket, so that a call made afterwards must not use the denied root.
        self._attend_source()
        self._take_lines(data)

    def _take_lines(self, data: bytes) -> None:
        """Take input of the client. Empty `data` means that no more comes."""
        lines = self._from_client.feed(data) if data else self._from_client.finish()
        for line in lines:
            if isinstance(line, OversizedLine):
                self._session.refuse_oversized_line()
            else:
                self._session.from_client(line, time.monotonic())
                if len(self._out.to_server) >= _PORTION_BYTES:
                    self._flush_to_server()
        self._client_open = bool(data)

    def _take_from_server(self, server: ServerProcess) -> None:
        data = server.read()
        if data is None:
            return
        if self._client_open:
            self._client_output.take(data)
            return
        owed = self._session.pending_responses
        self._client_output.take(data)
        if (
            self._session.pending_responses < owed
            and self._kill_signal is signal.SIGTERM
            and self._client_output.is_open
        ):
            self._kill_at = math.inf  # it responds, so the time starts again

    # Output

    def _send_outbox(self) -> None:
        out = self._out
        while out.roots_queries:
            out.roots_queries -= 1
            self._source.query()
        if out.reported_roots != self._reported_roots and out.reported_roots is not None:
            self._reported_roots = out.reported_roots
            self._source.report(out.reported_roots)
        if out.move is not None:
            self._source.move(out.move)
            out.move = None
        for path in out.proposals:
            self._source.propose(text_of(path))
        out.proposals.clear()
        self._print_dropped_lines()
        if out.restart_requested and self._may_restart:
            out.restart_requested = False
            if self._server:
                self._is_restarting = True
                self._server.close_stdin()
                self._kill(self._server)
            elif not self._needs_roots:
                self._start()
        self._flush_to_server()
        self._client_output.flush()

    def _print_dropped_lines(self) -> None:
        lines = self._out.dropped_lines
        for line in self._dropped_lines.lines_to_print(lines, time.monotonic()):
            sys.stderr.write(line)
        lines.clear()

    def _flush_to_server(self) -> None:
        """Write what the server accepts now, if one runs."""
        if self._server and not self._is_restarting:
            self._write_to_server(self._server)

    def _write_to_server(self, server: ServerProcess) -> None:
        before = len(self._out.to_server)
        if before:
            server.write(self._out.to_server)
        self._session.output_written()
        if not self._session.is_flooded or not self._out.to_server:
            self._flooded_until = math.inf
        elif len(self._out.to_server) < before or self._flooded_until == math.inf:
            self._flooded_until = time.monotonic() + _FLOOD_WAIT_S

    @property
    def _may_restart(self) -> bool:
        """Whether a restart cuts no line, or the incomplete line has taken too long."""
        if not self._client_output.is_mid_line:
            return True
        now = time.monotonic()
        if self._kill_at == math.inf:
            self._kill_at = now + _TERM_WAIT_S
        return now >= self._kill_at

    # Start and end of servers

    def _start(self) -> None:
        if self._wall is not None:
            self._wall.prepare()
        self._is_restarting = False
        launch = self._session.start()
        self._report_left_out(launch)
        self._server = self._first_server or ServerProcess(launch, self._wall)
        self._first_server = None
        self._kill_at, self._kill_signal = math.inf, signal.SIGTERM
        self._session.started(time.monotonic(), self._server.is_busy)

    def _report_left_out(self, launch: LaunchSpec) -> None:
        """Report once which roots a joined value leaves out."""
        for path, separator in launch.left_out:
            if path not in self._reported_left_out:
                self._reported_left_out.add(path)
                shown = safe_label(path.encode(errors="surrogateescape"), limit=None)
                sys.stderr.write(
                    f"rootsd run: {shown} is left out because its path contains {separator!a},"
                    " which separates the roots; try: {roots:SEP} with another separator\n"
                )

    def _restart_server(self, old: ServerProcess) -> None:
        old.reap()
        self._client_output.server_gone()
        self._start()

    def _stop_if_done(self, now: float) -> None:
        """End a server that its client has left, or that closed its output and does not exit."""
        server = self._server
        if server is None:
            return
        has_hung_up = server.stdout < 0 and not self._is_restarting
        if not self._client_open and not self._out.to_server and not self._session.backlog:
            if self._wall is not None and server.stdin >= 0:
                self._wall.let_run()
            server.close_stdin()
        if now >= self._flooded_until:
            self._flooded_until = math.inf
            self._stop_reason = RootsdError(
                f"the {self._session.program} sends requests but reads no answer",
                "rootsd sessions",
            )
            self._report(self._stop_reason)
            self._kill(server)
        if not self._client_output.is_open or has_hung_up or self._stopped_by:
            server.close_stdin()
            self._kill_at = min(self._kill_at, now + _TERM_WAIT_S)
        elif not self._client_open and self._kill_at == math.inf:
            self._kill_at = now + (_PENDING_WAIT_S if self._session.pending_responses else _IDLE_S)
        if now >= self._kill_at:
            self._kill(server)

    def _kill(self, server: ServerProcess) -> None:
        if self._wall is not None:
            self._wall.let_run()
        server.send(self._kill_signal)
        self._kill_signal = signal.SIGKILL
        self._kill_at = time.monotonic() + _TERM_WAIT_S

    def _finish(self, server: ServerProcess) -> int:
        for data in server.drain():
            self._client_output.take(data)
        self._client_output.take(b"")  # a last line may lack its newline
        self._client_output.server_gone()
        self._print_dropped_lines()
        status = server.reap()
        how = f"the {self._session.program} has ended with status {status}"
        if text := self._session.printed_text:
            how += f" after it printed: {text}"
        why = self._stop_reason or RootsdError(how, self._session.restart)
        self._refuse_all(why)
        return status

    def _refuse_all(self, error: RootsdError) -> None:
        """Answer what the client has sent, also what came too late: there is no server any
        more.
        """
        taken = 0
        while self._client_open and taken < _MAX_LATE and is_readable(STDIN):
            data = read_stdin()
            taken += len(data)
            self._take_lines(data)
        self._session.fail_all(error)
        self._flush_all()

    def _flush_all(self) -> None:
        """Write what is left, as fast as the client reads. Stop on a signal, or if the client does
        not read for a while.
        """
        while True:
            before = self._client_output.unsent + len(self._out.to_client)
            self._client_output.flush()
            if not self._client_output.unsent or self._stopped_by:
                return
            poll = select.poll()
            poll.register(STDOUT, select.POLLOUT)
            poll.register(self._wake_read, select.POLLIN)
            ready = dict(poll.poll(_IDLE_S * 1000))
            if not ready and self._client_output.unsent == before:
                return
            if self._wake_read in ready:
                os.read(self._wake_read, 1 << 10)

    def _install_signal_handlers(self) -> None:
        for end in (self._wake_read, self._wake_write):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in _FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup(1)
                signal.signal(number, self._forward)

    def _forward(self, number: int, _: object) -> None:
        if number not in _NOT_ENDING:
            self._stopped_by = number
        if number == signal.SIGTERM:
            self._kill_signal = signal.SIGKILL  # the next one, for a server that goes on
        if self._server:
            self._server.send(number)
