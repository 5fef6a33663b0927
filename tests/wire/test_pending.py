"""Which requests lack an answer, seen from the bytes that pass."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rootsd.wire.jsonrpc import Fault, Id, Notice, Reply, Request, encode
from rootsd.wire.pending import Pending


def test_requests_are_pending_until_they_are_answered() -> None:
    pending = Pending()
    for id_ in (0, "0", 1):
        pending.ask(encode(Request(id_, "m")))
    pending.answer(encode(Reply(0, {})) + encode(Notice("n")) + encode(Fault(1, -1, "no")))
    assert pending.drain() == ["0"]
    assert pending.drain() == []


@given(st.lists(st.integers() | st.text(max_size=40)), st.data())
def test_bytes_may_be_split_anywhere_in_both_directions(
    ids: list[Id], data: st.DataObject
) -> None:
    pending = Pending()
    answered = data.draw(st.sets(st.sampled_from(ids))) if ids else set()
    asked = b"".join(encode(Request(id_, "m", {"text": "x" * 50})) for id_ in ids)
    told = b"".join(encode(Reply(id_, {"text": "y" * 2000})) for id_ in answered)
    for line, look in ((asked, pending.ask), (told, pending.answer)):
        cut = data.draw(st.integers(0, len(line)))
        look(line[:cut])
        look(line[cut:])
    assert pending.drain() == [id_ for id_ in dict.fromkeys(ids) if id_ not in answered]


def test_a_cancelled_request_wants_no_answer() -> None:
    pending = Pending()
    pending.ask(encode(Request(1, "m")) + encode(Request(2, "m")))
    pending.ask(encode(Notice("notifications/cancelled", {"requestId": 1})))
    pending.ask(encode(Notice("notifications/cancelled", {"requestId": "2"})))
    pending.ask(encode(Notice("notifications/cancelled", None)))
    assert pending.drain() == [2]


def test_members_of_a_batch_count() -> None:
    pending = Pending()
    pending.ask(
        b'[{"jsonrpc":"2.0","id":1,"method":"m"},7,{"jsonrpc":"2.0","id":2,"method":"m"}]\n'
    )
    assert pending.drain() == [1, 2]


def test_what_cannot_be_read_is_left_alone() -> None:
    pending = Pending()
    pending.ask(b"\xff\n\n{}\n")
    pending.ask(encode(Request("x" * 300, "m")))
    pending.answer(b"\xff\n" + b'{"jsonrpc":"2.0","id":\xff\n' + b'{"id":1,"jsonrpc":"2.0"}\n')
    assert pending.drain() == []


def test_a_request_beyond_all_measure_ends_the_looking() -> None:
    pending = Pending()
    pending.ask(b"x" * ((1 << 20) + 1))
    pending.ask(b"\n" + encode(Request(1, "m")))
    assert pending.drain() == []


def test_a_long_answer_is_not_kept() -> None:
    pending = Pending()
    pending.ask(encode(Request(1, "m")))
    pending.answer(b'{"jsonrpc":"2.0","id":1,"result":"')
    for _ in range(100):
        pending.answer(b"x" * 65536)
    assert len(pending._head) < 1024
    pending.answer(b'"}\n')
    assert pending.drain() == []
