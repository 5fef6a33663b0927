"""The outbox of a session."""

from __future__ import annotations

from rootsd.proxy.run.outbox import Outbox


def test_two_outboxes_share_nothing() -> None:
    full, empty = Outbox(), Outbox()
    full.to_client += b"x"
    full.to_server += b"x"
    full.proposals.append(b"/x")
    assert [len(each) for each in (empty.to_client, empty.to_server, empty.proposals)] == [0] * 3
    assert (empty.roots_queries, empty.restart_requested) == (0, False)
