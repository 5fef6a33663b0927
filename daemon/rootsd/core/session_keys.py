"""The session that an approval for one session is bound to.

A session is a program that uses MCP, such as an agent. It may start several bridges and run
proxies, and each of them has its own connection. So the key of a session is the process that
started them. The key is the same after a restart of the daemon, and no later process has it.
"""

from __future__ import annotations

from dataclasses import dataclass

from rootsd.core.guard import Process, ProcessChain, describe_process, mcp_hosts_in
from rootsd.core.model import SessionKey

_PROCESS, _CONNECTION = "process", "connection"


@dataclass(frozen=True, slots=True)
class SessionMembership:
    """The sessions that one connection belongs to.

    `key` is its own session, and `ids` has the keys of all processes above it. A root that is
    approved for one of these is published to the connection. `folder` is the working directory of
    the process that holds the connection; empty if unknown.
    """

    key: SessionKey
    ids: frozenset[str]
    folder: bytes = b""


NO_MEMBERSHIP = SessionMembership(SessionKey("", "nobody"), frozenset())


def membership_of(lineage: ProcessChain, boot: str, connection: str) -> SessionMembership:
    """Return the membership of the connection that the first process of `lineage` holds.

    `boot` identifies this start of the machine. If the lineage or `boot` is unknown, the session
    is the connection itself, with the id `connection`.
    """
    hosts = tuple(mcp_hosts_in(lineage))
    folder = lineage[0].folder if lineage else b""
    if not hosts or not boot:
        key = SessionKey(f"{_CONNECTION}:{connection}", "a program that cannot be seen")
        return SessionMembership(key, frozenset((key.id,)), folder)
    ids = frozenset(_id_of(process, boot) for process in lineage)
    return SessionMembership(
        SessionKey(_id_of(hosts[-1], boot), describe_process(hosts[-1])), ids, folder
    )


def process_of(key: SessionKey, boot: str) -> tuple[int, int] | None:
    """Return the pid and the start time of the process that `key` names, as in `Process.key`.

    None if it names no process since this start of the machine.
    """
    match key.id.split(":"):
        case [word, at, pid, started] if word == _PROCESS and at == boot:
            return (int(pid), int(started)) if pid.isdigit() and started.isdigit() else None
        case _:
            return None


def _id_of(process: Process, boot: str) -> str:
    return f"{_PROCESS}:{boot}:{process.pid}:{process.started}"
