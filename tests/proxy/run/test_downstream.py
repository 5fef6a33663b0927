"""Output to the client: whole lines, and long lines while they arrive."""

from __future__ import annotations

import pytest

from rootsd.core.errors import RootsdError
from rootsd.proxy.run.loop import ClientOutput
from support.bridges import notice, reply, request
from support.run_session_harness import API, SessionHarness, call, call_2026

LONG = b"x" * 200_000


class Way:
    """An output whose client reads a limited number of bytes at a time."""

    def __init__(self) -> None:
        self.harness = SessionHarness(API)
        self.harness.shake_hands()
        self.harness.list_roots()
        self.heard = bytearray()
        self.room = 1 << 30
        self.down = ClientOutput(self.harness.session, self.harness.out, self._write)

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
def test_a_long_response_is_streamed(way: Way, head: bytes, tail: bytes) -> None:
    way.harness.client(call(7))
    begun = way.server(head + LONG)
    assert begun == head + LONG
    assert way.down.is_mid_line
    assert way.server(LONG) == LONG
    assert way.harness.session.pending_responses
    after = notice("notifications/x")
    assert way.server(tail + b"\n" + after) == tail + b"\n" + after
    assert not way.down.is_mid_line
    assert not way.harness.session.pending_responses


def test_the_client_gets_the_first_of_many_lines_before_the_last_is_parsed(way: Way) -> None:
    lines = b"".join(notice("notifications/x", {"n": number}) for number in range(1_000))
    broken = b"not JSON\n"
    way.down.take(lines + broken)  # without a flush, as in one step of the loop
    assert len(lines) - (1 << 14) < len(way.heard) < len(lines)
    assert way.server() == lines
    assert way.harness.out.dropped_lines == [
        "a line of the server was dropped: this line is not JSON in UTF-8: not JSON"
    ]


def test_the_proxys_messages_wait_for_the_end_of_a_streamed_line(way: Way) -> None:
    way.harness.client(call(7))
    way.server(b'{"jsonrpc":"2.0","id":7,"result":"' + LONG)
    way.harness.session.refuse_oversized_line()
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
def test_lines_that_must_be_parsed_are_not_streamed(way: Way, line: bytes) -> None:
    way.harness.client(call(7))
    assert way.server(line) == b""


def test_results_that_may_require_input_are_not_streamed(way: Way) -> None:
    way.harness.client(call_2026(7))
    asks = b'{"jsonrpc":"2.0","id":7,"result":{"x":"' + LONG
    assert way.server(asks) == b""
    rest = b'","resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}}}\n'
    assert way.server(rest) == b"", "the run proxy answers it"
    way.harness.client(call_2026(8))
    complete = b'{"jsonrpc":"2.0","id":8,"result":{"resultType":"complete","x":"' + LONG
    assert way.server(complete) == complete, "it says that it asks for nothing"


def test_observed_responses_are_not_streamed(way: Way) -> None:
    way.harness.client(request(7, "logging/setLevel", {"level": "debug"}))
    assert way.server(b'{"jsonrpc":"2.0","id":7,"result":"' + LONG) == b""
    assert way.server(b'"}\n' + b'{"result":"' + LONG).endswith(b'"}\n' + b'{"result":"' + LONG)


def test_a_cut_line_is_ended_and_its_request_fails(way: Way) -> None:
    way.harness.client(call(7))
    begun = b'{"jsonrpc":"2.0","id":7,"result":"' + LONG
    way.server(begun)
    way.down.server_gone()
    way.harness.session.fail_all(RootsdError("the server has ended"))
    end, _, error = way.server().partition(b"\n")
    assert end == b""
    assert b'"id":7,"error"' in error
    assert not way.down.is_mid_line


def test_a_partial_line_is_dropped_at_a_restart(way: Way) -> None:
    assert way.server(notice("notifications/x").strip()) == b""
    way.down.server_gone()
    line = notice("notifications/y")
    assert way.server(line) == line


def test_the_last_line_may_lack_its_newline(way: Way) -> None:
    line = reply(7, 1).strip()
    assert way.server(line, b"") == line + b"\n"


def test_unread_output_stays_until_the_client_is_gone(way: Way) -> None:
    way.room = 10
    line = notice("notifications/x")
    assert way.server(line) == line[:20], "it was offered twice"
    assert way.down.unsent == len(line) - 20
    way.room = -1
    assert way.server(line) == b""
    assert not way.down.is_open
    assert way.down.unsent == 0
