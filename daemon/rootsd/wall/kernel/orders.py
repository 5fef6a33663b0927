"""The protocol between a warden and its owner: lines of JSON over a socket pair. Pure.

The owner sends *orders*, and the warden answers each one with a *report*, in order, after the
kernel has applied it. Each line is one record. `rootsd.core.record` encodes and decodes them.

An owner that tells a program about roots keeps this rule: after a grant, wait for the report and
then notify the program; for a revoke, notify the program first and then send the order.

A warden that follows the daemon itself gets no orders about roots, and reports to the daemon. It
sends `PauseNews` to its owner whenever it has stopped the programs, or lets them continue, and
`RootNews` whenever the programs see other roots. Another warden sends `ChangeNews`.
"""

from __future__ import annotations

from contextlib import suppress
from enum import Enum

from rootsd.core.mount_plan import ConfinedRoot, RemovedRoot
from rootsd.core.quick_tuple import NamedTuple
from rootsd.core.record import BadRecord, from_line

MAX_LINE_BYTES = 1 << 28


class OrderKind(Enum):
    """How the roots of an order relate to those before it."""

    SET = "set"
    """The roots are these, and no others."""
    ADD = "add"
    """Add or replace these roots."""
    REMOVE = "remove"
    CONTINUE = "continue"
    """Changes no root. It lets stopped programs run for a while, for a signal of the user."""


class PauseState(Enum):
    """Whether the programs of a wall run."""

    RUNNING = "running"
    STOPPED = "stopped"


class PauseNews(NamedTuple):
    """The programs were stopped, or continue. A stop has a reason for people, and a command."""

    state: PauseState
    why: str = ""
    remedy: str = ""


class RootNews(NamedTuple):
    """Roots that programs no longer see, or see now."""

    gone: tuple[RemovedRoot, ...]
    new: tuple[bytes, ...]


class ChangeNews(NamedTuple):
    """Files that run outside have changed in roots. `refused` is all that git inside has asked of
    the relay in vain. Nothing is made safe to show.
    """

    names: tuple[str, ...]
    refused: tuple[str, ...] = ()


class WardenOrder(NamedTuple):
    """A change that an owner orders. `paths` are for REMOVE, `roots` for the others.

    `denied` are the folders that the base of the view must not show, or None if they stay the
    same.
    """

    number: int
    kind: OrderKind
    roots: tuple[ConfinedRoot, ...] = ()
    paths: tuple[bytes, ...] = ()
    denied: frozenset[bytes] | None = None


class FailedRoot(NamedTuple):
    """A root that could not be shown, and why."""

    path: bytes
    reason: str


class AppliedChange(NamedTuple):
    """The result of a change of the roots.

    `restored` are the roots that the warden has shown by itself after an earlier failure.

    `lost` and `waiting` are for an engine that cannot change a running program. With `lost`, the
    warden ends now, and its programs with it, because they may no longer have these roots.
    Programs see the roots in `waiting` only when they are started again, with another warden.
    """

    failed: tuple[FailedRoot, ...] = ()
    holders: tuple[str, ...] = ()
    lost: tuple[bytes, ...] = ()
    waiting: tuple[bytes, ...] = ()
    restored: tuple[bytes, ...] = ()


class WardenReport(NamedTuple):
    """The state after an order: how many roots are visible, and what the change has caused.

    With `number` 0, it answers no order: a root went away because it can no longer be protected.
    `failed` lists all roots that are not visible although the owner ordered them, also earlier.
    """

    number: int
    shown: int = 0
    read_only: int = 0
    masked: int = 0
    change: AppliedChange = AppliedChange()


def decode_news(line: bytes) -> WardenReport | PauseNews | RootNews | ChangeNews:
    """Return what a warden sent. Raises BadRecord."""
    with suppress(BadRecord):
        return from_line(WardenReport, line)
    with suppress(BadRecord):
        return from_line(PauseNews, line)
    with suppress(BadRecord):
        return from_line(ChangeNews, line)
    return from_line(RootNews, line)
