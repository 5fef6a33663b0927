"""Control requests that list, show, check and explain projects, and their answers in `rootsd/1`.

Each request class names the type of its answer. `path_b64` has a path that is not UTF-8.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NotRequired, TypedDict

from rootsd.core.model import Verdict
from rootsd.wire.request import ControlRequest


class RequestNote(str):
    """A note that says which session requests a folder, and why."""

    __slots__ = ()


class FindingItem(TypedDict):
    """Something in a project that a person should know.

    `concern` is `sensitive`, `executed`, `nested`, or `elsewhere`. The last one means git data in
    another place that does not name the project in return. `path` is relative to the project.
    `detail` is the setting, the kind, or the place.
    """

    concern: str
    path: str
    detail: str


class SizeItem(TypedDict):
    """The size of a project on the disk. It is a lower bound unless the scan was `whole`."""

    bytes: int
    files: int
    whole: bool


class LastCommitItem(TypedDict):
    """The commit that is checked out. Anybody may have written its summary."""

    id: str
    at: str
    summary: str


class RemoteItem(TypedDict):
    """A remote of a git repository. `url` has no credentials."""

    name: str
    url: str


class ProjectFacts(TypedDict):
    """Facts that are read from a project itself, only for a `ShowQuery`.

    Each is null if it was not read or could not be read.
    """

    origin: str | None
    branch: str | None
    declared_names: list[str] | None
    project_files: list[str] | None
    findings: list[FindingItem] | None


class WorktreeItem(TypedDict):
    """A worktree of a project that an approval of the project affects.

    `published` says whether clients see it. If not, `reason` says why it stays pending, and
    `confirmable` whether a person can publish it together with the project. `identity` is a text
    that stands for the directory.
    """

    id: str
    name: str
    path: str | None
    path_b64: str | None
    main: str
    identity: str
    published: bool
    confirmable: bool
    reason: str | None


class ProjectDetails(TypedDict, total=False):
    """Further fields in the answer to a `ShowQuery`.

    `identity` is a text that stands for the directory: another directory in its place has another
    one. `worktrees` are those that an approval of the project affects. `ahead` and `behind`
    count the commits between the current branch and its `upstream`; all three are null without an
    upstream.
    """

    identity: str
    findings_left_out: int
    ecosystems: list[str]
    size: SizeItem
    last_commit: LastCommitItem | None
    upstream: str | None
    ahead: int | None
    behind: int | None
    remotes: list[RemoteItem]
    worktrees: list[WorktreeItem]


class Selection(StrEnum):
    """A selection of projects, for a request without references."""

    NAMED = "named"
    ALL = "all"
    PENDING = "waiting"
    LAPSED = "lapsed"
    PUBLISHED = "published"
    UNPUBLISHABLE = "unpublishable"
    """Undecided, and no approval can ever publish them."""
    MISSING = "missing"
    """Gone from the disk and not denied. A denial stays for a project that may come back."""


class SessionFacts(TypedDict, total=False):
    """`session` is the program of the one session that the approval is for. `request` says which
    session requests the folder, and why. Each is left out if there is none.
    """

    session: str
    request: str


class ProjectItem(ProjectFacts, ProjectDetails, SessionFacts):
    """One project in `rootsd/1`. Times are RFC 3339 in UTC; `path` is null if it is not UTF-8."""

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


class ProjectListing(TypedDict):
    """Projects, in display order."""

    revision: int
    items: list[ProjectItem]
    unpublishable: NotRequired[list[ProjectItem]]
    """In addition to the pending projects, those that no approval can ever publish."""
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class ShowQuery(ControlRequest):
    """Ask for projects with all details: `ProjectListing`. `refs` as in `ProjectsQuery`."""

    method: ClassVar[str] = "show"
    result: ClassVar[type] = ProjectListing

    cwd: str
    refs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProjectsQuery(ControlRequest):
    """Ask for projects: `ProjectListing`.

    `refs` are names, ids, paths or globs; relative ones are relative to `cwd`. A reference that
    matches nothing, or several projects, is an error. `select`, `verdict`, `tag` and `under`
    narrow the result.
    """

    method: ClassVar[str] = "projects"
    result: ClassVar[type] = ProjectListing

    cwd: str
    refs: tuple[str, ...] = ()
    select: Selection = Selection.ALL
    verdict: Verdict | None = None
    tag: str | None = None
    under: str | None = None


@dataclass(frozen=True, slots=True)
class NextPendingQuery(ControlRequest):
    """Ask for pending projects without those in `known`: `ProjectListing`.

    If there is none, the answer waits for one for up to `wait_s` seconds, and is then empty.
    """

    method: ClassVar[str] = "next-waiting"
    result: ClassVar[type] = ProjectListing

    known: tuple[str, ...] = ()
    wait_s: int = 0


class RuleItem(TypedDict):
    """One rule. `verdict` is `pending` if it approved and has lapsed.

    `pattern` is null, and `pattern_b64` is set, if it is not UTF-8. `covers` is the number of
    known projects that it matches.
    """

    number: int
    verdict: str
    pattern: str | None
    pattern_b64: str | None
    covers: int
    added_at: str


class PathCheckResult(TypedDict):
    """`verdict` is null if the path is unknown.

    `published` says whether the path is in a root, and in the workspace if the query names one.
    """

    published: bool
    verdict: str | None
    root: str | None
    access: str | None


@dataclass(frozen=True, slots=True)
class CheckQuery(ControlRequest):
    """Ask for the status of `path` (absolute, or a URI): `PathCheckResult`.

    `workspace` is an absolute path or null. Only roots in the workspace of a session that begins
    there then count as published.
    """

    method: ClassVar[str] = "check"
    result: ClassVar[type] = PathCheckResult

    path: str
    workspace: str | None = None


class ReasonItem(TypedDict):
    """One possible reason for a verdict, in the order of precedence.

    `verdict` is null if the reason does not apply. `by` is the folder, or the number and pattern
    of the rule. `decides` marks the one reason that gives the verdict.
    """

    ground: str
    verdict: str | None
    by: str | None
    decides: bool


class WhyResult(TypedDict):
    """`path` is the canonical path or the URI of the query, and `items` the project there, if any.

    `published` combines the judgment and the state of the disk. Each of `obstacles` is a sentence:
    it says why clients do not see an approved project, or why a path is no project.
    """

    revision: int
    path: str
    published: bool
    items: list[ProjectItem]
    voices: list[ReasonItem]
    obstacles: list[str]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class WhyQuery(ControlRequest):
    """Ask for the reasons for the verdict on the project at or above `path`: `WhyResult`."""

    method: ClassVar[str] = "why"
    result: ClassVar[type] = WhyResult

    path: str
