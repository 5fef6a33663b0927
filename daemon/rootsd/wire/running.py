"""The daemon itself, in control requests: how it stands, its configuration, its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypedDict

from rootsd.wire.guarding import RefusedStatus
from rootsd.wire.request import Request


@dataclass(frozen=True, slots=True)
class StatusQuery(Request):
    """The daemon, its parents, counts, connections, and what is degraded: `Status`.

    `is_look`: a person is shown it, so that what was refused before is no news afterwards.
    """

    method: ClassVar[str] = "status"

    is_look: bool = False


@dataclass(frozen=True, slots=True)
class Reload(Request):
    """Read the configuration again: answers with `Status`. `command` is the command that changed
    it, such as `parent rm ~/old`; empty if none did."""

    method: ClassVar[str] = "reload"

    command: str = ""


@dataclass(frozen=True, slots=True)
class Announcement(Request):
    """The caller is about to run `command`, which decides nothing and needs no permission. The
    daemon records it if the guard would refuse a decision of this caller: `{}`."""

    method: ClassVar[str] = "announce"

    command: str


@dataclass(frozen=True, slots=True)
class Stop(Request):
    """End the daemon cleanly; answered before it goes."""

    method: ClassVar[str] = "stop"


class DaemonStatus(TypedDict):
    """`confined` is a word of `host.confine.Confinement`."""

    version: str
    pid: int
    since: str
    confined: str


class ConfigStatus(TypedDict):
    """`checksum` is that of the text in force (`host.config.Config`), `changes` what it changed,
    and `error` what is wrong with the file as it is now, so that it was not taken over."""

    file: str
    read_at: str
    checksum: str
    changes: list[str]
    error: str | None


class ParentStatus(TypedDict):
    """`state` is a word of `app.discovery.status.ParentState`; `note` says why it is not simply
    watched, and `remedy` what to do about it."""

    path: str
    depth: int
    nested: str
    state: str
    note: str | None
    remedy: str | None
    projects: int


class SessionStatus(TypedDict):
    client: str | None
    pid: int
    since: str


class Status(TypedDict):
    """The whole of `status --json` below its envelope.

    `agent_commands` are those that an agent ran since a person looked, which decide nothing and
    which the guard allows, such as `down`. `counts` has `published`, `approved`, `waiting` (what
    `rootsd pending` lists), `denied`, `lapsed`, `lapsed_rules`, `incomplete` and `projects`.
    `closed_connections` are those that the daemon closed since it started, by a word of
    `host.ipc.accept.Refused`.
    """

    revision: int
    daemon: DaemonStatus
    config: ConfigStatus
    parents: list[ParentStatus]
    counts: dict[str, int]
    sessions: list[SessionStatus]
    closed_connections: dict[str, int]
    guard: str
    refused: RefusedStatus | None
    agent_commands: RefusedStatus | None
    degraded: list[str]
    warnings: list[str]
