"""Tell whether a process is behind a wall, and behind which one, by its ancestors.

Each wall has a process outside, the waiter, between its owner and its programs. No program can
change the waiter's name, and none can leave the processes below it. So a process is behind a wall
if one of its ancestors has that name. The owner of the wall is the parent of the outermost one,
because a program may give the same name to a process of its own.

A chain that does not reach the first process of the system says nothing. A program can make one,
with hundreds of processes in a row, or by a process that ends when it has connected.
"""

from __future__ import annotations

from enum import Enum, auto

from msgspec import Struct

from rootsd.core.processes import Process, ProcessChain
from rootsd.core.wall import WAITER_NAME

_FIRST = 1  # the first process of a system has this pid, and its parent is 0


class PeerPlace(Enum):
    """Where a process is."""

    OUTSIDE = auto()
    """Behind no wall."""
    BEHIND_WALL = auto()
    HIDDEN = auto()
    """Its ancestors cannot be found, which a program can cause."""
    UNSEEN = auto()
    """Nobody could look, because the helper process does not answer, or the system has no pids for
    it.
    """


class WallPeer(Struct, frozen=True):
    """Where a peer is. `owner` is the owner of its wall, if the peer is behind one."""

    place: PeerPlace
    owner: Process | None = None


UNSEEN_PEER = WallPeer(PeerPlace.UNSEEN)


def wall_peer(chain: ProcessChain) -> WallPeer:
    """Return where the first process of `chain` is."""
    waiters = [number for number, each in enumerate(chain) if each.name == WAITER_NAME]
    if waiters and waiters[-1] > 0:
        above = waiters[-1] + 1
        return WallPeer(PeerPlace.BEHIND_WALL, chain[above] if above < len(chain) else None)
    if not chain or chain[-1].parent > _FIRST:
        return WallPeer(PeerPlace.HIDDEN)
    return WallPeer(PeerPlace.OUTSIDE)
