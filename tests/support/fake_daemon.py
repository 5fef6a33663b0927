"""A daemon for tests of the command line: a real socket with prepared answers."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rootsd.core.errors import ErrorCode
from rootsd.core.model import Parent
from rootsd.net.unix_socket import address_of
from rootsd.wire.daemon import parent_item

JOIN_SECONDS = 30

Answer = Mapping[str, Any] | Exception | Callable[[dict[str, Any]], Mapping[str, Any]]


class Objection(Exception):
    """An error that the fake returns instead of a result."""

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        remedy: str = "",
        choices: tuple[str, ...] = (),
        **more: object,
    ) -> None:
        super().__init__(message)
        self.data: dict[str, Any] = {
            "code": code.value, "remedy": remedy, "choices": list(choices), **more,
        }  # fmt: skip


class FakeDaemon:
    """Speaks the control protocol below `folder`, the value of ROOTSD_DIR.

    `answers` maps methods to results. `notices` are sent before each result. `raw` replaces the
    whole reply by these bytes. `requests` are the received requests, in order.
    """

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "run" / "ctl" / "control.sock"
        # Whoever has a terminal asks this, too, after what it came for.
        nothing = {"revision": 1, "new": 0, "wanted": {}, "warnings": []}
        self.answers: dict[str, Answer] = {"news": nothing}
        self.answers["introduce"] = {}  # whoever stays says this before it hides
        self.notices: list[dict[str, Any]] = []
        self.raw: bytes | None = None
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._thread = threading.Thread(target=self._serve)
        self._is_stopping = False

    def asked(self, method: str) -> list[dict[str, Any]]:
        """Return the params of all requests of this method."""
        return [params for name, params in self.requests if name == method]

    def ordered(self, method: str) -> list[dict[str, Any]]:
        """Return the params of all requests of this method that were not dry runs."""
        return [params for params in self.asked(method) if params.get("effect") != "dry-run"]

    def __enter__(self) -> Self:
        self.socket.parent.mkdir(0o700, parents=True, exist_ok=True)
        with address_of(bytes(self.socket)) as address:
            self._listener.bind(address)
        self._listener.listen()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_stopping = True
        with socket.socket(socket.AF_UNIX) as waker, address_of(bytes(self.socket)) as address:
            waker.connect(address)
        self._thread.join(JOIN_SECONDS)
        self._listener.close()
        self.socket.unlink()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            # A client that was interrupted is gone, and what was written for it with it.
            with connection, suppress(ConnectionError), connection.makefile("rwb") as stream:
                if self._is_stopping:
                    return
                for line in stream:
                    stream.write(self._reply(json.loads(line)))
                    stream.flush()
                    if self.raw is not None:
                        break

    def _reply(self, request: dict[str, Any]) -> bytes:
        method, params = request["method"], request["params"]
        self.requests.append((method, params))
        if self.raw is not None:
            return self.raw
        notices = [
            {"jsonrpc": "2.0", "method": "progress", "params": params} for params in self.notices
        ]
        reply = {"jsonrpc": "2.0", "id": request["id"], **self._outcome(method, params)}
        return b"".join(json.dumps(message).encode() + b"\n" for message in (*notices, reply))

    def _outcome(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        missing = Objection(
            ErrorCode.FAILED, f"the test has no answer to {method!r}",
            "add it to `answers` or to tests/support/sample_answers.py",
        )  # fmt: skip
        answer = self.answers.get(method, missing)
        try:
            if isinstance(answer, Exception):
                raise answer
            return {"result": answer(params) if callable(answer) else answer}
        except Objection as objection:
            error = {"code": -32000, "message": str(objection), "data": objection.data}
            return {"error": error}


def an_item(name: str = "api", **changes: object) -> dict[str, Any]:
    """Return an item of `rootsd/1`: a pending repository with `changes`."""
    return {
        "id": "r7k2", "name": name, "path": f"/src/{name}", "path_b64": None,
        "uri": f"file:///src/{name}", "kind": "git", "verdict": "pending", "presence": "present",
        "published": False, "lapsed": None, "incomplete": None, "tags": [],
        "access": "read-write", "parent": "/src", "discovered_at": "2026-11-20T08:11:02Z",
        "decided_at": None, "expires_at": None, "origin": None, "branch": None,
        "worktree_of": None, "declared_names": None, "project_files": None, "findings": None,
        "note": None, **changes,
    }  # fmt: skip


def an_affected(name: str, **changes: object) -> dict[str, Any]:
    """Return an `AffectedItem`: a pending project that would be approved, with `changes`."""
    return {
        "token": f"token-{name}", "id": f"id-{name}", "name": name, "path": f"/src/{name}",
        "path_b64": None, "before": "pending", "after": "approved", "within": None, "risk": "",
        **changes,
    }  # fmt: skip


def a_confirmation(*projects: dict[str, Any], parents: Sequence[str] = ()) -> dict[str, Any]:
    """Return the part of a dry run that lists these projects."""
    return {
        "confirmation": {
            "projects": list(projects),
            "parents": list(parents),
            "unsearched": [],
        }
    }


def a_listing(*items: Mapping[str, Any], warnings: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a `Listing` at revision 7."""
    return {"revision": 7, "items": list(items), "warnings": list(warnings)}


def a_status(**changes: object) -> dict[str, Any]:
    """Return a `Status` with one parent, 2 published, 1 pending."""
    return {
        "revision": 7,
        "daemon": {"version": "0.2.0", "pid": 4121, "since": "2026-11-20T08:11:02Z",
                   "confined": "landlock"},
        "config": {"file": "/home/me/config.toml", "read_at": "2026-11-20T08:11:02Z",
                   "checksum": "00000000", "changes": [], "error": None},
        "policy": None,
        "parents": [
            parent_item(Parent(b"/src"), state="watching", projects=3)
        ],
        "counts": {"published": 2, "approved": 2, "waiting": 1, "unpublishable": 0, "denied": 0,
                   "lapsed": 0, "lapsed_rules": 0, "incomplete": 0, "changed": 0,
                   "projects": 3},
        "changed_files": [],
        "left_behind": [],
        "sessions": [
            {"id": "1f2e3d4c", "client": "claude-code", "pid": 99, "scope": [],
             "since": "2026-11-20T09:00:00Z", "until": None, "end": None, "given": [],
             "told": None},
        ],
        "confined": [],
        "closed_connections": {},
        "guard": "agents",
        "focus": None,
        "refused": None,
        "agent_commands": None,
        "degraded": [],
        "warnings": [],
        **changes,
    }  # fmt: skip


def a_scan(**changes: object) -> dict[str, Any]:
    """Return a `Scanned` of 3 projects, 1 new."""
    return {
        "revision": 7, "items": [an_item()], "gone": [], "changed": [], "projects": 3,
        "folders": 1204, "seconds": 0.05, "being_made": 0, "left_out": [], "warnings": [],
        **changes,
    }  # fmt: skip


def a_decision(*items: Mapping[str, Any], **changes: object) -> dict[str, Any]:
    """Return a `Decided` that changed `items`."""
    return {
        "revision": 8, "items": list(items), "unchanged": [], "warnings": [], **changes,
    }  # fmt: skip
