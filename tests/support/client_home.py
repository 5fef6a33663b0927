"""A home folder with the settings of MCP clients, and programs that stand for the clients."""

from __future__ import annotations

from pathlib import Path

from rootsd.agents.forms.place import Platform
from rootsd.connect.base import ClientEnvironment, McpClient
from rootsd.connect.client_files import Wiring
from rootsd.connect.record import ConnectRecord
from rootsd.connect.registry import all_clients
from rootsd.connect.wiring import ClientWiring

ROOTSD = "/opt/rootsd/bin/rootsd"
WISH = Wiring(ROOTSD)
MCP_CLIENTS = sorted(name for name, client in all_clients().items() if client.facts.keys)
"""The clients that take our entry. The others are editors that run agents only."""


class ClientHome:
    """A home folder, the clients in it, and the record of `rootsd connect`."""

    def __init__(self, top: Path, platform: Platform = Platform.LINUX) -> None:
        self.path = top / "home"
        self.path.mkdir(exist_ok=True)
        self.programs = top / "bin"
        self.programs.mkdir(exist_ok=True)
        state = top / "state"
        state.mkdir(mode=0o700, exist_ok=True)
        self.record = ConnectRecord(bytes(state))
        variables = {"PATH": str(self.programs)}
        self.environment = ClientEnvironment(self.path, variables, platform)

    def wiring(self, name: str) -> ClientWiring:
        """Return the configuration of the client `name`."""
        return ClientWiring(client_named(name), self.environment, self.record)

    def settings(self, name: str, text: str | None = None) -> Path:
        """Return the settings of the client `name`, written with `text`."""
        file = client_named(name).settings(self.environment)
        if text is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
        return file

    def program(self, name: str, script: str) -> Path:
        """Put a shell script on the PATH."""
        file = self.programs / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        return file


def client_named(name: str) -> McpClient:
    """Return the client `name`."""
    return all_clients()[name]
