"""Where a process is follows from its ancestors alone."""

from __future__ import annotations

import pytest

from rootsd.core.processes import Process
from rootsd.core.wall import WAITER_NAME
from rootsd.core.wall_peers import PeerPlace, WallPeer, wall_peer


def chain(*names: bytes, top: int = 1) -> tuple[Process, ...]:
    """Return a process and its ancestors with these names. `top` is the parent of the last one."""
    last = len(names) + 1
    return tuple(
        Process(
            pid=number + 10,
            started=0,
            parent=top if number == last - 1 else number + 11,
            name=name,
        )
        for number, name in enumerate(names, 1)
    )


def test_the_owner_is_above_the_outermost_waiter() -> None:
    """Init has the name of the waiter, and a program can take it."""
    peer = chain(b"sh", WAITER_NAME, b"sh", WAITER_NAME, WAITER_NAME, b"rootsd", b"bash")
    assert wall_peer(peer) == WallPeer(PeerPlace.BEHIND_WALL, peer[5])


@pytest.mark.parametrize(
    ("peer", "place"),
    [
        (chain(b"sh", b"bash"), PeerPlace.OUTSIDE),
        (chain(b"sh", b"bash", top=0), PeerPlace.OUTSIDE),
        (chain(WAITER_NAME, b"bash"), PeerPlace.OUTSIDE),
        (chain(b"sh", b"bash", top=77), PeerPlace.HIDDEN),
        ((), PeerPlace.HIDDEN),
        (chain(b"sh", WAITER_NAME, top=1), PeerPlace.BEHIND_WALL),
    ],
)
def test_a_chain_that_is_cut_off_says_nothing(peer: tuple[Process, ...], place: PeerPlace) -> None:
    assert wall_peer(peer).place is place
