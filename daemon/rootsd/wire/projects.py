"""Control requests that list, show, check, and explain projects, and their answers in `rootsd/1`.

Each request class names the type of its answer. `path_b64` is set for a path that is not UTF-8.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NotRequired, TypedDict

from rootsd.core.model import ProjectKind, Verdict
from rootsd.core.risks import Risk
from rootsd.wire.request import ControlRequest


class RequestNote(str):
    """A note about which session requests a folder, and why."""

    __slots__ = ()


class FindingItem(TypedDict):
    """Something in a project that a person should know.

    `concern` is `sensitive`, `executed`, `nested`, or `elsewhere`. The last one means that the git
    data is in another place and does not link back to the project. `path` is relative to the
    project. `detail` is the setting, the kind of project, or the other place.
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
    """The commit that is checked out. rootsd does not trust its summary."""

    id: str
    at: str
    summary: str


class RemoteItem(TypedDict):
    """A remote of a git repository. `url` has no credentials."""

    name: str
    url: str


class ProjectFacts(TypedDict):
    """Facts from a project's own files, read only for a `ShowQuery`.

    A fact is null if it was not read or could not be read. A `ProjectsQuery` with `risks` reads
    `origin` and `findings`. Its findings are those of the concerns `executed` and `elsewhere`, and
    the sensitive files in the project and in its folders, but not in theirs.
    """

    origin: str | None
    branch: str | None
    declared_names: list[str] | None
    project_files: list[str] | None
    findings: list[FindingItem] | None


class WorktreeItem(TypedDict):
    """A worktree of a project that an approval of the project affects.

    `published` says whether clients see it. If not, `reason` says why it stays pending, and
    `confirmable` says whether a person can publish it together with the project. `identity` is a
    text that identifies the directory.
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


class SharedGitItem(TypedDict):
    """The Git directory in another checkout that a linked worktree or a submodule uses.

    * `root`, `root_name`, `access`: the id, the name, and the access of the project that uses it.
    * `id`, `name`, `path`, `path_b64`: the checkout. `id` is empty if it is not a known project.
    * `git_directory`: the path of its Git directory, or null if it is not UTF-8.
    * `identity`: a text that identifies the directory of the checkout.
    * `included`: whether programs behind the wall may use the Git directory with the project.
    * `confirmable`: whether a person can include it in an approval of the project.
    * `reason`: why it is included, or why not.
    """

    root: str
    root_name: str
    access: str
    id: str
    name: str
    path: str | None
    path_b64: str | None
    git_directory: str | None
    identity: str
    included: bool
    confirmable: bool
    reason: str


class ProjectDetails(TypedDict, total=False):
    """Further fields in the answer to a `ShowQuery`.

    `identity` is a text that identifies the directory. It is different for another directory at
    the same path. `worktrees` are those that an approval of the project affects. `shared_git` is
    the Git directory in another checkout that the project uses. `ahead` and `behind` are numbers
    of commits that the current branch and its `upstream` do not share. All three are null without
    an upstream.
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
    shared_git: SharedGitItem


class RiskFacts(TypedDict, total=False):
    """Further fields in the answer to a `ProjectsQuery` with `risks`.

    `risk` is in words, such as `runs code: .mcp.json, hooks; secrets: .env`. It is empty if there
    is none, and ends with a question mark if there may be more. `origin_owner` is the host and the
    owner of `origin`, such as `github.com/acme`. Both are null if the project was not read.
    `findings_whole` is false if the project has too many files to see all of them.
    """

    risk: str | None
    origin_owner: str | None
    findings_whole: bool


class RiskReading(StrEnum):
    """Whether a listing reads the risks of its projects."""

    NEVER = "never"
    QUICK = "quick"
    """If the projects are not too many, and for at most a second."""
    THOROUGH = "thorough"
    """Of all projects, for at most ten seconds."""


class RiskFilter(StrEnum):
    """A filter for the risks of projects."""

    ANY = "any"
    """The project has a risk, or may have one."""
    NONE = "none"
    RUNS_CODE = Risk.RUNS_CODE.value
    SECRETS = Risk.SECRETS.value
    OUTSIDE = Risk.OUTSIDE.value
    UNREAD = "unread"
    """The project was not read, or not to its end."""


class Selection(StrEnum):
    """A selection of projects, for a request without references."""

    NAMED = "named"
    ALL = "all"
    PENDING = "waiting"
    LAPSED = "lapsed"
    PUBLISHED = "published"
    UNPUBLISHABLE = "unpublishable"
    """Undecided projects that no approval can ever publish."""
    MISSING = "missing"
    """Projects that are gone from the disk and not denied. A denial stays for their return."""


class SessionFacts(TypedDict, total=False):
    """The sessions that a project is for.

    `session` is the program of the one session that the approval is for. `request` says which
    session requests the folder, and why. Each is left out if there is no such session.
    """

    session: str
    request: str


class ProjectItem(ProjectFacts, ProjectDetails, RiskFacts, SessionFacts):
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
    """In a listing of pending projects, the projects that no approval can ever publish."""
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class ShowQuery(ControlRequest):
    """Ask for projects with all details: `ProjectListing`. `refs` are as in `ProjectsQuery`."""

    method: ClassVar[str] = "show"
    result: ClassVar[type] = ProjectListing

    cwd: str
    refs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProjectsQuery(ControlRequest):
    """Ask for projects: `ProjectListing`.

    `refs` are names, ids, paths, or globs; a relative path is relative to `cwd`. A reference that
    matches no project, or several, is an error. The other fields narrow the result: `kinds` to
    projects of any of these kinds, `under` to projects below this folder, and `since` to projects
    that were found at this RFC 3339 time or later. `risk` narrows it to projects that match any of
    its filters, and needs `risks`.
    """

    method: ClassVar[str] = "projects"
    result: ClassVar[type] = ProjectListing

    cwd: str
    refs: tuple[str, ...] = ()
    select: Selection = Selection.ALL
    verdict: Verdict | None = None
    tag: str | None = None
    under: str | None = None
    kinds: tuple[ProjectKind, ...] = ()
    since: str | None = None
    risks: RiskReading = RiskReading.NEVER
    risk: tuple[RiskFilter, ...] = ()


@dataclass(frozen=True, slots=True)
class NextPendingQuery(ControlRequest):
    """Ask for pending projects apart from those in `known`: `ProjectListing`.

    If there are none, the daemon waits for one for up to `wait_s` seconds.
    """

    method: ClassVar[str] = "next-waiting"
    result: ClassVar[type] = ProjectListing

    known: tuple[str, ...] = ()
    wait_s: int = 0


class RuleItem(TypedDict):
    """One rule. `verdict` is `pending` for an approve rule that lapsed.

    If the pattern is not UTF-8, `pattern` is null and `pattern_b64` is set. `covers` is the number
    of known projects that the rule matches.
    """

    number: int
    verdict: str
    pattern: str | None
    pattern_b64: str | None
    covers: int
    added_at: str


class PolicyRuleItem(TypedDict):
    """One rule of the machine's policy. `source` says where it is written.

    `covers` is the number of known projects that the rule matches.
    """

    verdict: str
    pattern: str
    covers: int
    source: str


class PathCheckResult(TypedDict):
    """The status of a path. `verdict` is null if the path is unknown.

    `published` says whether the path is in a root. If the query names a workspace, that root must
    be in the workspace.
    """

    published: bool
    verdict: str | None
    root: str | None
    access: str | None


@dataclass(frozen=True, slots=True)
class CheckQuery(ControlRequest):
    """Ask for the status of `path`, an absolute path or a URI: `PathCheckResult`.

    `workspace` is an absolute path or null. If it is set, only roots count that would be in the
    workspace of a session that begins there.
    """

    method: ClassVar[str] = "check"
    result: ClassVar[type] = PathCheckResult

    path: str
    workspace: str | None = None


class ReasonItem(TypedDict):
    """One possible reason for a verdict, in the order of precedence.

    `verdict` is null if the reason does not apply. `by` is the folder, or the number and the
    pattern of the rule. `decides` is true for the one reason that gives the verdict.
    """

    ground: str
    verdict: str | None
    by: str | None
    decides: bool


class WhyResult(TypedDict):
    """The reasons for a verdict.

    `path` is the canonical path or the URI of the query. `items` has the project there, if there
    is one. `published` depends on the verdict and on the disk. Each of `obstacles` is a sentence
    about why clients do not see an approved project, or why a path is not a project.
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
