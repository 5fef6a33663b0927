"""The wall on the control socket: its settings, the roots to mount, and what wardens report.

A warden follows the roots with `rootsd.wire.follow`. This registers its program for as long as the
connection lives.
"""

from __future__ import annotations

from typing import ClassVar, TypedDict

from rootsd.core.wall import WallEngine
from rootsd.wire.request import ControlRequest, EmptyResult


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


class WallProgram(TypedDict):
    """A program that is about to run behind the wall."""

    pid: int
    """The process id of its front, or of the run proxy."""
    program: str
    """The name of the program."""
    engine: WallEngine
    """What enforces the wall."""
    landlock: int
    """The version of Landlock in use, or 0 for none."""
    network: bool
    """Whether it may use the network."""


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
