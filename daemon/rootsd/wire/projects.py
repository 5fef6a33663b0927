"""Control requests that list, show, check, and explain projects, and their answers in `rootsd/1`.

Each request class names the type of its answer. `path_b64` is set for a path that is not UTF-8.
"""

from __future__ import annotations

from base64 import b64encode
from enum import StrEnum
from typing import ClassVar, NotRequired, TypedDict

from rootsd.core.paths import is_utf8, text_of
from rootsd.core.project_kind import ProjectKind
from rootsd.core.risks import FindingItem, Risk
from rootsd.core.verdict import Verdict
from rootsd.wire.request import Answer, ControlRequest


class SessionRequestItem(TypedDict):
    """The request of a running session for a folder."""

    session: str
    """What names the session in `DecideRequest`: the pid of its process, or an id."""
    by: str
    """The process that the daemon saw, such as `claude, pid 12`."""
    client: str
    """The name that the client gives itself. rootsd does not trust it."""
    reason: str
    """Why it asks. rootsd does not trust it."""


class RequestNote(str):
    """A note about which sessions request a folder, and why. `requests` has one item for each."""

    __slots__ = ("requests",)

    requests: tuple[SessionRequestItem, ...]

    @classmethod
    def of(cls, text: str, requests: tuple[SessionRequestItem, ...]) -> RequestNote:
        """Return the note `text` about `requests`."""
        note = cls(text)
        note.requests = requests
        return note


class SizeItem(TypedDict):
    """The size of a project on the disk."""

    bytes: int
    """The bytes that its files take on the disk."""
    files: int
    """The number of its files."""
    whole: bool
    """Whether the scan saw all files. If not, the numbers are lower bounds."""


class LastCommitItem(TypedDict):
    """The commit that is checked out."""

    id: str
    """Its hash, in hexadecimal."""
    at: str
    """Its time."""
    summary: str
    """The first line of its message. rootsd does not trust it."""


class RemoteItem(TypedDict):
    """A remote of a git repository."""

    name: str
    """Its name, such as `origin`."""
    url: str
    """Its address, without credentials."""


class ProjectFacts(TypedDict):
    """Facts from a project's own files, which only `show` reads.

    A fact is null if it was not read or could not be read. A listing with risks reads `origin` and
    `findings`. Its findings are those of the concerns `executed` and `elsewhere`, and the
    sensitive files in the project and in its folders, but not in theirs.
    """

    origin: str | None
    """The address that it was cloned from, without credentials."""
    branch: str | None
    """The branch that is checked out."""
    declared_names: list[str] | None
    """The names that its own files give it, such as the one in `pyproject.toml`."""
    project_files: list[str] | None
    """The names of its project files."""
    findings: list[FindingItem] | None
    """What a person should know before a decision."""


class NamedFolder(TypedDict):
    """A folder, which is a project or may become one."""

    id: str
    """The id of its project, or empty if it is not a known project."""
    name: str
    """The name of its project."""
    path: str | None
    """Its path, or the URI of the project. Null if it is not UTF-8."""
    path_b64: str | None
    """Its path in base64, if it is not UTF-8."""


def named_folder(id_: str, name: str, path: bytes) -> NamedFolder:
    """Return the keys for a folder."""
    if is_utf8(path):
        return NamedFolder(id=id_, name=name, path=text_of(path), path_b64=None)
    return NamedFolder(id=id_, name=name, path=None, path_b64=b64encode(path).decode())


class WorktreeItem(NamedFolder):
    """A worktree of a project that an approval of the project affects."""

    main: str
    """The path of its main checkout."""
    identity: str
    """A text that identifies the directory."""
    published: bool
    """Whether clients see it."""
    confirmable: bool
    """Whether a person can publish it together with the project."""
    reason: str | None
    """Why it stays pending, or null if it is published."""


class SharedGitItem(NamedFolder):
    """A checkout with the Git directory that a linked worktree or a submodule elsewhere uses."""

    root: str
    """The id of the project that uses it."""
    root_name: str
    """The name of that project."""
    access: str
    """The access to that project, a value of `Access`."""
    git_directory: str | None
    """The path of its Git directory, or null if it is not UTF-8."""
    identity: str
    """A text that identifies the directory of the checkout."""
    included: bool
    """Whether programs behind the wall may use the Git directory with the project."""
    confirmable: bool
    """Whether a person can include it in an approval of the project."""
    reason: str
    """Why it is included, or why not."""


class TrackingFacts(TypedDict, total=False):
    """Which branch a repository follows, and its remotes."""

    upstream: str | None
    """The branch that its branch follows, or null."""
    ahead: int | None
    """The number of commits that only its branch has. Null without an upstream."""
    behind: int | None
    """The number of commits that only the upstream has. Null without an upstream."""
    remotes: list[RemoteItem]
    """The remotes of the repository."""


class ProjectDetails(TrackingFacts, total=False):
    """Facts that only `show` reads. A key is left out if it does not apply."""

    identity: str
    """A text that identifies the directory. It is different for another directory at the same
    path.
    """
    findings_left_out: int
    """How many findings are not in `findings`, because there are too many."""
    ecosystems: list[str]
    """The ecosystems of its project files, such as `python`."""
    size: SizeItem
    """Its size on the disk."""
    last_commit: LastCommitItem | None
    """The commit that is checked out, or null."""
    git_directory: str | None
    """The folder with the objects and refs of its Git repository, or null."""
    worktrees: list[WorktreeItem]
    """The worktrees that an approval of the project affects."""
    shared_git: SharedGitItem
    """The Git directory in another checkout that the project uses."""


class ShownFacts(ProjectFacts, ProjectDetails):
    """What `show` reads from the disk. It becomes a part of the project's item."""


class RiskFacts(TypedDict, total=False):
    """Facts of a listing with risks: `pending`, and `ls --risk` or `ls --sort risk`."""

    risk: str | None
    """The risks in words, such as `runs code: .mcp.json, hooks; secrets: .env`. It is empty if
    there is none, and ends with a question mark if there may be more. Null if the project was not
    read.
    """
    origin_owner: str | None
    """The host and the owner of `origin`, such as `github.com/acme`, or null."""
    findings_whole: bool
    """Whether all files were seen. If not, there may be further findings."""


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
    INCOMPLETE = "incomplete"
    """Undecided projects that are incomplete. A person may approve one by name."""
    MISSING = "missing"
    """Projects that are gone from the disk and not denied. A denial stays for their return."""
    CHANGED = "changed"
    """Approved projects in which files that run by themselves changed. The daemon looks first."""


class SessionFacts(TypedDict, total=False):
    """The sessions that a project is for. A key is left out if there is no such session."""

    session: str
    """The program of the one session that the approval is for."""
    request: str
    """Which sessions request the folder, and why."""
    requests: list[SessionRequestItem]
    """The running sessions that request it. An approval answers one of them."""


class ChangeFacts(TypedDict, total=False):
    """What changed in an approved project. The keys are left out if nothing did."""

    changed: dict[str, str]
    """The files that run by themselves, or look like secrets, and are `new` or `changed` since the
    approval. The path is relative to the project.
    """
    changes: str
    """A text that stands for these files, for `DecideRequest`."""


class ProjectItem(ProjectFacts, ProjectDetails, RiskFacts, SessionFacts, ChangeFacts):
    """One project."""

    id: str
    """Four or more letters and digits that name the project and never change."""
    name: str
    """Its name. An approval freezes it."""
    path: str | None
    """Its absolute path. Null if it is not a folder, or if the path is not UTF-8."""
    path_b64: str | None
    """Its path in base64, if it is not UTF-8."""
    uri: str | None
    """Its URI, or null if the path is not UTF-8."""
    kind: str
    """A value of `ProjectKind`."""
    verdict: str
    """A value of `Verdict`: what all decisions and rules together mean for it."""
    presence: str
    """A value of `Presence`: whether it is on the disk. `suspended` means that this cannot be read
    now.
    """
    published: bool
    """Whether clients get it as a root now."""
    lapsed: str | None
    """Why its approval ended without a person, such as `replaced` or `expired`. Null if no
    approval lapsed.
    """
    incomplete: str | None
    """Why it is not proposed, such as `interrupted`. Null if it is complete."""
    tags: list[str]
    """Its tags, sorted."""
    access: str
    """A value of `Access`."""
    parent: str | None
    """The innermost parent that holds it, or null."""
    discovered_at: str
    """When rootsd first saw it."""
    decided_at: str | None
    """When it was decided, or null."""
    expires_at: str | None
    """When its approval ends, or null."""
    worktree_of: str | None
    """The path of its main checkout, if it is a linked worktree."""
    note: str | None
    """A remark for people, or null."""


class ProjectListing(Answer):
    """Projects, in display order."""

    items: list[ProjectItem]
    """The projects."""
    unpublishable: NotRequired[list[ProjectItem]]
    """In a listing of pending projects, the projects that no approval can ever publish."""
    incomplete: NotRequired[list[ProjectItem]]
    """In a listing of pending projects, those that are incomplete, and approved only by name."""


class ShowQuery(ControlRequest, frozen=True):
    """Ask for projects with all details: `ProjectListing`. `refs` are as in `ProjectsQuery`."""

    method: ClassVar[str] = "show"
    result: ClassVar[type] = ProjectListing
    is_long: ClassVar[bool] = True

    cwd: str
    refs: tuple[str, ...]


class ProjectsQuery(ControlRequest, frozen=True):
    """Ask for projects: `ProjectListing`.

    `refs` are names, ids, paths, or globs; a relative path is relative to `cwd`. A reference that
    matches no project is an error. One that is no glob and matches several is an error only if
    `select` is NAMED; otherwise the result has all of them. The other fields narrow the result:
    `kinds` to projects of any of these kinds, `under` to projects below this folder, and `since`
    to projects that were found at this RFC 3339 time or later. `risk` narrows it to projects that
    match any of its filters, and needs `risks`.
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


class WaitingItem(TypedDict):
    """A project that waits for a decision, as briefly as possible."""

    id: str
    """Its id."""
    identity: str
    """The `identity` of its `ProjectItem`, for an approval of the folder that a person saw."""
    requested: bool
    """Whether a session requests it."""


class WaitingResult(Answer):
    """The projects that wait for a decision."""

    items: list[WaitingItem]
    """The projects, also those that are incomplete, by path."""


class NextPendingQuery(ControlRequest, frozen=True):
    """Ask for pending and incomplete projects apart from those in `known`: `WaitingResult`.

    If none is pending, the daemon waits for one for up to `wait_s` seconds.
    """

    method: ClassVar[str] = "next-waiting"
    result: ClassVar[type] = WaitingResult

    known: tuple[str, ...] = ()
    wait_s: int = 0


class RuleItem(TypedDict):
    """One rule, of the user or of the machine's policy."""

    number: int | None
    """Its number, which `rootsd rule rm` takes. Null for a rule of the policy."""
    verdict: str
    """A value of `Verdict`. It is `pending` for an approve rule that lapsed."""
    pattern: str | None
    """Its pattern, or null if it is not UTF-8."""
    pattern_b64: str | None
    """Its pattern in base64, if it is not UTF-8."""
    origin: str | None
    """The pattern of the origins that it covers, such as `github.com/acme/*`, or null for all."""
    risk: str | None
    """The risks that it accepts, a value of `RiskLimit`, or null for all."""
    covers: int
    """The number of known projects that it covers."""
    added_at: str | None
    """When it was added. Null for a rule of the policy."""
    source: str | None
    """Where a rule of the policy is written: the file and the line. Null for a user's rule."""


class PathCheckResult(TypedDict):
    """The status of a path."""

    published: bool
    """Whether the path is in a root. If the query names a workspace, that root must be in the
    workspace.
    """
    verdict: str | None
    """A value of `Verdict`, or null if the path is unknown. An approved project that is out of
    reach counts as `pending`.
    """
    root: str | None
    """The name of the root that holds the path, or null."""
    access: str | None
    """A value of `Access`, or null."""
    named_path: NotRequired[str]
    """The path or URI of the project, if `name` of the query means one."""


class CheckQuery(ControlRequest, frozen=True):
    """Ask for the status of `path`, an absolute path or a URI: `PathCheckResult`.

    `name` is the word that a person typed, if nothing exists at `path`. If it is a REF of one
    project, the status is that of the project. It is an error if it means several.

    `workspace` is an absolute path or null. If it is set, only roots count that would be in the
    workspace of a session that begins there.
    """

    method: ClassVar[str] = "check"
    result: ClassVar[type] = PathCheckResult

    path: str
    workspace: str | None = None
    name: str | None = None


class ReasonItem(TypedDict):
    """One possible reason for a verdict."""

    ground: str
    """A value of `VerdictReason`."""
    verdict: str | None
    """The verdict that it gives, or null if it does not apply."""
    by: str | None
    """The folder, the number and the pattern of the rule, or the place in the policy, or null."""
    decides: bool
    """True for the one reason that gives the verdict."""


class WhyResult(Answer):
    """The reasons for a verdict."""

    path: str
    """The canonical path, or the URI."""
    published: bool
    """Whether clients see it. This depends on the verdict and on the disk."""
    root: str | None
    """The name of the root that shows it to clients, or null. It may be a root around the project,
    which has a verdict of its own.
    """
    items: list[ProjectItem]
    """The project at or above the path, if there is one."""
    voices: list[ReasonItem]
    """The possible reasons, in the order of precedence."""
    obstacles: list[str]
    """Why clients do not see an approved project, or why the path is not a project, one sentence
    each.
    """


class WhyQuery(ControlRequest, frozen=True):
    """Ask for the reasons for the verdict on the project at or above `path`: `WhyResult`.

    `name` is that of a `CheckQuery`.
    """

    method: ClassVar[str] = "why"
    result: ClassVar[type] = WhyResult

    path: str
    name: str | None = None
