"""What an approval for one session is bound to.

A session is a program that uses MCP, such as an agent: it may start several bridges and relays,
and each of them has a connection of its own. So the key of a session is the process that started
them. It is the same after a restart of the daemon, and no later process has it.
"""

from __future__ import annotations

from dataclasses import dataclass

from rootsd.core.guard import Process, ProcessChain, describe_process, mcp_hosts_in
from rootsd.core.model import SessionKey

_PROCESS, _CONNECTION = "process", "connection"


@dataclass(frozen=True, slots=True)
class SessionMembership:
    """The sessions that one connection belongs to: its own `key`, and the `ids` of the keys of all
    processes above it. What is approved for one of these is published to it. `folder` is the
    working directory of the process that holds the connection; empty where it is not known."""

    key: SessionKey
    ids: frozenset[str]
    folder: bytes = b""


NO_MEMBERSHIP = SessionMembership(SessionKey("", "nobody"), frozenset())


def membership_of(lineage: ProcessChain, boot: str, connection: str) -> SessionMembership:
    """Return the membership of the connection that the first process of `lineage` holds.

    `boot` names this start of the machine. Where either is not known, the session is the
    connection itself, which is called `connection`.
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
    """Return the pid and the start of the process that `key` names, as `Process.key` has them.
    None where it names none of this start of the machine."""
    match key.id.split(":"):
        case [word, at, pid, started] if word == _PROCESS and at == boot:
            return (int(pid), int(started)) if pid.isdigit() and started.isdigit() else None
        case _:
            return None


def _id_of(process: Process, boot: str) -> str:
    return f"{_PROCESS}:{boot}:{process.pid}:{process.started}"
