"""The domain model: projects, observations of them, decisions about them, parents, and the focus.

A project has two independent parts. Its `ObservedState` says what is on the disk, and only
observations change it. Its `Ruling` says what was decided, and only orders add to it. An
observation can take an approval away, which is called a *lapse*, but never give one.

Whether clients see a project depends on both parts, on other projects, and on the rules. One
module decides that: `rootsd.core.decide`.

Paths are bytes, absolute and canonical. Times are aware datetimes in UTC.

Records of which there are thousands have `gc=False`: they are never part of a cycle, and each
takes 16 bytes less.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from rootsd.core.access import Access
from rootsd.core.paths import text_of, to_uri
from rootsd.core.project_kind import ProjectKind as ProjectKind  # noqa: PLC0414 - part of the model
from rootsd.core.risks import RiskLimit
from rootsd.core.verdict import Verdict as Verdict  # noqa: PLC0414 - part of the model


class Focus(Struct, frozen=True):
    """The tag that narrows sessions without a scope of their own.

    `tag` is the tag for sessions that begin now, or None for no tag. A change of the focus applies
    either to new sessions only or to all sessions.

    `number` counts the changes. Each session remembers the focus at its start. `reset_number` is
    the number of the last change for all sessions, and `reset_tag` is its tag. Sessions that began
    before that change use `reset_tag`.
    """

    tag: str | None = None
    number: int = 0
    reset_number: int = 0
    reset_tag: str | None = None

    def for_new_sessions(self, tag: str | None) -> Focus:
        """Return the focus after a change to `tag` for new sessions. Others keep their tag."""
        return Focus(tag, self.number + 1, self.reset_number, self.reset_tag)

    def for_all_sessions(self, tag: str | None) -> Focus:
        """Return the focus after a change to `tag` for new and running sessions."""
        return Focus(tag, self.number + 1, self.number + 1, tag)

    def tag_for(self, start: Focus) -> str | None:
        """Return the tag that narrows a session that began when the focus was `start`."""
        return self.reset_tag if self.reset_number > start.number else start.tag


NO_FOCUS = Focus()


class Presence(StrEnum):
    """Whether the folder of a project is on the disk."""

    PRESENT = "present"
    MISSING = "missing"
    SUSPENDED = "suspended"


class IncompleteReason(StrEnum):
    """Why a repository is incomplete. An incomplete repository is listed but not proposed.

    No rule publishes it. A person may approve it by name, if no program works on it any more.
    """

    INTERRUPTED = "interrupted"
    NO_HEAD = "no HEAD"
    NO_GIT_DIR = "its .git leads nowhere"
    LOCKED = "left locked"
    NOT_CHECKED_OUT = "checkout interrupted"

    @property
    def lacks(self) -> str:
        """What such a project lacks, as a clause for people."""
        return _LACKS[self]


_LACKS = {
    IncompleteReason.INTERRUPTED: "a clone or copy was cut off, so history or files are missing",
    IncompleteReason.NO_HEAD: "its repository has no HEAD, so it has no history",
    IncompleteReason.NO_GIT_DIR: "its .git leads nowhere, so its history is not there",
    IncompleteReason.LOCKED: "a lock was left before the first commit, so files may be missing",
    IncompleteReason.NOT_CHECKED_OUT: "its checkout was cut off, so files are missing",
}


class LapseReason(StrEnum):
    """Why an approval ended without a person revoking it."""

    REPLACED = "replaced"
    MOUNTED_AGAIN = "mounted again"
    MOUNTED_INSIDE = "another file system was mounted inside it"
    RETARGETED = "retargeted"
    EXPOSED = "exposed"
    REFUSED_PLACE = "refused place"
    STORE_RESTORED = "store restored"
    EXPIRED = "expired"
    SESSION_ENDED = "session ended"
    POLICY = "the policy refuses it"
    """Only a hazard: an approval does not lapse, because the policy may change."""
    OTHER_OWNER = "it belongs to another user"
    """Only a hazard: an approval does not lapse, because the owner may come back."""
    CHANGED = "files that run by themselves changed"


class ActorKind(StrEnum):
    """The kind of actor behind a decision or an attempt. The daemon itself is never an actor.

    * `CHALLENGED`: a person who typed the word on the terminal, because the guard had doubts.
    * `CALLER`: a caller that the guard refused.
    """

    PERSON = "person"
    CHALLENGED = "challenge confirmed"
    RULE = "rule"
    POLICY = "policy"
    MAIN_CHECKOUT = "main checkout"
    CALLER = "caller"

    @property
    def may_decide(self) -> bool:
        """Return whether the guard accepted commands of this kind of actor."""
        return self in (ActorKind.PERSON, ActorKind.CHALLENGED)


class Actor(Struct, frozen=True, gc=False):
    """The actor behind a decision.

    `detail` is the terminal of the person, the process that called or asked, the number of the
    rule, the pattern of the policy's rule, or the main checkout. `wall` is the pid of the process
    behind whose wall the caller is, or 0.
    """

    kind: ActorKind
    detail: str = ""
    wall: int = 0


class GitEntry(StrEnum):
    """The type of the entry `.git` in a directory. FILE is anything but a directory."""

    FOLDER = "folder"
    FILE = "file"
    NONE = "none"


class MountBinding(Struct, frozen=True, gc=False):
    """One mount of a file system, from the moment it was mounted until it is unmounted.

    * `boot`: the id of the machine's start; `number`: the number of the mount in that start, which
      no other mount gets.
    * `device`: the device number of the file system, which is the same in every mount namespace.
    * `path`: the directory.
    """

    boot: str
    number: int
    device: int
    path: bytes


class Identity(Struct, frozen=True, gc=False):
    """The facts that distinguish a directory from another one that has its path later.

    A fact that does not count on a file system is left out; see `rootsd.disk.file_systems`.

    * `filesystem`: the UUID or id of the file system.
    * `inode`: not enough alone, because file systems reuse inode numbers at once. 0 if it does not
      count.
    * `handle`: the kernel's file handle, which includes the generation of the inode (see
      name_to_handle_at(2)).
    * `born_ns`: the birth time in nanoseconds since the epoch (statx(2)).
    * `owner`: a user id. A change does not make another directory of it.
    * `mount`: the mount that has the directory, if the other facts do not distinguish it from one
      of another mount.
    * `inside`: ids of the mounts inside the directory that depend on another machine or program.
    * `git`: the type of the `.git` entry; None if it was not read.
    * `git_target`: the identity of the directory to which a `.git` file or link leads.
    * `git_born_ns`: the birth time of that `.git` file or link.
    """

    filesystem: bytes
    inode: int
    handle: bytes | None
    born_ns: int | None
    owner: int
    git: GitEntry | None = None
    git_target: Identity | None = None
    git_born_ns: int | None = None
    mount: MountBinding | None = None
    inside: tuple[bytes, ...] = ()

    def same_as(self, other: Identity) -> bool:
        """Return whether both are the identity of one directory.

        The result is False if there is nothing to compare but inode numbers.
        """
        if (self.filesystem, self.inode, self.mount) != (
            other.filesystem,
            other.inode,
            other.mount,
        ):
            return False
        if self.handle is not None and other.handle is not None:
            return self.handle == other.handle
        if self.born_ns is not None or other.born_ns is not None:
            return self.born_ns == other.born_ns
        return self.mount is not None

    @property
    def is_its_path(self) -> bool:
        """Return whether only its path distinguishes the directory from others in its mount."""
        return self.mount is not None and self.handle is None and self.born_ns is None

    def holds_for(self, seen: Identity) -> bool:
        """Return whether an approval of this directory also covers the directory `seen`."""
        return self.same_as(seen) and self.keeps_git(seen) and self.keeps_mounts(seen)

    def keeps_mounts(self, seen: Identity) -> bool:
        """Return whether nothing was mounted inside that was not there before."""
        return not seen.inside or set(self.inside).issuperset(seen.inside)

    def keeps_git(self, seen: Identity) -> bool:
        """Return whether `seen` has its git data in the same place as this directory.

        This allows a `git init` in the meantime. If the target of a `.git` file cannot be read,
        the result is True, because the target may be out of reach for some time.
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
        """Return whether `seen` certainly has the same `.git` file."""
        return self.git_born_ns is not None and self.git_born_ns == seen.git_born_ns


def has_lost_git(identity: Identity | None) -> bool:
    """Return whether a folder has a `.git` that leads elsewhere, and nothing can be read there.

    So it is unknown to which repository the folder belongs.
    """
    return identity is not None and identity.git is GitEntry.FILE and identity.git_target is None


class Inspection(Struct, frozen=True, gc=False):
    """What a look into a project found: its risks, and the address that it claims.

    * `state`: bytes that change with the names and the times of what the look reads.
    * `origin`: the claimed place; see `rootsd.core.origins`.
    * `risk`: the risks in words; empty if there are none.
    * `files`: each file that runs by itself, or looks like one with secrets, with a text that
      changes with its content. For a secret, it is the name that counts.
    """

    state: bytes
    origin: str | None
    risk: str
    files: tuple[tuple[str, str], ...]


class ObservedState(Struct, frozen=True, gc=False):
    """The result of the last observation of a project on the disk.

    There is no "last seen" time: with it, each scan would change and save every project.

    * `main_checkout`: set for a linked git worktree if its repository links back to it.
    * `hazard`: set if the folder may not be published now, for example because others can write to
      a folder above it.
    * `named`: whether a person named the folder as a project. It then needs no marker.
    * `inspection`: the last look into it, if there was one: it is approved, or a rule needs it.
    * `name`: the name that lists show until an approval freezes one. It stays from the end of the
      scan that found the project, so that no namesake changes it.
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
    inspection: Inspection | None = None
    name: str | None = None


class Expiry(Struct, frozen=True, gc=False):
    """The end of an approval.

    `since_boot_ns` is the end in nanoseconds since the machine started; `boot` identifies that
    start. This clock continues while the machine sleeps, and nobody can set it. `at` is the same
    moment on the wall clock, for people, and for use after the machine restarts. See
    `rootsd.core.expiry`.
    """

    at: datetime
    boot: str
    since_boot_ns: int


class SessionKey(Struct, frozen=True, gc=False):
    """The key of one session of a client. See `rootsd.core.session_keys`.

    `label` is the name of the client's program, for people.
    """

    id: str
    label: str


class Decision(Struct, frozen=True, gc=False):
    """A decision of a person. An approval binds to `identity`, a denial to the path alone.

    * `number`: orders the approvals of all projects; a later approval has a higher number. It is 0
      for a denial.
    * `since_ns`: the time since which the project is approved without a break, in nanoseconds
      since the epoch, if that is not `at`. Only worktrees that were born later inherit the
      approval without confirmation.
    * `session`: the one session that the approval is for and ends with, or None for all sessions.
    * `shared_git`: the undecided checkout whose Git directory the approval includes for programs
      behind the wall, or None. See `rootsd.core.shared_git`.
    * `proposes`: whether the same command proposed the folder, which no scan had found. To undo
      the decision then also takes the proposal back.
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
    shared_git: Identity | None = None
    proposes: bool = False


class Grant(Struct, frozen=True, gc=False):
    """An approval by a rule, or by an approved main checkout. It binds to the current identity.

    A grant counts only while the rule or the approval of the main checkout is in force: see
    `rootsd.core.decide.judge`. If a rule gave the grant, `since_ns` has the same meaning as in a
    `Decision`. If a main checkout gave it, `since_ns` is that of the main checkout's approval. So
    a later approval of the main checkout does not make an old grant count again.
    """

    actor: Actor
    identity: Identity
    at: datetime
    since_ns: int | None = None


class Lapse(Struct, frozen=True, gc=False):
    """An approval that was lost. The next order clears it.

    * `by`: the kind of actor that gave the approval, if restoring it depends on that. If there
      were several, a person has priority.
    * `expires`, `number`: those of the approval.
    * `for_session`: whether the approval was for one session. It is then never restored.
    """

    reason: LapseReason
    at: datetime
    by: ActorKind | None = None
    expires: Expiry | None = None
    number: int = 0
    for_session: bool = False


class Ruling(Struct, frozen=True, gc=False):
    """Everything that was decided about one project. An approval freezes the name.

    `kept_access` is the access of an approval that lapsed. If a rule grants the project again, it
    gives no more than that. `origin` is the repository's address when a person approved the
    project. It helps people to recognize the project. No decision depends on it, because the
    author of the project chose it. `by_person` says whether a person ever approved, denied,
    confirmed, or renamed this very project. If nobody did, a worktree that is gone is not kept.
    `files` are those of the inspection that the approval was based on, and those that a person
    accepted later, so one file may have several contents. It is None until there was one.
    """

    decision: Decision | None = None
    grants: tuple[Grant, ...] = ()
    lapse: Lapse | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    kept_access: Access = Access.READ_WRITE
    origin: str | None = None
    by_person: bool = False
    files: tuple[tuple[str, str], ...] | None = None

    @property
    def access(self) -> Access:
        """Return the access that clients are asked to limit themselves to."""
        return self.kept_access if self.decision is None else self.decision.access

    @property
    def is_lapsed(self) -> bool:
        """Return whether an approval was lost before its planned end."""
        ends = (LapseReason.EXPIRED, LapseReason.SESSION_ENDED)
        return self.lapse is not None and self.lapse.reason not in ends

    @property
    def approves(self) -> bool:
        """Return whether there is an approval or a grant, even for another identity."""
        decision = self.decision
        return bool(self.grants) or (decision is not None and decision.verdict is Verdict.APPROVED)


UNDECIDED = Ruling()


class Project(Struct, frozen=True, gc=False):
    """A folder that discovery found or that a person named. `path` is its key.

    A project of kind `ProjectKind.URI` has no folder; its `path` is the URI. `id` is short and
    never changes.
    """

    path: bytes
    id: str
    observed: ObservedState
    ruling: Ruling = UNDECIDED

    @property
    def name(self) -> str | None:
        """Return the name that an approval froze, or else the kept one; None if both lack."""
        return self.ruling.name or self.observed.name

    @property
    def changed_files(self) -> dict[str, str]:
        """Return the files that are new or changed since the approval, each with that word."""
        seen, accepted = self.observed.inspection, self.ruling.files
        if seen is None or accepted is None or accepted == seen.files:  # quick, for most projects
            return {}
        known, names = set(accepted), dict(accepted)
        return {
            file[0]: "changed" if file[0] in names else "new"
            for file in seen.files
            if file not in known
        }

    @property
    def accepted_files(self) -> tuple[tuple[str, str], ...] | None:
        """Return the `files` of the ruling if a person accepts what the last look found, too."""
        accepted, seen = self.ruling.files, self.observed.inspection
        if seen is None or accepted == seen.files:
            return accepted
        return tuple(sorted({*accepted, *seen.files})) if accepted else seen.files


class Rule(Struct, frozen=True):
    """A verdict for all paths that match `pattern`; see `rootsd.core.rules`.

    A lapsed approve rule has the verdict PENDING and decides nothing. With an `origin` or a
    `risk`, an approve rule covers only projects whose last inspection fits.
    """

    number: int
    pattern: bytes
    verdict: Verdict
    actor: Actor
    at: datetime
    origin: str | None = None
    risk: RiskLimit | None = None

    @property
    def conditions(self) -> str:
        """What it requires besides its pattern, in parentheses; else empty."""
        found = [f"{key} {value}" for key in ("origin", "risk") if (value := getattr(self, key))]
        return f" ({', '.join(found)})" if found else ""


class PublishedRoot(Struct, frozen=True, gc=False):
    """A published project as clients see it, independent of MCP.

    `main_checkout` is set for a linked git worktree. `approval` is the number of the person's
    approval, or 0 if a rule or a main checkout approved the project. `session` is the id of the
    one session that sees the root, or None if all sessions see it.
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
        """Return the URI of the root. It is not stored, because each would take 110 bytes."""
        return text_of(self.path) if self.kind is ProjectKind.URI else to_uri(self.path)


class PublishedSet(Struct, frozen=True):
    """The published roots at one revision, sorted by name.

    `focus` does not remove roots from the set. It narrows the view of sessions without a scope.
    """

    revision: int
    roots: tuple[PublishedRoot, ...]
    focus: Focus = NO_FOCUS


DEFAULT_DEPTH = 4
"""How many levels below a parent a project may be, unless the parent says otherwise."""


class NestedPolicy(StrEnum):
    """What rootsd proposes below a project.

    NONE: nothing. VCS: repositories. MEMBERS: repositories and the members of workspaces.
    """

    NONE = "none"
    VCS = "vcs"
    MEMBERS = "members"


class MountPolicy(StrEnum):
    """Which of the file systems that are mounted inside a parent rootsd looks into.

    NONE: none. LOCAL: those of this machine. ALL: also those of other machines and programs.
    """

    NONE = "none"
    LOCAL = "local"
    ALL = "all"


class Parent(Struct, frozen=True):
    """A folder that the user configured. rootsd discovers and watches the projects in it.

    * `depth`: how many levels below the parent a project may be.
    * `skip`: names or globs of folders that a walk never enters, besides the built-in ones.
    * `project_files`: names and `*.ENDING` patterns that also make a folder a project. A leading
      `!` removes one from the built-in list.
    """

    path: bytes
    depth: int = DEFAULT_DEPTH
    skip: tuple[bytes, ...] = ()
    nested: NestedPolicy = NestedPolicy.NONE
    project_files: tuple[bytes, ...] = ()
    mounts: MountPolicy = MountPolicy.NONE


class ScanCoverage(StrEnum):
    """How much of a parent a scan could read."""

    FULL = "full"
    PARTIAL = "partial"
    NONE = "none"
