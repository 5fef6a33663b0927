"""From the server to the client: whole lines, and long ones as they come."""

from __future__ import annotations

import pytest

from rootsd.core.errors import RootsdError
from rootsd.proxy.run.loop import ClientOutput
from support.bridges import notice, reply, request
from support.relaying import API, Desk, call, call_2026

LONG = b"x" * 200_000


class Way:
    """A downstream answered_by client takes so many bytes at a time."""

    def __init__(self) -> None:
        self.desk = Desk(API)
        self.desk.shake_hands()
        self.desk.list_roots()
        self.heard = bytearray()
        self.room = 1 << 30
        self.down = ClientOutput(self.desk.session, self.desk.out, self._write)

    def _write(self, data: bytes | bytearray) -> int:
        if self.room < 0:
            raise BrokenPipeError
        taken = data[: self.room]
        self.heard += taken
        return len(taken)

    def server(self, *parts: bytes) -> bytes:
        """The server says these parts; all that the client has heard since the last time."""
        for part in parts:
            self.down.take(part)
            self.down.flush()
        self.down.flush()
        heard = bytes(self.heard)
        self.heard.clear()
        return heard


@pytest.fixture
def way() -> Way:
    return Way()


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        (b'{"jsonrpc": "2.0", "id": 7, "result": "', b'"}'),
        (b'{"jsonrpc":"2.0","id":7,"result":"', b'"}'),
        (b'{"result":"', b'","jsonrpc":"2.0","id":7}'),
    ],
)
def test_a_long_answer_goes_on_before_its_end_is_there(way: Way, head: bytes, tail: bytes) -> None:
    way.desk.client(call(7))
    begun = way.server(head + LONG)
    assert begun == head + LONG
    assert way.down.is_mid_line
    assert way.server(LONG) == LONG
    assert way.desk.session.pending_responses
    after = notice("notifications/x")
    assert way.server(tail + b"\n" + after) == tail + b"\n" + after
    assert not way.down.is_mid_line
    assert not way.desk.session.pending_responses


def test_what_the_relay_says_meanwhile_waits_for_the_end_of_the_line(way: Way) -> None:
    way.desk.client(call(7))
    way.server(b'{"jsonrpc":"2.0","id":7,"result":"' + LONG)
    way.desk.session.refuse_oversized_line()
    assert way.server(LONG) == LONG
    end, _, said = way.server(b'"}\n').partition(b"\n")
    assert end == b'"}'
    assert b"-32600" in said


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"notifications/message","params":"' + LONG,
        b'{"jsonrpc":"2.0","id":99,"result":"' + LONG,
        b'{"jsonrpc":"2.0","id":"rootsd-run-1","result":"' + LONG,
        b'{ "jsonrpc":"2.0","id":7,"result":"' + LONG,
        LONG,
    ],
    ids=["notice", "unknown", "ours", "spaced", "garbage"],
)
def test_what_may_have_to_be_read_waits_for_its_end(way: Way, line: bytes) -> None:
    way.desk.client(call(7))
    assert way.server(line) == b""


def test_an_answer_that_may_ask_for_more_waits_for_its_end(way: Way) -> None:
    way.desk.client(call_2026(7))
    asks = b'{"jsonrpc":"2.0","id":7,"result":{"x":"' + LONG
    assert way.server(asks) == b""
    rest = b'","resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}}}\n'
    assert way.server(rest) == b"", "it is the relay's to answer"
    way.desk.client(call_2026(8))
    complete = b'{"jsonrpc":"2.0","id":8,"result":{"resultType":"complete","x":"' + LONG
    assert way.server(complete) == complete, "it says that it asks for nothing"


def test_an_answer_that_has_to_be_learnt_from_waits_for_its_end(way: Way) -> None:
    way.desk.client(request(7, "logging/setLevel", {"level": "debug"}))
    assert way.server(b'{"jsonrpc":"2.0","id":7,"result":"' + LONG) == b""
    assert way.server(b'"}\n' + b'{"result":"' + LONG).endswith(b'"}\n' + b'{"result":"' + LONG)


def test_a_line_that_is_cut_ends_and_the_client_gets_its_error(way: Way) -> None:
    way.desk.client(call(7))
    begun = b'{"jsonrpc":"2.0","id":7,"result":"' + LONG
    way.server(begun)
    way.down.server_gone()
    way.desk.session.fail_all(RootsdError("the server has ended"))
    end, _, error = way.server().partition(b"\n")
    assert end == b""
    assert b'"id":7,"error"' in error
    assert not way.down.is_mid_line


def test_what_lacks_its_newline_is_dropped_at_an_exchange(way: Way) -> None:
    assert way.server(notice("notifications/x").strip()) == b""
    way.down.server_gone()
    line = notice("notifications/y")
    assert way.server(line) == line


def test_the_last_line_may_lack_its_newline(way: Way) -> None:
    line = reply(7, 1).strip()
    assert way.server(line, b"") == line + b"\n"


def test_what_the_client_does_not_take_stays_and_a_client_that_is_gone_takes_nothing(
    way: Way,
) -> None:
    way.room = 10
    line = notice("notifications/x")
    assert way.server(line) == line[:20], "it was offered twice"
    assert way.down.unsent == len(line) - 20
    way.room = -1
    assert way.server(line) == b""
    assert not way.down.is_open
    assert way.down.unsent == 0
