"""Control requests of wardens: follow the view of a confined program, and report about it.

A warden keeps its connection open. `confine` registers the program until the connection ends. Its
answer has the whole view; each later change is a `view` notification on the same connection. After
a reconnect, the answer has the whole view again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypedDict

from rootsd.core.wall import WallEngine
from rootsd.wire.hello import ResumeStateItem
from rootsd.wire.request import ControlRequest, EmptyResult

WALL_VERSION = 1
VIEW_METHOD = "view"
"""The notification that carries a change of the view."""


class IdentityItem(TypedDict):
    """The identity of a folder. `filesystem` and `handle` are hexadecimal; see
    `rootsd.core.model.Identity`.
    """

    filesystem: str
    inode: int
    handle: str | None
    born_ns: int | None
    owner: int


class WallRootItem(TypedDict):
    """A root to mount.

    * `access`: `read` or `read-write`.
    * `identity`: of the folder that was approved.
    * `denied`: the folders inside to mask, sorted; none of them lies inside another.
    * `shared_git`: the checkout whose Git directory the root uses, or null if it may not be shown.
      The warden checks that this directory points back to the root.
    * `shared_git_identity`: of that checkout.
    * `git_access`: whether the root may use a Git directory outside, and why, for people. Empty if
      it uses none.
    * `git_target`: the identity of the directory that the `.git` file of the root leads to.
    * `withheld`: whether MCP clients do not get the root, because it holds a denied project.
    """

    path: str
    name: str
    access: str
    identity: IdentityItem
    denied: list[str]
    shared_git: str | None
    shared_git_identity: IdentityItem | None
    git_access: str
    git_target: IdentityItem | None
    withheld: bool


class WallViewItem(TypedDict):
    """A change of the roots that a confined program may reach.

    * `number`: 0 in the answer to `confine`, which has all roots. It grows by 1 with each
      change. A warden that misses a number must connect again.
    * `revision`: of the published set. Two changes may have the same one.
    * `roots`: those that are new, or differ from the root of the same path before.
    * `removed`: the paths of those that are gone.
    """

    number: int
    revision: int
    roots: list[WallRootItem]
    removed: list[str]


class WallSettingsItem(TypedDict):
    """The table `[confine]` of the configuration, with absolute paths."""

    read: list[str]
    write: list[str]
    keep: list[str]
    hide: list[str]
    protect: bool
    network: bool
    on_revoke: str
    default: bool


class ConfineResult(TypedDict):
    """The start of a subscription.

    `id` names the confined program. A warden that connects again sends the two values of `start`
    as `anchor` and `approvals`, so that the program keeps its workspace. `start` is null for a
    scope without a folder.
    """

    version: int
    rootsd: str
    id: str
    start: ResumeStateItem | None
    settings: WallSettingsItem
    view: WallViewItem


@dataclass(frozen=True, slots=True)
class ConfineRequest(ControlRequest):
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


@dataclass(frozen=True, slots=True)
class ReportConfinedRequest(ControlRequest):
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
    """A confined program. All texts are safe to show.

    * `pid`: of the program, and `warden` of its warden. `pid` is 0 while the program starts.
    * `scope`: the words of the scope; none for every root.
    * `roots`: the number of roots that it reaches, `read_only` of them read-only and `masked` with
      a masked folder. It reaches `waiting` more after its next start.
    * `holders`: the processes that still have a file open in a folder that was taken away.
    * `not_shown`: the roots that it should reach and that cannot be mounted, with the reason.
    """

    id: str
    name: str
    program: str
    pid: int
    warden: int
    engine: str
    landlock: int
    network: bool
    scope: list[str]
    since: str
    roots: int
    read_only: int
    masked: int
    waiting: int
    stays_open: list[str]
    holders: list[str]
    not_shown: list[str]
