"""`rootsd bridge`: carries bytes between an MCP client's pipes and the daemon's socket.

It understands nothing that passes. It looks at it only after it was passed on, to know which
requests are open when the daemon is lost: those, and all that come when there is no daemon, are
answered with an error that names the command to type. It connects when the client first speaks,
so that a client may start it long before.

Standard library only, one thread, and as few imports as can be: it starts once per client, and
`json` is loaded while the daemon thinks about the first request.
"""

from __future__ import annotations

import os
import select
import socket
import sys

from rootsd.core.errors import DaemonUnreachable, ErrorCode, RootsdError
from rootsd.host.connect import NotRunning, connect
from rootsd.host.folders import run_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rootsd.wire.jsonrpc import Id
    from rootsd.wire.pending import Pending

_STDIN, _STDOUT = 0, 1
_CHUNK = 64 * 1024
_HELLO_ID = "rootsd-bridge"

EXIT_OK, EXIT_USAGE, EXIT_UNREACHABLE, EXIT_BAD_CONFIG = 0, 2, 69, 78

USAGE = "usage: rootsd bridge [--client NAME]"


def main(argv: list[str]) -> int:
    """Run the bridge with the arguments after `bridge`; return the exit status."""
    client = ""
    rest = list(argv)
    while rest:
        flag, _, value = rest.pop(0).partition("=")
        if flag != "--client" or not (value or rest):
            sys.stderr.write(f"rootsd bridge: cannot use {flag!a}\n{USAGE}\n")
            return EXIT_USAGE
        client = value or rest.pop(0)
    try:
        return _carry(client)
    except BrokenPipeError:  # the client has closed our stdout: it has left
        return EXIT_OK


def _carry(client: str) -> int:
    opening = _read_stdin()
    if not opening:
        return EXIT_OK
    try:
        connection = _connect()
    except RootsdError as error:
        return _answer_for_nobody(error, opening)
    with connection:
        pump = Pump(connection, _greeting(client))
        pump.take(opening)
        orphans = pump.run()
    if pump.client_left and not orphans:
        return EXIT_OK
    _fail(orphans, DaemonUnreachable("rootsd went away before it answered", "rootsd up"))
    return EXIT_UNREACHABLE


def _connect() -> socket.socket:
    """A connection to the first daemon found. Raises RootsdError."""
    nobody: RootsdError | None = None
    for folder in run_folders():
        try:
            return connect(folder.mcp_socket)
        except NotRunning as error:
            nobody = error
    assert nobody is not None, "there is always a folder to look in"
    raise nobody


def _greeting(client: str) -> bytes:
    if not client:
        return b""
    from rootsd.wire import hello, jsonrpc  # noqa: PLC0415  # seldom needed

    return jsonrpc.encode(hello.encode(hello.Hello(client=client), _HELLO_ID))


class Pump:
    """Moves bytes both ways until either side is done; never holds more than a chunk each way.

    Reads only what it has room for, and writes only what the kernel takes at once, so that a
    client which does not read keeps its own answers waiting and nothing else.
    """

    def __init__(self, connection: socket.socket, greeting: bytes) -> None:
        connection.settimeout(0)
        self._connection = connection
        self._up = bytearray(greeting)
        self._down = bytearray()
        self._reply_to_greeting = bytearray() if greeting else None
        self._client_speaks = True
        self._daemon_speaks = True
        self._pending: Pending | None = None

    @property
    def client_left(self) -> bool:
        """Whether the client has said all that it will ever say."""
        return not self._client_speaks

    def take(self, data: bytes) -> None:
        """Pass on bytes of the client; empty ones say that it has no more."""
        if not data:
            self._client_speaks = False
        self._up += data
        self._send()
        self._watch().ask(data)

    def run(self) -> list[Id]:
        """Pump until the client has left and everything has arrived, or the daemon is lost.

        Returns the requests that were never answered. Raises BrokenPipeError when the client
        does not want its answers.
        """
        while self._daemon_speaks or self._down:
            for descriptor, _ in self._ready():
                if descriptor == _STDIN:
                    self.take(_read_stdin())
                elif descriptor == _STDOUT:
                    del self._down[: _write_stdout(self._down)]
                else:
                    self._receive()
                    if self._up:
                        self._send()
        return self._watch().drain()

    def _ready(self) -> list[tuple[int, int]]:
        poll = select.poll()
        if self._client_speaks and self._daemon_speaks and not self._up:
            poll.register(_STDIN, select.POLLIN)
        wanted = (0 if self._down else select.POLLIN) | (select.POLLOUT if self._up else 0)
        if self._daemon_speaks and wanted:  # without, a hang-up would wake us again and again
            poll.register(self._connection, wanted)
        if self._down:
            poll.register(_STDOUT, select.POLLOUT)
        return poll.poll()

    def _send(self) -> None:
        try:
            if self._up:
                del self._up[: self._connection.send(self._up)]
            if not self._up and not self._client_speaks:
                self._connection.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            pass
        except OSError:  # lost; what it had sent before is still to be read
            self._up.clear()

    def _receive(self) -> None:
        if self._down:
            return
        try:
            data = self._connection.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._daemon_speaks = False
        self._down += self._without_reply_to_greeting(data)
        self._watch().answer(data)

    def _without_reply_to_greeting(self, data: bytes) -> bytes:
        if self._reply_to_greeting is None:
            return data
        self._reply_to_greeting += data
        reply, newline, rest = self._reply_to_greeting.partition(b"\n")
        if not newline:
            return b""
        # Known or not (-32601), accepted or not: the daemon answers in order, and we go on.
        self._reply_to_greeting = None
        return bytes(rest) if _HELLO_ID.encode() in reply else bytes(reply + newline + rest)

    def _watch(self) -> Pending:
        if self._pending is None:
            from rootsd.wire.pending import Pending  # noqa: PLC0415  # json costs 7 ms

            self._pending = Pending()
        return self._pending


def _answer_for_nobody(error: RootsdError, data: bytes) -> int:
    """Answer every request with `error` until the client gives up."""
    from rootsd.wire.pending import Pending  # noqa: PLC0415  # not needed on the usual way

    sys.stderr.write(f"rootsd bridge: {_sentence(error)}\n")
    pending = Pending()
    while data:
        pending.ask(data)
        _fail(pending.drain(), error)
        data = _read_stdin()
    pending.ask(b"\n")  # the last line may lack its newline
    _fail(pending.drain(), error)
    bad_config = error.code is ErrorCode.BAD_CONFIG
    return EXIT_BAD_CONFIG if bad_config else EXIT_UNREACHABLE


def _fail(ids: list[Id], error: RootsdError) -> None:
    from rootsd.wire.jsonrpc import INTERNAL_ERROR, Fault, encode  # noqa: PLC0415  # as above

    data = {"reason": error.code.value, "remedy": error.remedy}
    for id_ in ids:
        line = encode(Fault(id_, INTERNAL_ERROR, _sentence(error), data))
        while line:
            line = line[_write_stdout(line) :]


def _sentence(error: RootsdError) -> str:
    return f"{error.message}; try: {error.remedy}"


def _read_stdin() -> bytes:
    try:
        return os.read(_STDIN, _CHUNK)
    except OSError:  # a terminal that was closed, or no stdin at all
        return b""


def _write_stdout(data: bytes | bytearray) -> int:
    """Write as much as a pipe takes without blocking, once it is ready; return how much."""
    try:
        return os.write(_STDOUT, data[: select.PIPE_BUF])
    except BlockingIOError:  # the client made our end non-blocking, which a shared pty allows
        ready = select.poll()
        ready.register(_STDOUT, select.POLLOUT)
        ready.poll()
        return 0
