"""Control requests about the daemon: status, reload, stop, scans, new proposals, sessions and
doctor.

The daemon itself, in control requests: how it stands, its configuration, its end.

A scan that a person asks for, what it tells meanwhile, and what it found.

What is new since a person looked, in control requests.

The account of MCP sessions in control requests: who connects, and what each was given.

What the daemon finds when it examines itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, TypedDict

from rootsd.wire.guard import RefusedStatus
from rootsd.wire.projects import ProjectItem
from rootsd.wire.request import ControlRequest


@dataclass(frozen=True, slots=True)
class StatusQuery(ControlRequest):
    """The daemon, its parents, counts, connections, and what is degraded: `Status`.

    `is_look`: a person is shown it, so that what was refused before is no news afterwards.
    """

    method: ClassVar[str] = "status"

    is_look: bool = False


@dataclass(frozen=True, slots=True)
class ReloadRequest(ControlRequest):
    """Read the configuration again: answers with `Status`. `command` is the command that changed
    it, such as `parent rm ~/old`; empty if none did."""

    method: ClassVar[str] = "reload"

    command: str = ""


@dataclass(frozen=True, slots=True)
class AnnounceRequest(ControlRequest):
    """The caller is about to run `command`, which decides nothing and needs no permission. The
    daemon records it if the guard would refuse a decision of this caller: `{}`."""

    method: ClassVar[str] = "announce"

    command: str


@dataclass(frozen=True, slots=True)
class StopRequest(ControlRequest):
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


class StatusResult(TypedDict):
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


@dataclass(frozen=True, slots=True)
class ScanRequest(ControlRequest):
    """Scan one parent, or all, now: `progress` notices, then `Scanned`."""

    method: ClassVar[str] = "scan"

    parent: str | None = None


class ScanResponse(TypedDict):
    """What a scan found: new, gone and changed projects, how many in all, and its cost.
    `being_made` counts those that are still being written: they are proposed once they are whole.
    """

    revision: int
    new: list[ProjectItem]
    gone: list[ProjectItem]
    changed: list[ProjectItem]
    projects: int
    folders: int
    seconds: float
    being_made: int
    warnings: list[str]


class ScanProgressItem(TypedDict):
    """A `progress` notice during a scan."""

    folders: int
    projects: int
    parent: str


@dataclass(frozen=True, slots=True)
class NewProposalsQuery(ControlRequest):
    """What came since a person looked or was told: `News`; it is no news afterwards."""

    method: ClassVar[str] = "news"


class RequestedFolder(TypedDict):
    """A folder that a client asks for; `note` says who and why."""

    id: str
    name: str
    note: str


class NewProposals(TypedDict):
    """`new` proposals wait that nobody was told of, beside those that clients asked for."""

    revision: int
    new: int
    wanted: list[RequestedFolder]
    warnings: list[str]


class SessionView(StrEnum):
    """Which sessions are meant: the open ones, or the last ones with what they were given."""

    OPEN = "open"
    HISTORY = "history"


@dataclass(frozen=True, slots=True)
class SessionsQuery(ControlRequest):
    """MCP sessions, as `SessionListing`; of the history, the `last` ones that began."""

    method: ClassVar[str] = "sessions"

    view: SessionView = SessionView.OPEN
    last: int = 50


class SentRootsItem(TypedDict):
    """A set that a session was given, against the one before: how many roots it held, and the
    names (the first hundred of them) that were new and that were gone."""

    at: str
    revision: int
    roots: int
    gained: list[str]
    gained_count: int
    lost: list[str]
    lost_count: int


class ReportedRootsItem(TypedDict):
    """The roots that a relay says its server was told of: how many, and the first names."""

    roots: int
    names: list[str]


class SessionItem(TypedDict):
    """One session. Times are RFC 3339 UTC; `until` and `end` are null while it is open.

    `scope` are the words it was opened with: names, `tag:T`, `cwd:PATH`, `any-uri`; none means
    all. `given` is oldest first, and of an open session outside of the history the newest alone.
    `told` is null but for a relay that has told its server of roots: what it told it last.
    """

    id: str
    client: str | None
    pid: int
    scope: list[str]
    since: str
    until: str | None
    end: str | None
    given: list[SentRootsItem]
    told: ReportedRootsItem | None


class SessionListing(TypedDict):
    """Sessions, oldest first."""

    revision: int
    items: list[SessionItem]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class DoctorRequest(ControlRequest):
    """Look at all that the daemon needs, from inside: `Examined`."""

    method: ClassVar[str] = "examine"


class DoctorItem(TypedDict):
    """One finding; `condition` is a word of `core.diagnosis.Condition`, `seen_by` is `daemon` or
    `command`."""

    topic: str
    condition: str
    finding: str
    remedy: str | None
    seen_by: str


class DoctorResult(TypedDict):
    """All that was looked at, also what is well."""

    revision: int
    items: list[DoctorItem]
    warnings: list[str]
