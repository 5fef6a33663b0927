"""The account of MCP sessions in control requests: who connects, and what each was given."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, TypedDict

from rootsd.wire.request import Request


class SessionView(StrEnum):
    """Which sessions are meant: the open ones, or the last ones with what they were given."""

    OPEN = "open"
    HISTORY = "history"


@dataclass(frozen=True, slots=True)
class SessionsQuery(Request):
    """MCP sessions, as `SessionListing`; of the history, the `last` ones that began."""

    method: ClassVar[str] = "sessions"

    view: SessionView = SessionView.OPEN
    last: int = 50


class GivenSet(TypedDict):
    """A set that a session was given, against the one before: how many roots it held, and the
    names (the first hundred of them) that were new and that were gone."""

    at: str
    revision: int
    roots: int
    gained: list[str]
    gained_count: int
    lost: list[str]
    lost_count: int


class ToldServer(TypedDict):
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
    given: list[GivenSet]
    told: ToldServer | None


class SessionListing(TypedDict):
    """Sessions, oldest first."""

    revision: int
    items: list[SessionItem]
    warnings: list[str]
