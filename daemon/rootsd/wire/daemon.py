"""Control requests about the daemon: status, reload, stop, scans, sessions, and doctor.

Each request class names the type of its answer. Times are RFC 3339 in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, TypedDict

from rootsd.wire.projects import ProjectItem
from rootsd.wire.request import ControlRequest, EmptyResult
from rootsd.wire.wall import ConfinedProgramItem


@dataclass(frozen=True, slots=True)
class AnnounceRequest(ControlRequest):
    """Announce that the caller will run `command`, which decides nothing and needs no permission.

    The daemon records the command if the guard would not let this caller decide. The answer is
    `{}`.
    """

    method: ClassVar[str] = "announce"
    result: ClassVar[type] = EmptyResult

    command: str


@dataclass(frozen=True, slots=True)
class StopRequest(ControlRequest):
    """Stop the daemon cleanly. The answer comes before it stops."""

    method: ClassVar[str] = "stop"
    result: ClassVar[type] = EmptyResult


class DaemonStatus(TypedDict):
    """The daemon process. `confined` names the sandbox in which the daemon runs."""

    version: str
    pid: int
    since: str
    confined: str


class ConfigStatus(TypedDict):
    """The configuration file.

    `checksum` is that of the text in force, and `changes` lists its last changes. If the daemon
    cannot use the current file, `error` says why.
    """

    file: str
    read_at: str
    checksum: str
    changes: list[str]
    error: str | None


class PolicyStatus(TypedDict):
    """The machine's policy: the number of refused places and rules, and what it requires.

    If the file cannot be used, `error` says why, and `remedy` is a command that helps. Then
    nothing is published, and the wall is required.
    """

    file: str
    read_at: str
    refused: int
    denied: int
    approved: int
    requires_wall: bool
    error: str | None
    remedy: str | None


class ParentStatus(TypedDict):
    """A parent. `state` is a value of `ParentState`.

    `note` says why the parent is not fully watched, and `remedy` is a command that helps.
    """

    path: str
    depth: int
    nested: str
    state: str
    note: str | None
    remedy: str | None
    projects: int


class SessionStatus(TypedDict):
    """An open MCP session."""

    client: str | None
    pid: int
    since: str


class RefusedStatus(TypedDict):
    """Refused commands, or commands that an agent ran, since a person last looked.

    `what`, `by` and `why` describe the newest one.
    """

    count: int
    at: str
    what: str
    by: str
    why: str


class StatusResult(TypedDict):
    """The content of `status --json`, without its envelope.

    * `agent_commands`: the commands, such as `down`, that an agent ran since a person last looked.
      They are allowed and decide nothing.
    * `confined`: the programs behind the wall.
    * `focus`: the tag that narrows new sessions without a scope, or null.
    * `counts`: `published`, `approved`, `waiting` (the projects that `rootsd pending` lists),
      `denied`, `lapsed`, `lapsed_rules`, `incomplete`, and `projects`.
    * `policy`: the machine's policy, or null if there is none.
    * `closed_connections`: the number of connections that the daemon closed since it started, by
      reason.
    """

    revision: int
    daemon: DaemonStatus
    config: ConfigStatus
    policy: PolicyStatus | None
    parents: list[ParentStatus]
    counts: dict[str, int]
    sessions: list[SessionStatus]
    confined: list[ConfinedProgramItem]
    closed_connections: dict[str, int]
    guard: str
    focus: str | None
    refused: RefusedStatus | None
    agent_commands: RefusedStatus | None
    degraded: list[str]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class StatusQuery(ControlRequest):
    """Ask for the status of the daemon: `StatusResult`.

    `is_look` is true if a person sees the answer. Then earlier refusals no longer count as new.
    """

    method: ClassVar[str] = "status"
    result: ClassVar[type] = StatusResult

    is_look: bool = False


@dataclass(frozen=True, slots=True)
class ReloadRequest(ControlRequest):
    """Read the configuration again: `StatusResult`.

    `command` is the command that changed it, such as `parent rm ~/old`, or empty.
    """

    method: ClassVar[str] = "reload"
    result: ClassVar[type] = StatusResult

    command: str = ""


class ScanResponse(TypedDict):
    """The result of a scan: new, gone, and changed projects, total numbers, and the time it took.

    `being_made` is the number of repositories that are still being created. rootsd proposes them
    when they are complete.
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


@dataclass(frozen=True, slots=True)
class ScanRequest(ControlRequest):
    """Scan one parent, or all, now: `progress` notifications, then `ScanResponse`."""

    method: ClassVar[str] = "scan"
    result: ClassVar[type] = ScanResponse

    parent: str | None = None


class ScanProgressItem(TypedDict):
    """A `progress` notification during a scan."""

    folders: int
    projects: int
    parent: str


class RequestedFolder(TypedDict):
    """A folder that a client requests. `note` says which client requests it, and why."""

    id: str
    name: str
    note: str


class NewProposals(TypedDict):
    """The proposals that no person has seen.

    `wanted` has the folders that clients request, and `new` is the number of all others.
    """

    revision: int
    new: int
    wanted: list[RequestedFolder]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class NewProposalsQuery(ControlRequest):
    """Ask for the proposals that no person has seen: `NewProposals`. Then they count as seen."""

    method: ClassVar[str] = "news"
    result: ClassVar[type] = NewProposals


class SessionView(StrEnum):
    """Which sessions to list: the open ones, or the last ones with the roots that they got."""

    OPEN = "open"
    HISTORY = "history"


class SentRootsItem(TypedDict):
    """A set of roots that a session got, compared with the set before.

    `roots` is the number of roots. `gained` and `lost` have the first hundred names each.
    """

    at: str
    revision: int
    roots: int
    gained: list[str]
    gained_count: int
    lost: list[str]
    lost_count: int


class ReportedRootsItem(TypedDict):
    """The roots that a run proxy has sent to its server: how many, and the first names."""

    roots: int
    names: list[str]


class SessionItem(TypedDict):
    """One session. Times are RFC 3339 in UTC; `until` and `end` are null while it is open.

    * `scope`: the words of the session's scope: names, `tag:T`, `cwd:PATH`, `any-uri`. It is empty
      for all roots.
    * `given`: the sets that the session got, oldest first. For an open session, only the newest.
    * `told`: the roots that a run proxy last reported, or null for other sessions.
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
    """Sessions, oldest first, and the programs that are behind the wall now."""

    revision: int
    items: list[SessionItem]
    confined: list[ConfinedProgramItem]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class SessionsQuery(ControlRequest):
    """Ask for MCP sessions: `SessionListing`. The history has the `last` sessions that began."""

    method: ClassVar[str] = "sessions"
    result: ClassVar[type] = SessionListing

    view: SessionView = SessionView.OPEN
    last: int = 50


class DoctorItem(TypedDict):
    """One finding. `condition` is a value of `core.doctor.Severity`.

    `seen_by` is `daemon` or `command`.
    """

    topic: str
    condition: str
    finding: str
    remedy: str | None
    seen_by: str


class DoctorResult(TypedDict):
    """All checks, including those without a problem."""

    revision: int
    items: list[DoctorItem]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class DoctorRequest(ControlRequest):
    """Check everything that the daemon needs, from inside the daemon: `DoctorResult`."""

    method: ClassVar[str] = "examine"
    result: ClassVar[type] = DoctorResult
