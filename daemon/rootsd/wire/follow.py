"""Control requests of the screen: follow all projects and sessions, and list a session's roots.

A follower gets everything once, and then only what changes. So a screen never polls, and a change
among thousands of projects is a short message.
"""

from __future__ import annotations

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


class FollowUpdate(TypedDict):
    """What has changed since the update before."""

    revision: int
    """A number that grows with each change of the published set."""
    projects: list[FollowedProject]
    """The projects that are new or have changed, at most 500."""
    gone: list[str]
    """The ids of projects that the daemon no longer knows."""
    sessions: list[SessionItem] | None
    """All sessions, or null if none has changed."""
    confined: list[ConfinedProgramItem] | None
    """All programs behind the wall, or null if none has changed."""
    focus: str | None
    """The tag that narrows sessions, or null."""
    is_complete: bool
    """False if the next update follows at once."""


class FollowResult(TypedDict):
    """The start of a subscription."""

    rootsd: str
    """The version of the daemon."""


class FollowRequest(ControlRequest, frozen=True):
    """Follow everything that a screen shows: `FollowResult`, then `update` notifications with a
    `FollowUpdate` each, for as long as the connection lives.
    """

    method: ClassVar[str] = "follow"
    result: ClassVar[type] = FollowResult


class SessionRootItem(TypedDict):
    """A root that a session or a confined program has."""

    name: str
    """Its name."""
    path: str
    """Its path, or its URI."""
    access: str
    """A value of `Access`."""


class SessionRoots(TypedDict):
    """The roots that a session got last, or that a confined program may reach."""

    revision: int
    """A number that grows with each change of the published set."""
    items: list[SessionRootItem]
    """The roots, by path."""
    warnings: list[str]
    """What a person should know, one sentence each."""


class SessionRootsQuery(ControlRequest, frozen=True):
    """Ask for the roots of the session or the confined program `id`: `SessionRoots`.

    There are none if it has ended.
    """

    method: ClassVar[str] = "session_roots"
    result: ClassVar[type] = SessionRoots

    id: str
