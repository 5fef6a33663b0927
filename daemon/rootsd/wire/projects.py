"""Projects as the public `rootsd/1` schema has them, and rules; and the request for projects."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NotRequired, TypedDict

from rootsd.core.model import Verdict
from rootsd.wire.facts import Facts, MoreFacts
from rootsd.wire.request import Request


class Selection(StrEnum):
    """Which projects are meant where no reference names them."""

    NAMED = "named"
    ALL = "all"
    WAITING = "waiting"
    LAPSED = "lapsed"
    PUBLISHED = "published"
    HOPELESS = "hopeless"
    """Undecided, and no approval could ever publish them."""
    MISSING = "missing"
    """Gone from the disk, and not denied: a denial waits for what may come back."""


@dataclass(frozen=True, slots=True)
class ProjectsQuery(Request):
    """Projects, as `Listing`. `refs` are names, ids, paths or globs; relative ones are to `cwd`.

    With refs, one that fits nothing or several raises; `select`, `verdict` and `tag` narrow.
    """

    method: ClassVar[str] = "projects"

    cwd: str
    refs: tuple[str, ...] = ()
    select: Selection = Selection.ALL
    verdict: Verdict | None = None
    tag: str | None = None
    under: str | None = None


@dataclass(frozen=True, slots=True)
class NextWaiting(Request):
    """The projects that wait for a decision, but for those of the ids `known`: `Listing`. Where
    there is none, the answer waits for one up to `wait_s` seconds, and is empty then."""

    method: ClassVar[str] = "next-waiting"

    known: tuple[str, ...] = ()
    wait_s: int = 0


class SessionFacts(TypedDict, total=False):
    """`session` names the program of the one session that the approval is for, and `request` says
    which session asks for the folder and why. Each is left out where there is none."""

    session: str
    request: str


class Item(Facts, MoreFacts, SessionFacts):
    """One project in `rootsd/1`. Times are RFC 3339 UTC; `path` is null where it is not UTF-8."""

    id: str
    name: str
    path: str | None
    path_b64: str | None
    uri: str | None
    kind: str
    verdict: str
    presence: str
    published: bool
    lapsed: str | None
    incomplete: str | None
    tags: list[str]
    access: str
    parent: str | None
    discovered_at: str
    decided_at: str | None
    expires_at: str | None
    worktree_of: str | None
    note: str | None


class Listing(TypedDict):
    """Projects in the order they are to be shown."""

    revision: int
    items: list[Item]
    hopeless: NotRequired[list[Item]]
    """Beside the projects that wait, those that no approval could ever publish."""
    warnings: list[str]


class RuleItem(TypedDict):
    """One rule. `verdict` is pending where it approved and has lapsed, `pattern` null and
    `pattern_b64` set where it is not UTF-8; `covers` tells how many known projects it matches."""

    number: int
    verdict: str
    pattern: str | None
    pattern_b64: str | None
    covers: int
    added_at: str
