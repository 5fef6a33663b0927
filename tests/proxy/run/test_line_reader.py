"""Splitting bytes into lines, for any chunks."""

from __future__ import annotations

import random

from rootsd.proxy.run.line_reader import BoundedLineReader, OversizedLine
from rootsd.wire.mcp_messages import SCAN_BYTES


def test_lines_come_whole_however_they_are_cut() -> None:
    chance = random.Random(7)  # noqa: S311 - to be reproducible is its purpose
    lines = [chance.randbytes(chance.randrange(40)).replace(b"\n", b"") for _ in range(500)]
    data = b"\n".join(lines) + b"\n"
    intake = BoundedLineReader()
    got: list[bytes | OversizedLine] = []
    while data:
        cut = chance.randrange(1, 200)
        got += intake.feed(data[:cut])
        data = data[cut:]
    assert got == lines
    assert list(intake.finish()) == []


def test_a_last_line_without_a_newline_comes_at_the_end() -> None:
    intake = BoundedLineReader()
    assert list(intake.feed(b"a\nb")) == [b"a"]
    assert list(intake.finish()) == [b"b"]
    assert list(intake.feed(b"x")) == []
    assert intake.take_partial() == b"x"
    assert list(intake.finish()) == []


def test_an_oversized_line_keeps_its_ends_and_loses_no_other_line() -> None:
    intake = BoundedLineReader(limit=10_000)
    begin, end = b"b" * SCAN_BYTES, b"e" * SCAN_BYTES
    got = []
    for part in (b"one\n", begin, b"-" * 20_000, b"-" * 5_000, end, b"\ntwo\n", b"-" * 9_000):
        got += list(intake.feed(part))
    assert got == [b"one", OversizedLine(begin + end), b"two"]
    assert list(intake.finish()) == [b"-" * 9_000]


def test_an_oversized_line_in_one_chunk_is_found() -> None:
    intake = BoundedLineReader(limit=1_000)
    assert list(intake.feed(b"x" * 2_000 + b"\ny\n")) == [
        OversizedLine(b"x" * 2 * SCAN_BYTES),
        b"y",
    ]
