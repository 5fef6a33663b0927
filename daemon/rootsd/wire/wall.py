"""Control requests of wardens: follow the view of a confined program, and report about it.

A warden keeps its connection open. `confine` registers the program until the connection ends. Its
answer has the whole view; each later change is a `view` notification on the same connection. After
a reconnect, the answer has the whole view again.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, TypedDict

from rootsd.core.wall import WallEngine, WallSettings
from rootsd.wire.hello import ResumeStateItem
from rootsd.wire.request import ControlRequest, EmptyResult

WALL_VERSION = 1
VIEW_METHOD = "view"
"""The notification that carries a change of the view."""


class IdentityItem(TypedDict):
    """The identity of a folder; see `rootsd.core.model.Identity`."""

    filesystem: str
    """The UUID or the id of the file system, in hexadecimal."""
    inode: int
    """The number of the inode, or 0 if it does not count on the file system."""
    handle: str | None
    """The kernel's file handle in hexadecimal, or null."""
    born_ns: int | None
    """The birth time in nanoseconds since 1970, or null."""
    owner: int
    """The user id of the owner."""
    device: int | None
    """The device number of the file system if the identity is bound to its mount, else null."""


class WallRootItem(TypedDict):
    """A root to mount."""

    path: str
    """Its path."""
    name: str
    """Its name."""
    access: str
    """A value of `Access`."""
    identity: IdentityItem
    """The identity of the folder that was approved."""
    denied: list[str]
    """The folders inside to mask, sorted. None of them lies inside another."""
    shared_git: str | None
    """The checkout whose Git directory the root uses, or null if it may not be shown. The warden
    checks that this directory points back to the root.
    """
    shared_git_identity: IdentityItem | None
    """The identity of that checkout, or null."""
    git_access: str
    """Whether the root may use a Git directory outside, and why, for people. Empty if it uses
    none.
    """
    git_target: IdentityItem | None
    """The identity of the directory that the `.git` file of the root leads to, or null."""
    ends_ns: int | None
    """The end of its approval, in nanoseconds since the machine started (CLOCK_BOOTTIME), or null.
    While no daemon answers, the warden takes the root away then.
    """
    withheld: bool
    """Whether MCP clients do not get the root, because it holds a denied project."""


class WallViewItem(TypedDict):
    """A change of the roots that a confined program may reach."""

    number: int
    """0 in the answer to `confine`, which has all roots. It grows by 1 with each change. A warden
    that misses a number must connect again.
    """
    revision: int
    """The revision of the published set. Two changes may have the same one."""
    roots: list[WallRootItem]
    """The roots that are new, or differ from the root of the same path before."""
    removed: list[str]
    """The paths of the roots that are gone."""
    denied: list[str] | None
    """All denied folders, sorted, or null if they are those of the message before. None of them
    lies inside another. The warden masks what system files, toolchains, and caches show of them.
    """


class ConfineResult(NamedTuple):
    """The start of a subscription."""

    version: int
    """The version of this request and its notifications."""
    rootsd: str
    """The version of the daemon."""
    id: str
    """The id of the confined program."""
    start: ResumeStateItem | None
    """A warden that connects again sends these two values as `anchor` and `approvals`, so that the
    program keeps its workspace. Null for a scope without a folder.
    """
    settings: WallSettings
    """The user's settings for the wall."""
    view: WallViewItem
    """All roots."""


class ConfineRequest(ControlRequest, frozen=True):
    """Register a confined program, and follow its view: `ConfineResult`, then `view`
    notifications with a `WallViewItem` each.

    `pid` is 0 while the program has not started. `landlock` is the version in use, 0 for none.
    `only`, `tags`, `focus`, `cwd` and `workspace` are the scope, as in `rootsd/hello`; without
    them, the scope is every root. `approvals` is -1 unless the warden continues an earlier
    subscription. `stays_open` lists sentences about what the wall does not close.
    """

    method: ClassVar[str] = "confine"
    result: ClassVar[type] = ConfineResult

    name: str
    pid: int = 0
    program: str = ""
    engine: WallEngine = WallEngine.NAMESPACES
    landlock: int = 0
    network: bool = True
    stays_open: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    cwd: str | None = None
    workspace: str | None = None
    anchor: str | None = None
    approvals: int = -1
    focus: bool = False


class ReportConfinedRequest(ControlRequest, frozen=True):
    """Update the entry of the confined program of this connection; null keeps a value.

    `holders` lists the processes that still have a file open in a folder that was taken away, one
    line each. `not_shown` lists the roots of the view that cannot be mounted, with the reason.
    `roots`, `read_only` and `masked` count the roots that the program reaches, and `waiting` those
    that it reaches only after its next start.
    """

    method: ClassVar[str] = "report_confined"
    result: ClassVar[type] = EmptyResult

    pid: int | None = None
    engine: WallEngine | None = None
    landlock: int | None = None
    network: bool | None = None
    stays_open: tuple[str, ...] | None = None
    holders: tuple[str, ...] | None = None
    not_shown: tuple[str, ...] | None = None
    roots: int | None = None
    read_only: int | None = None
    masked: int | None = None
    waiting: int | None = None


class ConfinedProgramItem(TypedDict):
    """A program behind the wall. All texts are safe to show."""

    id: str
    """Its id."""
    name: str
    """Its name, which `--name` sets."""
    program: str
    """The name of the program."""
    pid: int
    """Its process id, or 0 while it starts."""
    warden: int
    """The process id of its warden."""
    engine: str
    """A value of `WallEngine`."""
    landlock: int
    """The version of Landlock in use, or 0 for none."""
    network: bool
    """Whether it may use the network."""
    scope: list[str]
    """The words of its scope. Empty for every root."""
    since: str
    """When it started."""
    roots: int
    """The number of roots that it reaches."""
    read_only: int
    """How many of them are read-only."""
    masked: int
    """How many of them have a masked folder."""
    waiting: int
    """How many more it reaches after its next start."""
    stays_open: list[str]
    """What the wall does not close, one sentence each."""
    holders: list[str]
    """The processes that still have a file open in a folder that was taken away."""
    not_shown: list[str]
    """The roots that it should reach and that cannot be mounted, with the reason."""
