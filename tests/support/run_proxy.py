"""`rootsd run` as clients start it: a process with pipes, in front of a small server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from support.bridges import (
    HANG_GUARD_S,
    INITIALIZE,
    Client,
    Message,
    environment,
    notice,
    reply,
    request,
)

SCRIPTED = (sys.executable, "-I", "-S", str(Path(__file__).with_name("scripted_server.py")))


def command(*server: str, flags: tuple[str, ...] = ()) -> list[str]:
    return [sys.executable, "-m", "rootsd", "run", *flags, "--", *server]


# `rootsd run` with short time limits for servers that do not stop.
_HASTY = (
    "from rootsd.proxy.run import loop, main; import sys; "
    "loop._TERM_WAIT_S = 0.05; loop._IDLE_S = 0.1; "
    "loop._FLOOD_WAIT_S = 0.2; loop._PENDING_WAIT_S = 0.5; "
    "sys.exit(main.main(sys.argv[1:]))"
)


def impatient_command(*server: str) -> list[str]:
    """Return the command of such a proxy."""
    return [sys.executable, "-c", _HASTY, "--", *server]


@contextmanager
def run_proxy(*words: str, flags: tuple[str, ...] = (), **more: str) -> Iterator[RunProxyClient]:
    """Run a proxy in front of a scripted server with `words`. At the end, both are gone."""
    with started(command(*SCRIPTED, *words, flags=flags), **more) as client:
        yield client


@contextmanager
def started(line: list[str], *, cwd: Path | str = "/", **more: str) -> Iterator[RunProxyClient]:
    """Start `line`, with a client at its pipes."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        line, stdin=pipe, stdout=pipe, stderr=pipe, env=environment(**more), cwd=cwd
    )
    with process:
        try:
            yield RunProxyClient(process)
        finally:
            process.kill()


class RunProxyClient(Client):
    """The client's end of a run proxy, in the handshake era.

    It has the folders `opened`, and says so whenever it is asked.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(process)
        self.opened: list[Path] = []

    def answer(self) -> Message:
        """Return the next answer, after answers to what the proxy asks meanwhile."""
        while (message := super().answer()).get("method") == "roots/list":
            self.tell(message["id"])
        return message

    def answer_late(self) -> Message:
        """Return the next answer, and only then answer what the proxy has asked meanwhile."""
        questions = []
        while (message := super().answer()).get("method") == "roots/list":
            questions.append(message["id"])
        for question in questions:
            self.tell(question)
        return message

    def tell(self, question: object) -> None:
        """Answer a question about the client's folders."""
        roots = [{"uri": folder.as_uri(), "name": folder.name} for folder in self.opened]
        self.say(reply(question, {"roots": roots}))

    def shake_hands_with_roots(self) -> None:
        """Complete the handshake of a client that has roots."""
        self.ask(0, "initialize", {**INITIALIZE, "capabilities": {"roots": {}}})
        self.say(notice("notifications/initialized"))

    def call(self, id_: object, name: str, value: object = None) -> Any:  # noqa: ANN401
        """Return the result of the server's tool. Notifications before it are ignored."""
        self.start_call(id_, name, value)
        answer = self.answer()
        assert answer["id"] == id_, answer
        return answer["result"]

    def start_call(self, id_: object, name: str, value: object = None) -> None:
        """Send the call alone."""
        self.say(request(id_, "tools/call", {"name": name, "arguments": value}))

    def server(self, id_: object = "who") -> psutil.Process:
        """Return the server's process."""
        return psutil.Process(self.call(id_, "started")["pid"])


def is_gone(process: psutil.Process | int) -> bool:
    """Wait until a process has ended (it may be a zombie). A pid may already be gone."""
    try:
        if isinstance(process, int):
            process = psutil.Process(process)
        process.wait(HANG_GUARD_S)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return False
    return True
