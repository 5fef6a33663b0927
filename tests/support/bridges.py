"""`rootsd bridge` as clients start it (a process with pipes and almost no environment), and small
fake daemons for it.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any

from rootsd.net.listener import listen
from rootsd.places.runtime_dir import find_runtime_dir

HANG_GUARD_S = 30
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "a test", "version": "1"},
}
META_2026 = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}

Message = dict[str, Any]
Converse = Callable[["Daemon"], None]


def command(*flags: str) -> list[str]:
    return [sys.executable, "-m", "rootsd", "bridge", *flags]


def environment(**more: str) -> dict[str, str]:
    """Return the environment that both SDKs give to a stdio server, plus this test's folder."""
    names = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "ROOTSD_DIR")
    return {name: os.environ[name] for name in names if name in os.environ} | more


def run(data: bytes, *flags: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    """Run a bridge whose client sends `data` and closes its side."""
    return subprocess.run(
        command(*flags),
        input=data,
        capture_output=True,
        env=environment(**more),
        cwd="/",
        timeout=HANG_GUARD_S,
        check=False,
    )


def request(id_: object, method: str, params: object = None) -> bytes:
    body = {"jsonrpc": "2.0", "id": id_, "method": method}
    return json.dumps(body | ({"params": params} if params is not None else {})).encode() + b"\n"


def notice(method: str, params: object = None) -> bytes:
    body = {"jsonrpc": "2.0", "method": method}
    return json.dumps(body | ({"params": params} if params is not None else {})).encode() + b"\n"


HANDSHAKE = request("hello", "initialize", INITIALIZE) + notice("notifications/initialized")
ASKING_FOR_ROOTS = HANDSHAKE + request("roots", "roots/list")


def told_roots(output: str) -> list[Message]:
    """Return the roots from the answers to ASKING_FOR_ROOTS."""
    answers = [json.loads(line) for line in output.splitlines()]
    (told,) = (answer["result"] for answer in answers if answer.get("id") == "roots")
    roots: list[Message] = told["roots"]
    return roots


def reply(id_: object, result: object) -> bytes:
    body = {"jsonrpc": "2.0", "id": id_, "result": result}
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def fault(id_: object, code: int, message: str = "no", data: object = None) -> bytes:
    error = {"code": code, "message": message} | ({"data": data} if data is not None else {})
    body = {"jsonrpc": "2.0", "id": id_, "error": error}
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def faults(output: bytes) -> list[tuple[Any, int]]:
    """Return the ids and codes of answers that are all errors."""
    lines = [json.loads(line) for line in output.splitlines()]
    answers = [answer for line in lines for answer in (line if isinstance(line, list) else [line])]
    return [(answer["id"], answer["error"]["code"]) for answer in answers]


class Client:
    """The client's end of a bridge."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stdin
        assert process.stdout
        self.stdin: IO[bytes] = process.stdin
        self.stdout: IO[bytes] = process.stdout

    def say(self, *lines: bytes) -> None:
        self.stdin.write(b"".join(lines))
        self.stdin.flush()

    def say_what_fits(self, data: bytes) -> bytes:
        """Send until nobody takes more. Return the rest."""
        rest, pipe = bytearray(data), self.stdin.fileno()
        has_room = select.poll()
        has_room.register(pipe, select.POLLOUT)
        os.set_blocking(pipe, False)
        while rest and has_room.poll(1_000):
            del rest[: os.write(pipe, rest)]
        os.set_blocking(pipe, True)
        return bytes(rest)

    def hear(self) -> Message:
        message: Message = json.loads(self.stdout.readline())
        return message

    def ask(self, id_: object, method: str, params: object = None) -> Message:
        """Send a request and return the message that comes next."""
        self.say(request(id_, method, params))
        return self.hear()

    def shake_hands(self) -> None:
        """Send `initialize` and `initialized`."""
        answer = self.ask(0, "initialize", INITIALIZE)
        assert answer["id"] == 0
        assert "result" in answer
        self.say(notice("notifications/initialized"))

    def answer(self) -> Message:
        """Return the next answer. Notifications before it are ignored."""
        while "id" not in (message := self.hear()):
            continue
        return message

    def roots(self) -> list[Message]:
        """Return the roots that the session gets. Messages before them are ignored."""
        id_ = os.urandom(4).hex()
        self.say(request(id_, "roots/list"))
        while (answer := self.answer())["id"] != id_:
            continue
        roots: list[Message] = answer["result"]["roots"]
        return roots

    def leave(self) -> int:
        """Close the bridge's input, and return its exit status."""
        self.stdin.close()
        return self.process.wait(HANG_GUARD_S)

    def complaints(self) -> bytes:
        assert self.process.stderr
        return self.process.stderr.read()


@contextmanager
def bridge(*flags: str, **more: str) -> Iterator[Client]:
    """Run a bridge. At the end it is killed if it still runs."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command(*flags), stdin=pipe, stdout=pipe, stderr=pipe, env=environment(**more), cwd="/"
    )
    with process:
        try:
            yield Client(process)
        finally:
            process.kill()


class Daemon:
    """The daemon's end of one connection."""

    def __init__(self, connection: socket.socket, lines: IO[bytes]) -> None:
        self.connection = connection
        self._lines = lines

    def line(self) -> bytes:
        return self._lines.readline()

    def hear(self) -> Message:
        message: Message = json.loads(self.line())
        return message

    def say(self, *lines: bytes) -> None:
        self.connection.sendall(b"".join(lines))

    def rest(self) -> bytes:
        """All that comes until the bridge hangs up."""
        return self._lines.read()


@contextmanager
def daemons(*conversations: Converse) -> Iterator[None]:
    """Listen on a socket and handle each connection with one of the conversations, in order."""
    failures: list[BaseException] = []
    with ExitStack() as stack:
        listener = stack.enter_context(listen(find_runtime_dir().mcp_socket))
        listener.socket.settimeout(HANG_GUARD_S)

        def serve() -> None:
            try:
                for converse in conversations:
                    connection, _ = listener.socket.accept()
                    with connection, connection.makefile("rb") as lines:
                        connection.settimeout(HANG_GUARD_S)
                        converse(Daemon(connection, lines))
            except (AssertionError, OSError, ValueError, KeyError) as failure:
                failures.append(failure)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join(HANG_GUARD_S)
        assert not thread.is_alive()
        if failures:
            raise failures[0]


def echo(daemon: Daemon) -> None:
    while data := daemon.connection.recv(65536):
        daemon.connection.sendall(data)


def answer_pings(daemon: Daemon) -> None:
    """Answer every request until the bridge closes the connection."""
    while line := daemon.line():
        daemon.say(reply(json.loads(line)["id"], {}))


def shake_hands(daemon: Daemon) -> None:
    """Answer `initialize`, and read `initialized`."""
    asked = daemon.hear()
    assert asked["method"] == "initialize"
    capabilities = {"resources": {"listChanged": True, "subscribe": True}}
    daemon.say(reply(asked["id"], {"protocolVersion": "2025-11-25", "capabilities": capabilities}))
    assert daemon.hear()["method"] == "notifications/initialized"
