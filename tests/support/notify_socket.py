"""A supervisor's notification socket, as systemd has it."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

HANG_GUARD_S = 60
MAX_MESSAGE = 4096


class NotifySocket:
    """Listens at `address`, the value of NOTIFY_SOCKET."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(HANG_GUARD_S)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)

    def hear(self) -> dict[str, str]:
        """The next message, its fields by name."""
        lines = self._socket.recv(MAX_MESSAGE).decode().split("\n")
        return {name: value for name, _, value in (line.partition("=") for line in lines)}

    def hear_of(self, name: str) -> str:
        """The value of field `name` in the next message that has it; those before are dropped."""
        while True:
            if name in (message := self.hear()):
                return message[name]

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a process that is to tell us."""
        return {**os.environ, "NOTIFY_SOCKET": self.address, **more}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


@contextmanager
def supervisor(folder: Path) -> Iterator[NotifySocket]:
    """Yield a socket in `folder`."""
    with NotifySocket(str(folder / "notify")) as listening:
        yield listening


def abstract_supervisor() -> NotifySocket:
    """Yield a socket with a name outside the file system."""
    return NotifySocket(f"@rootsd-test-{secrets.token_hex(8)}")
