"""Control requests that list, show, check and explain projects, and their answers in `rootsd/1`.

What a person is shown of a project beside its decision, and the request for it.

Projects as the public `rootsd/1` schema has them, and rules; and the request for projects.

Where a path stands, and why, in control requests and their answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NotRequired, TypedDict

from rootsd.core.model import Verdict
from rootsd.wire.request import ControlRequest


class RequestNote(str):
    """A note that says which session asks for a folder, and why."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ShowQuery(ControlRequest):
    """Projects with all that is to be seen of them: `Listing`. `refs` as in `ProjectsQuery`."""

    method: ClassVar[str] = "show"

    cwd: str
    refs: tuple[str, ...]


class FindingItem(TypedDict):
    """Something that a person should know: `concern` is `sensitive`, `executed`, `nested`, or
    `elsewhere` for git data in another place that does not say that they belong to the project.

    `path` is relative to the project; `detail` says which setting, what kind, or which place.
    """

    concern: str
    path: str
    detail: str


class SizeItem(TypedDict):
    """What a project takes on the disk; at least so much unless it was looked through `whole`."""

    bytes: int
    files: int
    whole: bool


class LastCommitItem(TypedDict):
    """The commit that is checked out; its summary is text that anybody may have written."""

    id: str
    at: str
    summary: str


class ProjectFacts(TypedDict):
    """What is read from a project itself: null where nobody looked, or nothing could be seen.

    It is looked for only in answer to a `ShowQuery`.
    """

    origin: str | None
    branch: str | None
    declared_names: list[str] | None
    project_files: list[str] | None
    findings: list[FindingItem] | None


class WorktreeItem(TypedDict):
    """A worktree of a project, where an approval of the project concerns it.

    `published` tells whether clients see it. If they do not, `reason` says why it stays pending,
    and `confirmable` whether a person can have it published with the project all the same.
    `identity` is a word that stands for the directory.
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
    """What else is there in answer to a `ShowQuery`. `identity` is a word that stands for the
    directory: whatever takes its place has another. `worktrees` are those that an approval of the
    project concerns."""

    identity: str
    findings_left_out: int
    ecosystems: list[str]
    size: SizeItem
    last_commit: LastCommitItem | None
    worktrees: list[WorktreeItem]


class Selection(StrEnum):
    """Which projects are meant where no reference names them."""

    NAMED = "named"
    ALL = "all"
    PENDING = "waiting"
    LAPSED = "lapsed"
    PUBLISHED = "published"
    UNPUBLISHABLE = "unpublishable"
    """Undecided, and no approval could ever publish them."""
    MISSING = "missing"
    """Gone from the disk, and not denied: a denial waits for what may come back."""


@dataclass(frozen=True, slots=True)
class ProjectsQuery(ControlRequest):
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
class NextPendingQuery(ControlRequest):
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


class ProjectItem(ProjectFacts, ProjectDetails, SessionFacts):
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


class ProjectListing(TypedDict):
    """Projects in the order they are to be shown."""

    revision: int
    items: list[ProjectItem]
    unpublishable: NotRequired[list[ProjectItem]]
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


@dataclass(frozen=True, slots=True)
class CheckQuery(ControlRequest):
    """Where `path` (absolute, or a URI) stands: `Checked`."""

    method: ClassVar[str] = "check"

    path: str


@dataclass(frozen=True, slots=True)
class WhyQuery(ControlRequest):
    """What speaks for and against the project that holds `path` (absolute, or a URI): `Why`."""

    method: ClassVar[str] = "why"

    path: str


class PathCheckResult(TypedDict):
    """`verdict` is null where the path is not known; `published` tells whether it is in a root."""

    published: bool
    verdict: str | None
    root: str | None
    access: str | None


class ReasonItem(TypedDict):
    """One thing that can speak about a project, in the order of precedence.

    `verdict` is null where it has nothing to say. `by` tells what spoke: a folder, or a rule's
    number and pattern; `decides` marks the one voice that is the verdict.
    """

    ground: str
    verdict: str | None
    by: str | None
    decides: bool


class WhyResult(TypedDict):
    """`path` is the canonical path or the URI asked about, `items` the project there, if any.

    `published` is the judgment and the state of the disk taken together; `obstacles` say, a
    sentence each, what keeps an approved project from clients, or a path from being a project.
    """

    revision: int
    path: str
    published: bool
    items: list[ProjectItem]
    voices: list[ReasonItem]
    obstacles: list[str]
    warnings: list[str]
