"""Headers and frames are encoded, decoded, and checked for truncation."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.processes import Lineage, Process
from rootsd.core.record import BadRecord
from rootsd.core.typed_json import decode_typed, encode_typed
from rootsd.helper.protocol import (
    AnswerStatus,
    HelperProtocolError,
    HelperTask,
    frame,
    read_to_end,
    receive_header,
    send_header,
    unframe,
)


@given(st.sampled_from(AnswerStatus), st.binary(max_size=100))
def test_a_frame_is_decoded_and_no_part_of_it_is_a_frame(
    outcome: AnswerStatus, body: bytes
) -> None:
    sent = frame(outcome, body)
    assert unframe(sent) == (outcome, body)
    for end in range(len(sent)):
        with pytest.raises(HelperProtocolError):
            unframe(sent[:end])
    with pytest.raises(HelperProtocolError):
        unframe(sent + b"x")


def test_a_header_carries_the_descriptor_and_the_end_is_noticed() -> None:
    ours, theirs = socket.socketpair()
    reply, kept = socket.socketpair()
    with ours, theirs, reply, kept:
        send_header(ours, HelperTask.FOLDERS_IN_USE, 1.5, reply)
        ours.close()
        received = receive_header(theirs)
        assert received is not None
        number, seconds, answer_to = received
        assert (number, seconds) == (HelperTask.FOLDERS_IN_USE, 1.5)
        with answer_to:
            answer_to.send(b"x")
        assert kept.recv(1) == b"x"
        assert receive_header(theirs) is None


def test_no_more_than_the_limit_is_read() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.send(b"x" * 1000)
        ours.close()
        with pytest.raises(HelperProtocolError, match="more than 999"):
            read_to_end(theirs, 999)


def test_an_answer_keeps_every_byte_and_a_wrong_one_is_refused() -> None:
    sent = {3: (Lineage((Process(1, 2, 0, b"\xff", markers=frozenset({"A=\udcff"})),)),)}
    kind = dict[int, tuple[Lineage, ...]]
    assert decode_typed(encode_typed(sent), kind) == sent
    for wrong in (b"{", b"[]", b'{"x": []}', encode_typed({3: ({"processes": [{"pid": "1"}]},)})):
        with pytest.raises(BadRecord):
            decode_typed(wrong, kind)
