"""The ids of requests that go to the server more than once."""

from __future__ import annotations

from rootsd.proxy.run.input_required import InputRetries, InputRetry, RootsAnswerer
from rootsd.wire.jsonrpc import Request


def a_round(id_: int) -> InputRetry:
    return InputRetry(Request(id_, "tools/call"), "{}", RootsAnswerer.PROXY)


def test_a_request_keeps_its_id_until_it_is_repeated() -> None:
    rounds = InputRetries()
    first = a_round(7)
    rounds.sent(first, 7)
    assert not rounds.has_alias(7)
    assert rounds.cancel(7) == 7
    assert rounds.take(7) is first
    assert rounds.take(7) is None


def test_a_repeated_request_is_cancelled_under_the_servers_id() -> None:
    rounds = InputRetries()
    rounds.sent(a_round(7), "again")
    assert rounds.has_alias("again")
    assert rounds.cancel(7) == "again"
    assert rounds.cancel("7") == "7", "another id, and not ours"


def test_a_deferred_request_is_cancelled_without_the_server() -> None:
    rounds = InputRetries()
    retry = a_round(7)
    rounds.defer(retry)
    assert rounds.is_deferred(retry)
    assert rounds.cancel(7) is None
    assert not rounds.is_deferred(retry)


def test_clear_forgets_all_requests() -> None:
    rounds = InputRetries()
    rounds.sent(a_round(7), "again")
    rounds.defer(a_round(8))
    rounds.clear()
    assert rounds.take("again") is None
    assert rounds.cancel(8) == 8
