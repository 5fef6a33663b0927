"""Read where a Codex session works, which Codex puts into each call of a tool.

Codex has no MCP roots. It sends its folders only to servers that advertise an experimental
capability. The proxy advertises it to Codex, and takes the folders out again, unless the server
asked for them itself. Source: runs of Codex 0.171.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from rootsd.proxy.client_roots import NamedFolders, client_paths
from rootsd.wire import jsonrpc
from rootsd.wire.jsonrpc import Request

_STATE = "codex/sandbox-state"
_CAPABILITIES = (_STATE, "codex/sandbox-state-meta")
_ADDED = (*_CAPABILITIES, "codex/sandbox-launcher")
_OWN_FOLDERS = ("/.git", "/.agents", "/.codex")
_EXPERIMENTAL = ("result", "capabilities", "experimental")


def is_codex(initialize: Request) -> bool:
    """Return whether Codex sends this request."""
    match initialize.params:
        case {"clientInfo": {"name": str() as name}}:
            return name.startswith("codex")
        case _:
            return False


class SandboxState(NamedTuple):
    """Where a session works, as all paths that may be meant, and where else it may write."""

    here: tuple[bytes, ...]
    writable: NamedFolders


def state_of(request: Request) -> SandboxState | None:
    """Return what Codex says in a call about its session, or None."""
    match request.params:
        case {"_meta": {"codex/sandbox-state": {"sandboxCwd": str() as uri} as state}}:
            pass
        case _:
            return None
    here = client_paths(uri)
    writable = (paths for path in _writable(state) if (paths := client_paths(path)))
    return SandboxState(here, tuple(writable)) if here else None


def _writable(state: dict[str, Any]) -> Iterator[str]:
    """Yield the folders in which Codex may write."""
    match state:
        case {"permissionProfile": {"file_system": {"entries": list() as entries}}}:
            pass
        case _:
            return
    for entry in entries:
        match entry:
            case {"path": {"type": "path", "path": str() as path}, "access": "write"} if (
                path.startswith("/") and not path.endswith(_OWN_FOLDERS)
            ):
                yield path
            case _:
                pass


def advertise(line: str, result: object) -> str:
    """Return the answer to `initialize`, with the capability for Codex."""
    if not isinstance(result, dict) or not isinstance(result.get("capabilities"), dict):
        return line
    if not isinstance(result["capabilities"].get("experimental"), dict):
        line = jsonrpc.set_member(line, _EXPERIMENTAL, "{}")
    for name in _CAPABILITIES:
        line = jsonrpc.set_member(line, (*_EXPERIMENTAL, name), '{"version":"1.0.0"}')
    return line


def wants_state(result: object) -> bool:
    """Return whether a server advertises the capability itself, in its answer to `initialize`."""
    match result:
        case {"capabilities": {"experimental": dict() as experimental}}:
            return not experimental.keys().isdisjoint(_CAPABILITIES)
        case _:
            return False


def without_state(line: str, request: Request) -> str:
    """Return the line of a call without what Codex adds because of the capability."""
    match request.params:
        case {"_meta": dict() as meta}:
            for name in _ADDED:
                if name in meta:
                    line = jsonrpc.remove_member(line, ("params", "_meta", name))
        case _:
            pass
    return line
