"""A relay for ACP on real folders, with a fake daemon."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rootsd.core.errors import RootsdError
from rootsd.proxy.acp.folders import ApprovedFolders
from rootsd.proxy.acp.messages import ServerWords
from rootsd.proxy.acp.session import AcpSession, AgentWall
from rootsd.proxy.run.command import LaunchSpec
from rootsd.proxy.run.outbox import Outbox
from rootsd.proxy.run.roots import RootFolder
from rootsd.wire.requested_scope import RequestedScope
from rootsd.wire.roots_subscription import RootsUpdate

_CAPABILITIES: dict[str, Any] = {"sessionCapabilities": {"additionalDirectories": {}}}
TAKES_FOLDERS = {"agentCapabilities": _CAPABILITIES}
TOOLS = {"name": "rootsd", "command": "/bin/rootsd", "args": ["bridge"], "env": []}


class FakeApprovals(ApprovedFolders):
    """Approved folders, and which of them are in the workspace of all sessions."""

    def __init__(self, roots: Iterable[RootFolder], workspace: Iterable[RootFolder] = ()) -> None:
        super().__init__("test", RequestedScope())
        self.roots = tuple(roots)
        self.workspace = tuple(workspace)
        self.error: RootsdError | None = None

    def approved(self) -> tuple[RootFolder, ...]:
        """Return the approved folders, or raise `error`."""
        if self.error is not None:
            raise self.error
        return self.roots

    def together_with(self, folder: bytes) -> tuple[RootFolder, ...]:
        """Return the workspace."""
        return self.workspace


class FakeWall(AgentWall):
    """A wall that notes what was opened."""

    def __init__(self) -> None:
        self.opened: set[str] = set()

    def open(self, names: Iterable[str]) -> None:
        """Note the names."""
        self.opened |= {*names}


def root_at(path: Path, *, writable: bool = True) -> RootFolder:
    """Return a root at `path`, named like its folder."""
    return RootFolder(str(path).encode(), path.name, writable)


class AcpRelay:
    """A relay between a test that is the client, and a test that is the agent."""

    def __init__(
        self,
        folders: FakeApprovals,
        *,
        wall: AgentWall | None = None,
        wrapper: tuple[str, ...] = (),
    ) -> None:
        self.out = Outbox()
        self.folders = folders
        words = ServerWords(("/bin/rootsd", "bridge"), wrapper)
        self.session = AcpSession(LaunchSpec(("agent",), {}), folders, self.out, words, wall)
        self.session.roots_updated(RootsUpdate(folders.roots, 0), 0.0)

    def client_sends(self, message: Mapping[str, Any] | bytes) -> list[dict[str, Any]]:
        """Send a message of the client. Return what the agent gets."""
        self.session.from_client(_line(message), 0.0)
        return _taken(self.out.to_server)

    def agent_sends(self, message: Mapping[str, Any] | bytes) -> list[dict[str, Any]]:
        """Send a message of the agent. Return what the client gets."""
        self.session.from_server(_line(message), 0.0)
        return _taken(self.out.to_client)

    def client_gets(self) -> list[dict[str, Any]]:
        """Return what the client got since the last call."""
        return _taken(self.out.to_client)

    def agent_gets(self) -> list[dict[str, Any]]:
        """Return what the agent got since the last call."""
        return _taken(self.out.to_server)

    def initialize(self, result: Mapping[str, Any] = TAKES_FOLDERS) -> None:
        """Do the handshake with an agent that answers `result`."""
        self.client_sends(request("initialize", {"protocolVersion": 1}, id_=0))
        self.agent_sends({"jsonrpc": "2.0", "id": 0, "result": result})

    def begin(self, cwd: Path, **params: object) -> dict[str, Any]:
        """Begin session `s` in a folder, and return the params that the agent got."""
        (sent,) = self.client_sends(new_session(cwd, **params))
        self.agent_sends({"jsonrpc": "2.0", "id": sent["id"], "result": {"sessionId": "s"}})
        params_sent: dict[str, Any] = sent["params"]
        return params_sent


def request(method: str, params: object, *, id_: int | str = 1) -> dict[str, Any]:
    """Return a request."""
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def new_session(cwd: Path | str, **params: object) -> dict[str, Any]:
    """Return the request for a session in a folder."""
    return request("session/new", {"cwd": str(cwd), "mcpServers": [], **params})


def _line(message: Mapping[str, Any] | bytes) -> bytes:
    return message if isinstance(message, bytes) else json.dumps(message).encode()


def _taken(output: bytearray) -> list[dict[str, Any]]:
    lines = bytes(output).splitlines()
    output.clear()
    return [json.loads(line) for line in lines]
