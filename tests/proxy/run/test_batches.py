"""Forwarding batches."""

from __future__ import annotations

import pytest

from rootsd.proxy.run.session import forward_batch
from rootsd.wire.jsonrpc import Batch, Malformed, Message, parse

LINE = ' [ {"jsonrpc":"2.0","method":"a"} ,3,{"jsonrpc":"2.0","method":"é"}\t] '.encode()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, LINE),
        ({b"3": b"4"}, LINE.replace(b"3", b"4")),
        ({b"3": None}, b'[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"\xc3\xa9"}]'),
    ],
)
def test_unchanged_members_and_the_bytes_between_them_stay(
    changes: dict[bytes, bytes | None], expected: bytes
) -> None:
    batch = parse(LINE)
    assert isinstance(batch, Batch)
    seen: list[float] = []

    def pass_on(part: bytes, _: Message | Malformed, now: float) -> bytes | None:
        seen.append(now)
        return changes.get(part, part)

    assert forward_batch(LINE, batch, 7.0, pass_on) == expected
    assert seen == [7.0] * 3


def test_a_batch_without_remaining_members_is_dropped() -> None:
    batch = parse(LINE)
    assert isinstance(batch, Batch)
    assert forward_batch(LINE, batch, 0.0, lambda *_: None) is None
