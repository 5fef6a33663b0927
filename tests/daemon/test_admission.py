"""The limits on connections, and the warning where the system allows fewer."""

from __future__ import annotations

import socket

import pytest
from anyio.abc import SocketStream

from rootsd.config.schema import SessionsTable
from rootsd.daemon import admission
from rootsd.daemon.admission import AdmissionControl
from rootsd.net.acceptor import Acceptor, MarkActive, RefusalReason
from rootsd.net.unix_socket import Peer


async def nobody(_: SocketStream, __: Peer, ___: MarkActive) -> None:
    """Handles nothing: no connection is made here."""


@pytest.mark.parametrize(("allowed", "notes"), [(10_000, 0), (5_512, 0), (5_511, 1)])
def test_limits_hold_and_a_low_descriptor_limit_gives_a_warning(
    monkeypatch: pytest.MonkeyPatch, allowed: int, notes: int
) -> None:
    monkeypatch.setattr(admission, "raise_descriptor_limit", lambda _: allowed)
    with socket.socket(socket.AF_UNIX) as listening:
        acceptor = Acceptor(listening, nobody)
        control = Acceptor(listening, nobody)
        admitted = AdmissionControl(acceptor, control, SessionsTable(5_000, 7))
        assert control.limits.total <= 256, "what is left of the descriptors"
        assert (acceptor.limits.total, acceptor.limits.per_process) == (5_000, 7)
        assert len(admitted.degraded()) == notes
        admitted.cap(SessionsTable(9, 3))
        assert (acceptor.limits.total, acceptor.limits.per_process) == (9, 3)
        assert admitted.degraded() == []


def test_closed_connections_of_both_sockets_are_counted_together() -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        mcp, control = Acceptor(listening, nobody), Acceptor(listening, nobody)
        admitted = AdmissionControl(mcp, control, SessionsTable(5, 3))
        mcp.refused.update({RefusalReason.FULL: 2, RefusalReason.GONE: 9})
        control.refused.update({RefusalReason.FULL: 1, RefusalReason.STRANGER: 1})
        assert admitted.closed() == {"too many in all": 3, "of another user": 1}
