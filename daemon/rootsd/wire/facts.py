"""What a person is shown of a project beside its decision, and the request for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypedDict

from rootsd.wire.request import Request


@dataclass(frozen=True, slots=True)
class ShowQuery(Request):
    """Projects with all that is to be seen of them: `Listing`. `refs` as in `ProjectsQuery`."""

    method: ClassVar[str] = "show"

    cwd: str
    refs: tuple[str, ...]


class FoundInside(TypedDict):
    """Something that a person should know: `concern` is `sensitive`, `executed`, `nested`, or
    `elsewhere` for git data in another place that does not say that they belong to the project.

    `path` is relative to the project; `detail` says which setting, what kind, or which place.
    """

    concern: str
    path: str
    detail: str


class Size(TypedDict):
    """What a project takes on the disk; at least so much unless it was looked through `whole`."""

    bytes: int
    files: int
    whole: bool


class LastCommit(TypedDict):
    """The commit that is checked out; its summary is text that anybody may have written."""

    id: str
    at: str
    summary: str


class Facts(TypedDict):
    """What is read from a project itself: null where nobody looked, or nothing could be seen.

    It is looked for only in answer to a `ShowQuery`.
    """

    origin: str | None
    branch: str | None
    declared_names: list[str] | None
    project_files: list[str] | None
    findings: list[FoundInside] | None


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


class MoreFacts(TypedDict, total=False):
    """What else is there in answer to a `ShowQuery`. `identity` is a word that stands for the
    directory: whatever takes its place has another. `worktrees` are those that an approval of the
    project concerns."""

    identity: str
    findings_left_out: int
    ecosystems: list[str]
    size: Size
    last_commit: LastCommit | None
    worktrees: list[WorktreeItem]
