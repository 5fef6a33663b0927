"""The wall on the control socket: what wardens register and report.

A warden follows the roots with `rootsd.wire.follow`. This registers its program for as long as the
connection lives.
"""

from __future__ import annotations

from typing import ClassVar, TypedDict

from rootsd.core.wall import WallEngine
from rootsd.wire.reported_roots import ReportedRoots
from rootsd.wire.request import ApplyMode, ControlRequest, EmptyResult


class WallProgram(TypedDict):
    """A program that runs behind the wall, or is about to."""

    pid: int
    """The process id of its front or of the run proxy, or 0 while it starts."""
    program: str
    """The name of the program."""
    engine: WallEngine
    """What enforces the wall."""
    landlock: int
    """The version of Landlock in use, or 0 for none."""
    network: bool
    """Whether it may use the network."""


class ConfinedState(TypedDict):
    """What a program behind the wall reaches now, as its warden reports it."""

    roots: int
    """The number of roots that it reaches."""
    read_only: int
    """How many of them are read-only."""
    masked: int
    """How many of them have a masked folder."""
    waiting: int
    """How many more it reaches after its next start."""
    holders: list[str]
    """The processes that still have a file open in a folder that was taken away, one line each."""
    not_shown: list[str]
    """The roots that it should reach and that cannot be mounted, with the reason."""


class GivenReport(TypedDict):
    """What became of files that a person gave to a program."""

    folder: str
    """The name of the folder with the copies."""
    problems: list[str]
    """Why the program does not see a file, in the order of the files; empty if it does."""


class GiveRequest(ControlRequest, frozen=True):
    """Show copies of files to a program behind the wall, at `paths`. `id` is its id.

    The copies are in the private folder of the wall, in `given/FOLDER`. They are called 0, 1, and
    so on. A dry run looks only for the program, and needs no copies.
    """

    method: ClassVar[str] = "give"
    result: ClassVar[type] = GivenReport

    id: str
    folder: str
    paths: tuple[str, ...]
    effect: ApplyMode = ApplyMode.APPLY


class AddedRootItem(TypedDict):
    """A root that a program behind the wall gets."""

    program: str
    """The name of the program."""
    name: str
    """The name of the root."""
    path: str
    """Its path."""
    result: str
    """`added`, `would be added`, or why the program does not see it yet."""


class AddedRoots(TypedDict):
    """The roots that programs behind the wall get."""

    items: list[AddedRootItem]
    """The roots, for each program."""


class AddRootsRequest(ControlRequest, frozen=True):
    """Add approved roots to the scope of a running program behind the wall, by their `names`.

    `id` is the program's id. An empty one means all programs that the caller has started behind
    the wall. That needs no person, because the caller could have named the roots then.
    """

    method: ClassVar[str] = "add_to_session"
    result: ClassVar[type] = AddedRoots

    names: tuple[str, ...]
    id: str
    effect: ApplyMode = ApplyMode.APPLY


class ReportConfinedRequest(ControlRequest, frozen=True):
    """Update the entry of the confined program of this connection; null keeps a value.

    `stays_open` is what the wall does not close, one sentence each. `told` has the roots that an
    MCP server got last. `opened` lists folders that its client has open and that are not approved.
    They are proposed. `changed` names files that run outside and that the program has changed just
    now. `refused` is all that Git asked of rootsd in vain. `applied` is the number of the last
    `FeedChange` that the wall has applied.
    """

    method: ClassVar[str] = "report_confined"
    result: ClassVar[type] = EmptyResult

    network: bool | None = None
    stays_open: tuple[str, ...] | None = None
    state: ConfinedState | None = None
    told: ReportedRoots | None = None
    opened: tuple[str, ...] = ()
    given: GivenReport | None = None
    changed: tuple[str, ...] = ()
    refused: tuple[str, ...] | None = None
    applied: int | None = None


class ConfinedProgramItem(WallProgram, ConfinedState):
    """A program behind the wall. All texts are safe to show."""

    id: str
    """Its id."""
    name: str
    """Its name, which `--name` sets."""
    warden: int
    """The process id of its warden."""
    scope: list[str]
    """The words of its scope. Empty for every root."""
    since: str
    """When it started."""
    stays_open: list[str]
    """What the wall does not close, one sentence each."""
    refused: list[str]
    """What Git behind the wall asked for and rootsd refused, such as a push to another place."""
