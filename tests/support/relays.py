"""`rootsd run` as clients start it: a process with pipes, in front of a server of a few lines."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from support.bridges import HANG_GUARD_S, INITIALIZE, Client, environment, notice, request

SCRIPTED = (sys.executable, "-I", "-S", str(Path(__file__).with_name("scripted_server.py")))


def command(*server: str, flags: tuple[str, ...] = ()) -> list[str]:
    return [sys.executable, "-m", "rootsd", "run", *flags, "--", *server]


# `rootsd run` with short time limits for servers that do not end.
_HASTY = (
    "from rootsd.proxy.run import loop, main; import sys; "
    "loop._TERM_WAIT_S = 0.05; loop._IDLE_S = 0.1; "
    "loop._FLOOD_WAIT_S = loop._PENDING_WAIT_S = 0.5; "
    "sys.exit(main.main(sys.argv[1:]))"
)


def hasty(*server: str) -> list[str]:
    """The command of such a relay."""
    return [sys.executable, "-c", _HASTY, "--", *server]


@contextmanager
def relay(*words: str, flags: tuple[str, ...] = (), **more: str) -> Iterator[RelayClient]:
    """A relay in front of a scripted server with `words`; nothing of both is left afterwards."""
    with started(command(*SCRIPTED, *words, flags=flags), **more) as client:
        yield client


@contextmanager
def started(line: list[str], *, cwd: Path | str = "/", **more: str) -> Iterator[RelayClient]:
    """What `line` starts, with a client at its pipes."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        line, stdin=pipe, stdout=pipe, stderr=pipe, env=environment(**more), cwd=cwd
    )
    with process:
        try:
            yield RelayClient(process)
        finally:
            process.kill()


class RelayClient(Client):
    """The client's end of a relay; speaks the handshake era."""

    def shake_hands(self) -> None:
        """`initialize` and `initialized`."""
        answer = self.ask(0, "initialize", INITIALIZE)
        assert answer["id"] == 0
        self.say(notice("notifications/initialized"))

    def call(self, id_: object, name: str, value: object = None) -> Any:  # noqa: ANN401
        """The result of the server's tool; notices before it are passed over."""
        self.start_call(id_, name, value)
        answer = self.answer()
        assert answer["id"] == id_, answer
        return answer["result"]

    def start_call(self, id_: object, name: str, value: object = None) -> None:
        """Send the call alone."""
        self.say(request(id_, "tools/call", {"name": name, "arguments": value}))

    def answer(self) -> dict[str, Any]:
        """The next answer; notices before it are passed over."""
        while "id" not in (message := self.hear()):
            continue
        return message

    def server(self, id_: object = "who") -> psutil.Process:
        """The process of the server."""
        return psutil.Process(self.call(id_, "started")["pid"])


def is_gone(process: psutil.Process) -> bool:
    """Wait until a process is gone, as a zombie at least."""
    try:
        process.wait(HANG_GUARD_S)
    except psutil.TimeoutExpired:
        return False
    return True
