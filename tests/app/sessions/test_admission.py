"""The caps on connections, and what is said where the system allows fewer."""

from __future__ import annotations

import socket

import pytest
from anyio.abc import SocketStream

from rootsd.app.sessions import admission
from rootsd.app.sessions.admission import Admission
from rootsd.host.config import SessionCaps
from rootsd.host.ipc.accept import Acceptor, Heard
from rootsd.host.ipc.peer import Peer


async def nobody(_: SocketStream, __: Peer, ___: Heard) -> None:
    """Handles nothing: no connection is made here."""


@pytest.mark.parametrize(("allowed", "notes"), [(10_000, 0), (5_512, 0), (5_511, 1)])
def test_caps_hold_and_fewer_descriptors_than_they_need_are_said(
    monkeypatch: pytest.MonkeyPatch, allowed: int, notes: int
) -> None:
    monkeypatch.setattr(admission, "allow_descriptors", lambda _: allowed)
    with socket.socket(socket.AF_UNIX) as listening:
        acceptor = Acceptor(listening, nobody)
        admitted = Admission(acceptor, SessionCaps(5_000, 7))
        assert (acceptor.caps.total, acceptor.caps.per_process) == (5_000, 7)
        assert len(admitted.degraded()) == notes
        admitted.cap(SessionCaps(9, 3))
        assert (acceptor.caps.total, acceptor.caps.per_process) == (9, 3)
        assert admitted.degraded() == []
