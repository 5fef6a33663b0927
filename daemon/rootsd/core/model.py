"""The domain model: projects, what the disk shows of them, what was decided, and parents.

The focus: the tag that MCP sessions without a scope of their own are narrowed to.

It is set for the sessions that begin from then on, or for those that run, too. So what holds for
one session follows from the focus as it was when that began, and as it is.

The vocabulary of the program: projects, what was seen of them, what was decided about them.

A project has two independent halves. Its `Sighting` is what the disk shows; only observations
change it. Its `Ruling` is what was decided; only orders widen it, and an observation can at most
take an approval away (a *lapse*). Whether a project is published follows from both halves and
from its surroundings, in one place: `rootsd.core.decide`. Paths are bytes, absolute and canonical;
times are aware datetimes in UTC.

The folders that the user configured: what is looked for in one, and how much of it was seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from rootsd.core.paths import text_of, to_uri


@dataclass(frozen=True, slots=True)
class Focus:
    """`tag` holds for sessions that begin now, None for no tag. `number` counts the changes;
    sessions that began before change `swept` follow `reset_tag`, whatever held at their start."""

    tag: str | None = None
    number: int = 0
    reset_number: int = 0
    reset_tag: str | None = None

    def for_new_sessions(self, tag: str | None) -> Focus:
        """This focus on `tag`; sessions that run are left as they are."""
        return Focus(tag, self.number + 1, self.reset_number, self.reset_tag)

    def for_all_sessions(self, tag: str | None) -> Focus:
        """This focus on `tag`, for all sessions."""
        return Focus(tag, self.number + 1, self.number + 1, tag)

    def tag_for(self, start: Focus) -> str | None:
        """The tag that a session is narrowed to that began when the focus was `start`."""
        return self.reset_tag if self.reset_number > start.number else start.tag


NO_FOCUS = Focus()


class ProjectKind(StrEnum):
    """What a project is: the kind of repository, a folder with a project file, or a URI."""

    GIT = "git"
    GIT_WORKTREE = "git-worktree"
    GIT_SUBMODULE = "git-submodule"
    GIT_BARE = "git-bare"
    JJ = "jj"
    HG = "hg"
    SVN = "svn"
    SAPLING = "sapling"
    FOSSIL = "fossil"
    BZR = "bzr"
    PIJUL = "pijul"
    DARCS = "darcs"
    PROJECT = "project"
    URI = "uri"


class Verdict(StrEnum):
    """What was decided about a project."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"


class Presence(StrEnum):
    """What the disk shows of a project's folder."""

    PRESENT = "present"
    MISSING = "missing"
    SUSPENDED = "suspended"


class Access(StrEnum):
    """What a root's clients are asked to do with it; advice, as all of MCP's roots are."""

    READ_WRITE = "read-write"
    READ = "read"


def stricter_access(one: Access, other: Access) -> Access:
    """The one that asks clients for more restraint."""
    return Access.READ if Access.READ in (one, other) else Access.READ_WRITE


class IncompleteReason(StrEnum):
    """Why a repository is listed but not proposed: it was never finished."""

    INTERRUPTED = "interrupted"
    NO_HEAD = "no HEAD"
    NO_GIT_DIR = "its .git leads nowhere"
    LOCKED = "left locked"
    NOT_CHECKED_OUT = "checkout interrupted"


class LapseReason(StrEnum):
    """Why an approval was lost without anybody revoking it."""

    REPLACED = "replaced"
    RETARGETED = "retargeted"
    EXPOSED = "exposed"
    REFUSED_PLACE = "refused place"
    STORE_RESTORED = "store restored"
    EXPIRED = "expired"
    SESSION_ENDED = "session ended"


class ActorKind(StrEnum):
    """Who gave a command, or tried to. The daemon itself is never one.

    `CHALLENGED` is a caller that the guard doubted and that typed the word shown on its terminal.
    A `CALLER` is one that the guard refuses.
    """

    PERSON = "person"
    CHALLENGED = "challenge confirmed"
    RULE = "rule"
    MAIN_CHECKOUT = "main checkout"
    CALLER = "caller"

    @property
    def may_decide(self) -> bool:
        """Whether the guard followed commands of this kind of caller."""
        return self in (ActorKind.PERSON, ActorKind.CHALLENGED)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who decided; `detail` says more, e.g. the terminal, the rule's number, the main checkout."""

    kind: ActorKind
    detail: str = ""


class GitEntry(StrEnum):
    """What the entry `.git` of a directory is; FILE is whatever is there and no directory."""

    FOLDER = "folder"
    FILE = "file"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells one directory from another that takes its path later.

    `filesystem` is the file system's UUID or id, `handle` the kernel's file handle (it holds the
    inode's generation, see name_to_handle_at(2)), `born_ns` the birth time in nanoseconds since
    the epoch (statx(2)), `owner` a user id. An inode number alone is reused at once. `git` is
    None where nobody looked, `git_target` the directory that a `.git` file leads to, and
    `git_born_ns` the birth time of that file.
    """

    filesystem: bytes
    inode: int
    handle: bytes | None
    born_ns: int | None
    owner: int
    git: GitEntry | None = None
    git_target: Identity | None = None
    git_born_ns: int | None = None

    def same_as(self, other: Identity) -> bool:
        """Whether both describe one directory; never true where nothing but the inode speaks."""
        if (self.filesystem, self.inode, self.owner) != (
            other.filesystem,
            other.inode,
            other.owner,
        ):
            return False
        if self.handle is not None and other.handle is not None:
            return self.handle == other.handle
        return self.born_ns is not None and self.born_ns == other.born_ns

    def holds_for(self, seen: Identity) -> bool:
        """Whether an approval of this directory is one of what is `seen` there."""
        return self.same_as(seen) and self.keeps_git(seen)

    def keeps_git(self, seen: Identity) -> bool:
        """Whether the git data that is `seen` is where it was.

        `git init` where there was none leads nowhere else, and what a `.git` file named may be
        out of reach for a time.
        """
        if self.git is None or seen.git is None:
            return True
        if self.git is GitEntry.NONE:
            return seen.git is not GitEntry.FILE
        if self.git is not seen.git:
            return False
        was, now = self.git_target, seen.git_target
        return now is None or (was is not None and was.same_as(now))

    def keeps_git_file(self, seen: Identity) -> bool:
        """Return whether the `.git` file that is `seen` is the same file; false if unknown."""
        return self.git_born_ns is not None and self.git_born_ns == seen.git_born_ns


@dataclass(frozen=True, slots=True)
class ObservedState:
    """What the disk showed of a project when it was last looked at.

    There is no "last seen": it would change, and rewrite, every project on every scan.
    `main_checkout` is set for a linked git worktree whose back-link was verified; `hazard` where
    the folder may not be published as it stands, e.g. others can write an ancestor. `named` where
    a person called it a project: it is one without a marker, too.
    """

    kind: ProjectKind
    identity: Identity | None
    first_seen: datetime
    presence: Presence = Presence.PRESENT
    absent_since: datetime | None = None
    incomplete: IncompleteReason | None = None
    main_checkout: bytes | None = None
    hazard: LapseReason | None = None
    named: bool = False


@dataclass(frozen=True, slots=True)
class Expiry:
    """When an approval ends: `since_boot_ns` nanoseconds after the machine's start `boot`.

    That clock goes on while the machine sleeps, and nobody can set it. `at` is the same moment by
    the wall clock, for people, and for the time after another start. See `rootsd.core.expiry`.
    """

    at: datetime
    boot: str
    since_boot_ns: int


@dataclass(frozen=True, slots=True)
class SessionKey:
    """What tells one session of a client from all others: see `rootsd.core.session_keys`. `label`
    names its program to people."""

    id: str
    label: str


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's word. An approval is bound to `identity`; a denial to the path alone.

    `number` orders the approvals of all projects: a later approval has a higher one. It is 0 for
    a denial, and for an approval that version 0.1.0 stored. With `session`, the approval is for
    that session alone and ends with it.

    `since_ns` is set where the project has been approved without a break since another time than
    `at`, in nanoseconds since the epoch. Only worktrees born later inherit the approval unasked.
    """

    verdict: Verdict
    actor: Actor
    at: datetime
    identity: Identity | None = None
    access: Access = Access.READ_WRITE
    expires: Expiry | None = None
    number: int = 0
    since_ns: int | None = None
    session: SessionKey | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """An approval that a rule or an approved main checkout gave, bound to the identity seen.

    It counts only while what gave it still stands: see `rootsd.core.decide.judge`. A rule's grant
    uses `since_ns` as a `Decision` does. The grant of a worktree repeats the `since_ns` of the
    approval that it rests on: a later approval of the main checkout does not revive it.
    """

    actor: Actor
    identity: Identity
    at: datetime
    since_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Lapse:
    """An approval that was lost; cleared by the next order. Where that matters to who restores it,
    `by` tells who had given it, a person before all others; `expires` when it would have ended.
    `number` is the number of the lost approval; `for_session` is set where it was for one session
    alone, and then it is never restored."""

    reason: LapseReason
    at: datetime
    by: ActorKind | None = None
    expires: Expiry | None = None
    number: int = 0
    for_session: bool = False


@dataclass(frozen=True, slots=True)
class Ruling:
    """Everything that was decided about one project. The name is frozen by an approval.

    `kept_access` is what an approval that lapsed had said; no rule that grants it anew says more.
    `origin` is where the project said that it came from when a person approved it: its author's
    text, by which a person may know it again, and no ground for anything.
    """

    decision: Decision | None = None
    grants: tuple[Grant, ...] = ()
    lapse: Lapse | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    kept_access: Access = Access.READ_WRITE
    origin: str | None = None

    @property
    def access(self) -> Access:
        """What clients are asked to do with the root, if it is published."""
        return self.kept_access if self.decision is None else self.decision.access

    @property
    def is_lapsed(self) -> bool:
        """Whether an approval was lost; one that came to its end was not."""
        ends = (LapseReason.EXPIRED, LapseReason.SESSION_ENDED)
        return self.lapse is not None and self.lapse.reason not in ends

    @property
    def approves(self) -> bool:
        """Whether anything approves, of whichever directory."""
        decision = self.decision
        return bool(self.grants) or (decision is not None and decision.verdict is Verdict.APPROVED)


UNDECIDED = Ruling()


@dataclass(frozen=True, slots=True)
class Project:
    """A folder that discovery found or a person named; `path` is its key.

    For `ProjectKind.URI` there is no folder and `path` holds the URI. `id` is short and stable.
    """

    path: bytes
    id: str
    observed: ObservedState
    ruling: Ruling = UNDECIDED


@dataclass(frozen=True, slots=True)
class Rule:
    """A standing order for the paths that `pattern` matches; see `rootsd.core.rules`. One that
    approved and has lapsed is pending: it speaks for nothing."""

    number: int
    pattern: bytes
    verdict: Verdict
    actor: Actor
    at: datetime


@dataclass(frozen=True, slots=True)
class PublishedRoot:
    """A published project, as every client sees it; knows nothing of MCP.

    `main_checkout` is set for a linked git worktree. `approval` is the number of the approval by
    a person, 0 where a rule or a main checkout approved it. `session` is the id of the one session
    that sees the root; None where all do.
    """

    path: bytes
    name: str
    kind: ProjectKind
    access: Access
    tags: tuple[str, ...]
    main_checkout: bytes | None = None
    approval: int = 0
    session: str | None = None

    @property
    def uri(self) -> str:
        """By what clients call it; made anew each time: thousands would take 110 bytes each."""
        return text_of(self.path) if self.kind is ProjectKind.URI else to_uri(self.path)


@dataclass(frozen=True, slots=True)
class PublishedSet:
    """The published set at one revision; replaced whole, never edited. Roots are in name order.
    `focus` takes no root out of the set, but out of what sessions without a scope see of it."""

    revision: int
    roots: tuple[PublishedRoot, ...]
    focus: Focus = NO_FOCUS


class NestedPolicy(StrEnum):
    """What is proposed below a project: nothing, repositories, or these and workspace members."""

    NONE = "none"
    VCS = "vcs"
    MEMBERS = "members"


@dataclass(frozen=True, slots=True)
class Parent:
    """A folder that the user configured; its inside is discovered and watched.

    `depth` is how many levels below the parent a project may lie; `skip` are names or globs that
    are never entered, besides the built-in ones. `project_files` are names and `*.ENDING`s that
    make a folder a project, too; with a `!` before them they do not.
    """

    path: bytes
    depth: int = 4
    skip: tuple[bytes, ...] = ()
    nested: NestedPolicy = NestedPolicy.NONE
    project_files: tuple[bytes, ...] = ()


class ScanCoverage(StrEnum):
    """How much of a parent a scan could read."""

    FULL = "full"
    PARTIAL = "partial"
    NONE = "none"
