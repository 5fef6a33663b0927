"""A session of `rootsd run` without pipes. The test plays both sides and sets the clock."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rootsd.proxy.run.command import LaunchSpec, ServerCommand
from rootsd.proxy.run.input_required import StateSigner
from rootsd.proxy.run.outbox import Outbox
from rootsd.proxy.run.place import SessionPlace
from rootsd.proxy.run.readiness import ReadinessGate, ServerProfile
from rootsd.proxy.run.restart import RestartPolicy
from rootsd.proxy.run.root_policies import AccessPolicy, ClientRootsPolicy
from rootsd.proxy.run.roots import RootFolder, RootsFilter, RootsProvider
from rootsd.proxy.run.session import RunSession
from rootsd.wire.hello import MoveResult
from rootsd.wire.roots_subscription import RootsUpdate
from support.bridges import META_2026, Message, notice, reply, request

NOWHERE = b"/run/nowhere"
API, WEB, DOCS = (
    RootFolder(path, path[5:].decode()) for path in (b"/src/api", b"/src/web", b"/src/docs")
)


class FakeDisk:
    """A disk where all folders exist except those with `gone` in their path.

    `links` maps links to their targets. `replaced` counts how often a path got another folder.
    """

    def __init__(self) -> None:
        self.links: dict[bytes, bytes] = {}
        self.replaced: Counter[bytes] = Counter()

    def canonical(self, path: bytes) -> bytes | None:
        path = self.links.get(path, path)
        return None if b"gone" in path else path

    def fingerprint(self, path: bytes) -> tuple[bytes, int] | None:
        return None if b"gone" in path or path in self.links else (path, self.replaced[path])


class SessionHarness:
    """Both sides of a session, the daemon, and the clock. The server is already started.

    If it `follows` the session, that begins `here`.
    """

    follows = False

    def __init__(
        self,
        *approved: RootFolder,
        words: Sequence[str] = ("server",),
        use: ClientRootsPolicy = ClientRootsPolicy.AUTO,
        access: AccessPolicy = AccessPolicy.WRITABLE,
        here: bytes | None = None,
        profile: ServerProfile = ServerProfile.UNKNOWN,
        disk: FakeDisk | None = None,
        empty_folder: bytes | None = NOWHERE,
    ) -> None:
        self.now = 100.0
        self.out = Outbox()
        self.gate = ReadinessGate(profile)
        self.approved = approved
        self.is_daemon_there = True
        self.is_busy = False
        self.disk = disk or FakeDisk()
        self.notes: dict[str, bytes] = {}
        self.moves: list[tuple[str, ...]] = []
        command = ServerCommand(words, (), NOWHERE.decode(), here if self.follows else None)
        provider = RootsProvider(RootsFilter(use, access, here), self.out, self.disk, empty_folder)
        self.restart_policy = RestartPolicy(command)
        self.session = RunSession(
            provider,
            self.restart_policy,
            self.gate,
            self.out,
            StateSigner(b"a test", "tag"),
            SessionPlace(provider, self.out, here, self.notes.get) if self.follows else None,
        )
        self.session.roots_updated(RootsUpdate(approved, 0), self.now)
        self.launch: LaunchSpec = self.session.start()
        self.session.started(self.now, lambda: self.is_busy)

    def client(self, *lines: bytes) -> None:
        """Send lines from the client."""
        for line in lines:
            self.session.from_client(line.removesuffix(b"\n"), self.now)
        self._ask_daemon()

    def server(self, *lines: bytes) -> None:
        """Send lines from the server."""
        for line in lines:
            self.session.from_server(line.removesuffix(b"\n"), self.now)
        self._ask_daemon()

    def approve(self, *approved: RootFolder) -> None:
        """Send an update of the approved roots."""
        self.approved = approved
        self.session.roots_updated(RootsUpdate(approved, 0), self.now)
        self._ask_daemon()

    def announce(self) -> None:
        """Announce a change of the roots, without the new ones."""
        self.session.roots_outdated()

    def wait(self, seconds: float) -> None:
        """Advance the clock, and do what is due."""
        until = self.now + seconds
        while (due := max(self.session.deadline, self.now)) <= until:
            before = self.session.deadline
            self.now = due
            self.session.tick(self.now)
            self._ask_daemon()
            assert self.session.deadline != before, "what was due is still due"
        self.now = until

    def another(self) -> LaunchSpec:
        """End the server, and start the one that the session asks for."""
        assert self.out.restart_requested, "it wants no other server"
        self.out.restart_requested = False
        self.launch = self.session.start()
        self.session.started(self.now, lambda: self.is_busy)
        return self.launch

    def raw_to_client(self) -> bytes:
        data = bytes(self.out.to_client)
        self.out.to_client.clear()
        return data

    def raw_to_server(self) -> bytes:
        data = bytes(self.out.to_server)
        self.out.to_server.clear()
        return data

    def to_client(self) -> list[Message]:
        """Return the messages to the client since the last call."""
        return messages(self.raw_to_client())

    def to_server(self) -> list[Message]:
        """Return the messages to the server since the last call."""
        return messages(self.raw_to_server())

    def shake_hands(self, capabilities: Mapping[str, Any] | None = None) -> None:
        """Complete the handshake, and discard what both sides got."""
        info = {"name": "a test", "version": "1"}
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities or {},
            "clientInfo": info,
        }
        self.client(request(0, "initialize", params))
        told = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}}}
        self.server(reply(0, told))
        self.client(notice("notifications/initialized"))
        self.raw_to_server()
        if "roots" not in (capabilities or {}):
            self.raw_to_client()

    def list_roots(self, id_: object = 0) -> list[str]:
        """Ask for roots as the server, and return the paths it gets in the end."""
        self.server(request(id_, "roots/list"))
        (answer,) = self.to_server()
        assert answer["id"] == id_
        self.wait(1.0)
        return paths(answer["result"])

    def open(self, *folders: str) -> None:
        """Answer all questions of the proxy as a client with these folders."""
        for question in [each for each in self.to_client() if each.get("method") == "roots/list"]:
            roots = [{"uri": f"file://{folder}"} for folder in folders]
            self.client(reply(question["id"], {"roots": roots}))

    def _ask_daemon(self) -> None:
        if self.out.move is not None and self.is_daemon_there:
            self._move(self.out.move.folders)
            self.out.move = None
        while self.out.roots_queries and self.is_daemon_there:
            self.out.roots_queries -= 1
            self.session.roots_updated(RootsUpdate(self.approved, 1), self.now)

    def _move(self, folders: tuple[str, ...]) -> None:
        """Answer as a daemon whose scopes hold all roots."""
        self.moves.append(folders)
        known = [root.text for root in self.approved]
        outside = [each for each in folders if not each.startswith(tuple(known))]
        self.session.moved(MoveResult(tuple(outside)), self.now)


class FollowingHarness(SessionHarness):
    """A session whose server moves with it."""

    follows = True


def messages(data: bytes) -> list[Message]:
    """Return the messages in the complete lines."""
    assert data.endswith(b"\n") or not data
    return [json.loads(line) for line in data.splitlines()]


def paths(result: Mapping[str, Any]) -> list[str]:
    """Return the paths in an answer to `roots/list`."""
    return [root["uri"].removeprefix("file://") for root in result["roots"]]


def call(id_: object, name: str = "look", **params: object) -> bytes:
    """Return a call of a tool in the handshake era."""
    return request(id_, "tools/call", {"name": name, "arguments": {}, **params})


def call_2026(id_: object, name: str = "look", *, roots: bool = False, **params: object) -> bytes:
    """Return a call of 2026-07-28, from a client with or without roots."""
    capabilities = "io.modelcontextprotocol/clientCapabilities"
    meta = {**META_2026, capabilities: {"roots": {}} if roots else {}}
    return request(id_, "tools/call", {"name": name, "arguments": {}, "_meta": meta, **params})
