"""The keys of sessions, to which approvals for one session are bound.

A session is one run of a program that uses MCP, such as an agent. The program may start several
bridges and run proxies, each with its own connection. So the key of a session names the process of
that program. It stays the same when the daemon restarts, and no later process has the same key.
"""

from __future__ import annotations

from msgspec import Struct

from rootsd.core.guard import mcp_hosts_in
from rootsd.core.model import SessionKey
from rootsd.core.processes import Process, ProcessChain, describe_process
from rootsd.core.wall_peers import UNSEEN_PEER, WallPeer, wall_peer

_PROCESS, _CONNECTION = "process", "connection"


class SessionMembership(Struct, frozen=True):
    """The sessions that one connection belongs to.

    `key` is its own session, and `ids` has the ids for all processes in the lineage. If a root is
    approved for one of these, the connection gets it. `folder` is the working directory of the
    process that has the connection, or empty if unknown. `peer` is where that process is.
    """

    key: SessionKey
    ids: frozenset[str]
    folder: bytes = b""
    peer: WallPeer = UNSEEN_PEER


NO_MEMBERSHIP = SessionMembership(SessionKey("", "nobody"), frozenset())


def membership_of(lineage: ProcessChain, boot: str, connection: str) -> SessionMembership:
    """Return the membership of the connection of the first process in `lineage`.

    `boot` identifies the last start of the machine. If the lineage or `boot` is unknown, the
    session is the connection itself, with the id `connection`.
    """
    hosts = tuple(mcp_hosts_in(lineage))
    folder = lineage[0].folder if lineage else b""
    if not hosts or not boot:
        key = SessionKey(f"{_CONNECTION}:{connection}", "a program that cannot be seen")
        return SessionMembership(key, frozenset((key.id,)), folder, wall_peer(lineage))
    ids = frozenset(_id_of(process, boot) for process in lineage)
    key = SessionKey(_id_of(hosts[-1], boot), describe_process(hosts[-1]))
    return SessionMembership(key, ids, folder, wall_peer(lineage))


def has_process(ids: frozenset[str], process: Process) -> bool:
    """Return whether `process` is in the lineage for which `membership_of` returned `ids`."""
    end = f":{process.pid}:{process.started}"
    return any(each.startswith(_PROCESS) and each.endswith(end) for each in ids)


def process_of(key: SessionKey, boot: str) -> tuple[int, int] | None:
    """Return the pid and the start time of the process that `key` names, as in `Process.key`.

    The result is None if `key` names no process, or one before the last start of the machine.
    """
    match key.id.split(":"):
        case [word, at, pid, started] if word == _PROCESS and at == boot:
            return (int(pid), int(started)) if pid.isdigit() and started.isdigit() else None
        case _:
            return None


def handle_of(key: SessionKey) -> str:
    """Return what a person types for a session: the pid of its process, or else its whole id.

    No two sessions that run have the same handle.
    """
    match key.id.split(":"):
        case [word, _, pid, _] if word == _PROCESS:
            return pid
        case _:
            return key.id


def _id_of(process: Process, boot: str) -> str:
    return f"{_PROCESS}:{boot}:{process.pid}:{process.started}"
