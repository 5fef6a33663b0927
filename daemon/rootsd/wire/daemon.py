"""Control requests about the daemon: status, reload, stop, and sessions.

Each request class names the type of its answer. Times are RFC 3339 in UTC.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, TypedDict

from rootsd.core.paths import text_of
from rootsd.wire.reported_roots import ReportedRoots
from rootsd.wire.request import Answer, ControlRequest, EmptyResult
from rootsd.wire.wall import ConfinedProgramItem

if TYPE_CHECKING:
    from rootsd.core.model import Parent


class AnnounceRequest(ControlRequest, frozen=True):
    """Announce that the caller will run `command`, which decides nothing and needs no permission.

    The daemon records the command if the guard would not let this caller decide, or if the command
    lasts, such as `connect codex`: then undo knows it as the last one. The answer is `{}`.
    """

    method: ClassVar[str] = "announce"
    result: ClassVar[type] = EmptyResult

    command: str


class StopRequest(ControlRequest, frozen=True):
    """Stop the daemon cleanly. The answer comes before it stops."""

    method: ClassVar[str] = "stop"
    result: ClassVar[type] = EmptyResult


class DaemonStatus(TypedDict):
    """The daemon process."""

    version: str
    """Its version of rootsd."""
    pid: int
    """Its process id."""
    since: str
    """When it started."""
    confined: str
    """The sandbox in which it runs, a value of `Confinement`."""


class ConfigStatus(TypedDict):
    """The configuration file."""

    file: str
    """Its path."""
    read_at: str
    """When the daemon read it."""
    checksum: str
    """A checksum of the text in force."""
    changes: list[str]
    """What its last change did, one sentence each."""
    error: str | None
    """Why the daemon cannot use the current file, or null."""


class PolicyStatus(TypedDict):
    """The machine's policy. If the file cannot be used, nothing is published, and the wall is
    required.
    """

    file: str
    """Its path."""
    read_at: str
    """When the daemon read it."""
    refused: int
    """The number of refused places."""
    denied: int
    """The number of deny rules."""
    approved: int
    """The number of approve rules."""
    requires_wall: bool
    """Whether it requires the wall."""
    error: str | None
    """Why the file cannot be used, or null."""
    remedy: str | None
    """A command that helps, or null."""


class ParentItem(TypedDict):
    """A parent."""

    path: str
    """Its path."""
    depth: int
    """How many levels below it a project may lie."""
    nested: str
    """What rootsd proposes inside a project, a value of `NestedPolicy`."""
    skip: list[str]
    """Names or globs of folders that rootsd never enters, besides the built-in ones."""
    project_files: list[str]
    """Names of files that also make a folder a project."""
    mounts: str
    """Which file systems mounted in it rootsd looks into, a value of `MountPolicy`."""
    state: str | None
    """A value of `ParentState`. Null if no daemon watches it."""
    note: str | None
    """Why it is not fully watched, or null."""
    remedy: str | None
    """A command that helps, or null."""
    projects: int | None
    """The number of its projects. Null if no daemon watches it."""


def parent_item(
    parent: Parent,
    state: str | None = None,
    note: str | None = None,
    remedy: str | None = None,
    projects: int | None = None,
) -> ParentItem:
    """Return a parent as it is configured, and what the daemon says about it.

    JSON has no bytes, so an item has texts where a `Parent` has paths and globs.
    """
    return ParentItem(
        path=text_of(parent.path),
        depth=parent.depth,
        nested=parent.nested.value,
        skip=[text_of(glob) for glob in parent.skip],
        project_files=[text_of(name) for name in parent.project_files],
        mounts=parent.mounts.value,
        state=state,
        note=note,
        remedy=remedy,
        projects=projects,
    )


class RefusedStatus(TypedDict):
    """Refused commands, or commands that an agent ran, since a person last looked."""

    count: int
    """Their number."""
    at: str
    """The time of the newest one."""
    what: str
    """The newest command."""
    by: str
    """The process that ran it."""
    why: str
    """Why it was refused, or why it counts as an agent's."""


class StatusResult(Answer):
    """The status of the daemon."""

    daemon: DaemonStatus
    """The daemon process."""
    config: ConfigStatus
    """The configuration file."""
    policy: PolicyStatus | None
    """The machine's policy, or null if there is none."""
    parents: list[ParentItem]
    """The parents."""
    counts: dict[str, int]
    """Numbers of projects, and of lapsed rules: `published`, `approved`, `waiting` (those that
    `rootsd pending` lists), `unpublishable`, `denied`, `lapsed`, `lapsed_rules`, `incomplete`,
    `changed` (those that `rootsd review --changed` lists), and `projects`.
    """
    changed_files: list[str]
    """Which files are new or changed since the approval, one text each for the first projects."""
    left_behind: list[str]
    """What programs behind the wall changed or left that runs outside, or that git obeys, one
    sentence each, until a person has seen it.
    """
    sessions: list[SessionItem]
    """The open MCP sessions, each with the roots that it got last."""
    confined: list[ConfinedProgramItem]
    """The programs behind the wall."""
    closed_connections: dict[str, int]
    """The number of connections that the daemon closed since it started, by reason."""
    guard: str
    """A value of `Guard`."""
    focus: str | None
    """The tag that narrows new sessions without a scope, or null."""
    refused: RefusedStatus | None
    """The commands that the guard refused since a person last looked, or null."""
    agent_commands: RefusedStatus | None
    """The commands, such as `down`, that an agent ran since a person last looked, or null. They
    are allowed and decide nothing.
    """
    degraded: list[str]
    """What rootsd itself cannot do fully, one sentence each."""


class StatusQuery(ControlRequest, frozen=True):
    """Ask for the status of the daemon: `StatusResult`.

    `is_look` is true if a person sees the answer. Then earlier refusals no longer count as new.
    """

    method: ClassVar[str] = "status"
    result: ClassVar[type] = StatusResult

    is_look: bool = False


class ReloadRequest(ControlRequest, frozen=True):
    """Read the configuration again: `StatusResult`.

    `command` is the command that changed it, such as `parent rm ~/old`, or empty.
    """

    method: ClassVar[str] = "reload"
    result: ClassVar[type] = StatusResult

    command: str = ""


class SessionView(StrEnum):
    """Which sessions to list: the open ones, or the last ones with the roots that they got."""

    OPEN = "open"
    HISTORY = "history"


class SentRootsItem(TypedDict):
    """A set of roots that a session got, compared with the set before."""

    at: str
    """When the session got it."""
    revision: int
    """The revision of the published set."""
    roots: int
    """The number of roots."""
    gained: list[str]
    """The names of the roots that are new, at most a hundred."""
    gained_count: int
    """The number of roots that are new."""
    lost: list[str]
    """The names of the roots that are gone, at most a hundred."""
    lost_count: int
    """The number of roots that are gone."""


class SessionItem(TypedDict):
    """One session of an MCP client."""

    id: str
    """Its id."""
    client: str | None
    """The name of the client, or null if it gave none."""
    pid: int
    """The process id of the client."""
    since: str
    """When the session began."""
    scope: list[str]
    """The words of its scope: names, `tag:T`, `focus`, `cwd:PATH`, `workspace:PATH`, `any-uri`.
    Empty for all roots.
    """
    until: str | None
    """When it ended, or null while it is open."""
    end: str | None
    """Why it ended, or null while it is open."""
    given: list[SentRootsItem]
    """The sets of roots that it got, oldest first. For an open session, only the newest."""
    told: ReportedRoots | None
    """The roots that a run proxy last reported, or null for other sessions."""


class SessionListing(Answer):
    """Sessions, oldest first."""

    items: list[SessionItem]
    """The sessions."""
    confined: list[ConfinedProgramItem]
    """The programs that are behind the wall now."""


class SessionsQuery(ControlRequest, frozen=True):
    """Ask for MCP sessions: `SessionListing`. The history has the `last` sessions that began."""

    method: ClassVar[str] = "sessions"
    result: ClassVar[type] = SessionListing

    view: SessionView = SessionView.OPEN
    last: int = 50
