"""A separate daemon for a benchmark: `rootsd daemon` as a process, below ROOTSD_DIR."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.forest import Forest
from bench.measuring import pause
from rootsd.link.connect import connect
from rootsd.link.rpc import ask, connect_control
from rootsd.places.runtime_dir import find_runtime_dir
from support.guard_settings import NO_GUARD

HANG_GUARD_S = 120
URI = "roots://approved"


class Daemon:
    """A running daemon, asked over one connection."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.pid = process.pid
        self._channel = connect_control()
        self._channel.settimeout(HANG_GUARD_S)

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        """One request of `rootsd.wire.registry`."""
        return ask(self._channel, method, params)

    def scan(self) -> dict[str, Any]:
        """Scan now; what is seen is in the list afterwards."""
        return self.ask("scan")

    def verdict(self, path: Path) -> str | None:
        """Where `path` stands; None where it is not known."""
        verdict: str | None = self.ask("check", path=str(path))["verdict"]
        return verdict

    def published(self, path: Path) -> bool:
        """Whether `path` is in a published root."""
        return bool(self.ask("check", path=str(path))["published"])

    def approve_forest(self, forest: Forest) -> int:
        """Approve all that waits, but the folder of oddities; how many projects that were."""
        top = os.fsdecode(forest.top)
        return sum(
            self.approve_pending(under=f"{top}/{name}")
            for name in ("ghq", "flat", "clients", "scratch")
        )

    def approve_pending(self, **more: str) -> int:
        """Approve all that waits, confirmed, and return how many projects that were."""
        order = {"verb": "approve", "cwd": "/", "select": "waiting", **more}
        plan = self.ask("decide", **order, effect="dry-run")
        listed = plan.get("confirmation", {"projects": []})["projects"]
        tokens = [each["token"] for each in listed]
        return len(self.ask("decide", **order, confirmed=tokens)["items"])

    def close(self) -> None:
        """End the daemon and wait for its end."""
        self._channel.close()
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait(HANG_GUARD_S)


@contextmanager
def daemon(*parents: Path, within: Sequence[str] = (), more: str = "") -> Iterator[Daemon]:
    """A daemon that watches `parents` and has scanned them. `within` runs it; `more` is
    configuration."""
    running = start(*parents, within=within, more=more)
    try:
        running.scan()
        yield running
    finally:
        running.close()


def start(*parents: Path, within: Sequence[str] = (), more: str = "") -> Daemon:
    """Start a daemon and return as soon as it answers, while the first scan goes on."""
    top = Path(os.environ["ROOTSD_DIR"])
    config = top / "config" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    tables = (f"[[parent]]\npath = {json.dumps(str(parent))}\n" for parent in parents)
    # The process that gives the orders here has MCP connections, as agents have.
    config.write_text("\n".join([NO_GUARD, *tables, more]))
    reader, writer = os.pipe()
    try:
        with (top / "daemon.log").open("ab") as log:
            process = subprocess.Popen(
                [*within, sys.executable, "-m", "rootsd", "daemon", "--ready-fd", str(writer)],
                pass_fds=[writer],
                stderr=log,
                env={**os.environ, "HOME": str(top)},
            )
        os.close(writer)
        told = os.read(reader, 4096)
    finally:
        os.close(reader)
    if not told.startswith(b"ready"):
        process.wait(HANG_GUARD_S)
        raise RuntimeError(
            f"the daemon did not start: {told!r} {(top / 'daemon.log').read_text()}"
        )
    return Daemon(process)


def await_state(running: Daemon, state: str) -> None:
    """Ask until every parent is in `state`.

    Without a pause, the daemon would spend most of its time on the answers: its first start took
    1,100 ms instead of 340.
    """
    deadline = time.monotonic() + HANG_GUARD_S
    while any(parent["state"] != state for parent in running.ask("status")["parents"]):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no parent became {state}")
        pause(0.005)


class Client:
    """An MCP client on the daemon's socket that is told of changes of the published set."""

    def __init__(self) -> None:
        self._socket: socket.socket = connect(find_runtime_dir().mcp_socket)
        self._socket.settimeout(HANG_GUARD_S)
        self._buffer = bytearray()
        self._id = 0
        about = {"name": "benchmark", "version": "1"}
        self.request(
            "initialize",
            {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about},
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.request("resources/subscribe", {"uri": URI})

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request; notices that come before it are dropped."""
        self._id += 1
        self._send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        while True:
            message = self._receive()
            if message.get("id") == self._id and "method" not in message:
                result: dict[str, Any] = message["result"]
                return result

    def ask_and_ignore(self, method: str, params: dict[str, Any], times: int) -> None:
        """Send a request so many times and read nothing."""
        for _ in range(times):
            self._id += 1
            self._send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})

    def roots(self) -> set[str]:
        """The URIs that this client may use."""
        text = self.request("resources/read", {"uri": URI})["contents"][0]["text"]
        return {root["uri"] for root in json.loads(text)["roots"]}

    def next_notice(self) -> str:
        """The method of the next notice."""
        while True:
            message = self._receive()
            if "id" not in message:
                return str(message["method"])

    def drain(self, quiet_s: float = 0.12) -> None:
        """Drop notices until none came for `quiet_s`, longer than any is held back."""
        self._buffer.clear()
        while select.select([self._socket], [], [], quiet_s)[0]:
            self._socket.recv(1 << 20)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _send(self, message: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def _receive(self) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            data = self._socket.recv(1 << 20)
            if not data:
                raise ConnectionError("the daemon hung up")
            self._buffer += data
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer[:] = rest
        message: dict[str, Any] = json.loads(line)
        return message
