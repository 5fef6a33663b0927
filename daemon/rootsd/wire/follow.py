"""Control requests of the screen: follow all projects and sessions, and list a session's roots.

A follower gets everything once, and then only what changes. So a screen never polls, and a change
among thousands of projects is a short message.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, TypedDict

from rootsd.wire.daemon import SessionItem
from rootsd.wire.projects import ProjectItem
from rootsd.wire.request import ControlRequest
from rootsd.wire.wall import ConfinedProgramItem

UPDATE_METHOD = "update"
"""The method of the notifications with a `FollowUpdate`."""

MAX_FOLLOW_ITEMS = 500
"""The most projects in one update. The first updates together have all projects."""


class ProjectGroup(StrEnum):
    """Where a screen lists a project."""

    PENDING = "pending"
    """A person should decide about it."""
    APPROVED = "approved"
    DENIED = "denied"
    OTHER = "other"
    """It is undecided, and nobody can decide about it now: incomplete, missing, or in a place
    that can never be published."""


class FollowedProject(TypedDict):
    """A project that is new or has changed. `group` is a value of `ProjectGroup`.

    The item has an `identity`, for an approval of the folder that a person saw.
    """

    group: str
    item: ProjectItem


class FollowUpdate(TypedDict):
    """What has changed since the update before.

    * `projects`: those that are new or have changed, at most `MAX_FOLLOW_ITEMS`.
    * `gone`: the ids of projects that the daemon no longer knows.
    * `sessions`, `confined`: all of them, or null if none has changed.
    * `focus`: the tag that narrows sessions, or null.
    * `is_complete`: false if the next update follows at once.
    """

    revision: int
    projects: list[FollowedProject]
    gone: list[str]
    sessions: list[SessionItem] | None
    confined: list[ConfinedProgramItem] | None
    focus: str | None
    is_complete: bool


class FollowResult(TypedDict):
    """The start of a subscription. `rootsd` is the version of the daemon."""

    rootsd: str


@dataclass(frozen=True, slots=True)
class FollowRequest(ControlRequest):
    """Follow everything that a screen shows: `FollowResult`, then `update` notifications with a
    `FollowUpdate` each, for as long as the connection lives.
    """

    method: ClassVar[str] = "follow"
    result: ClassVar[type] = FollowResult


class SessionRootItem(TypedDict):
    """A root that a session or a confined program has. `path` is a path or a URI."""

    name: str
    path: str
    access: str


class SessionRoots(TypedDict):
    """The roots that a session got last, or that a confined program may reach, by path."""

    revision: int
    items: list[SessionRootItem]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class SessionRootsQuery(ControlRequest):
    """Ask for the roots of the session or the confined program `id`: `SessionRoots`.

    There are none if it has ended.
    """

    method: ClassVar[str] = "session_roots"
    result: ClassVar[type] = SessionRoots

    id: str
