"""Control requests to follow the daemon, and to list the roots of a session.

A follower gets everything once, and then only what changes. So nobody polls, and a change among
thousands of projects is a short message. `rootsd.wire.feed` reads these messages.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, TypedDict

from rootsd.core.mount_plan import ConfinedRoot
from rootsd.core.wall import WallSettings, WallUse
from rootsd.wire.daemon import SessionItem
from rootsd.wire.feed import FOLLOW_METHOD, MOVE_METHOD, RootsChange
from rootsd.wire.hello import MoveResult, ResumeState
from rootsd.wire.projects import ProjectItem
from rootsd.wire.request import ControlRequest
from rootsd.wire.wall import ConfinedProgramItem, WallProgram

MAX_FOLLOW_ITEMS = 500
"""The most projects in one message. The first messages together have all projects."""


class FeedPart(StrEnum):
    """What a follower wants to know."""

    ROOTS = "roots"
    """The roots in its scope, also those that are withheld from MCP clients, and what to mask."""
    SCREEN = "screen"
    """All projects, sessions, and programs behind the wall."""


class ProjectGroup(StrEnum):
    """Where a screen lists a project."""

    PENDING = "pending"
    """A person should decide about it, or may: it is incomplete."""
    APPROVED = "approved"
    DENIED = "denied"
    OTHER = "other"
    """It is undecided, and nobody can decide about it now: missing, or in a place that can never
    be published."""


class FollowedProject(TypedDict):
    """A project that is new or has changed."""

    group: str
    """Where a screen lists it, a value of `ProjectGroup`."""
    item: ProjectItem
    """The project. It has an `identity`, for an approval of the folder that a person saw."""


class ScreenChange(TypedDict):
    """What has changed on a screen."""

    projects: list[FollowedProject]
    """The projects that are new or have changed, at most 500."""
    gone: list[str]
    """The ids of projects that the daemon no longer knows."""
    sessions: list[SessionItem] | None
    """All sessions, or null if none has changed."""
    confined: list[ConfinedProgramItem] | None
    """All programs behind the wall, or null if none has changed."""
    is_complete: bool
    """False if the next change follows at once."""


class FeedChange(NamedTuple):
    """What has changed since the message before."""

    number: int
    """0 in the first message of a connection. It grows by 1 with each message. A follower that
    misses a number must connect again.
    """
    revision: int
    """A number that grows with each change of the published set. Two messages may have the same
    one.
    """
    focus: str | None
    """The tag that narrows sessions, or null."""
    roots: RootsChange | None
    """For a follower of roots."""
    screen: ScreenChange | None
    """For a screen."""


class FollowResult(NamedTuple):
    """The start of a subscription."""

    start: ResumeState | None
    """A follower that connects again sends this in its hello, so that the session keeps its
    workspace. Null for a scope without a folder.
    """
    settings: WallSettings
    """The user's settings for the wall."""
    unknown: tuple[str, ...] = ()
    """With `wall`: the words of the scope, names and `tag:T`, that fit no project, whatever its
    verdict. Such a program does not start.
    """
    similar: tuple[str, ...] = ()
    """The known words that are most like the unknown ones."""


class FollowRequest(ControlRequest, frozen=True):
    """Follow the daemon: `FollowResult`, then `change` notifications with a `FeedChange` each, for
    as long as the connection lives. The first ones have everything.

    A daemon refuses another `version` than its own. `hello` has the scope of a follower of roots,
    as in `rootsd/hello`; without it, the scope is every root. `wall` registers a program behind
    the wall, which reaches these roots, and `use` says what it is.
    """

    method: ClassVar[str] = FOLLOW_METHOD
    result: ClassVar[type] = FollowResult

    version: int
    part: FeedPart
    hello: dict[str, Any] | None = None
    wall: WallProgram | None = None
    use: WallUse = WallUse.PROGRAM


class MoveRequest(ControlRequest, frozen=True):
    """Say where the session of this connection's follower works now: `MoveResult`.

    The roots of the new place are sent before the answer. See `rootsd/move`.
    """

    method: ClassVar[str] = MOVE_METHOD
    result: ClassVar[type] = MoveResult

    folders: tuple[str, ...]


class SessionRoots(NamedTuple):
    """The roots that a session got last, or that a confined program may reach."""

    items: tuple[ConfinedRoot, ...]
    """The roots, by path. Of each, only `path`, `access`, and `name` are set."""


class SessionRootsQuery(ControlRequest, frozen=True):
    """Ask for the roots of the session or the confined program `id`: `SessionRoots`.

    There are none if it has ended.
    """

    method: ClassVar[str] = "session_roots"
    result: ClassVar[type] = SessionRoots

    id: str
