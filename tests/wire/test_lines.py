"""Reading lines with a limit."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.wire.jsonrpc import LineReader, LineTooLong


def popped(reader: LineReader) -> list[bytes]:
    lines = []
    while (line := reader.pop()) is not None:
        lines.append(line)
    return lines


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=8))
def test_lines_do_not_depend_on_how_the_bytes_were_split(data: bytes, cuts: list[int]) -> None:
    reader = LineReader(1000)
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    lines: list[bytes] = []
    for start, end in pairwise(edges):
        reader.feed(data[start:end])
        lines += popped(reader)
    assert [*lines, reader.rest()] == data.split(b"\n")
    assert reader.rest() == b""


@pytest.mark.parametrize("data", [b"12345\n", b"12345"])
def test_a_line_above_the_limit_is_refused_at_once_and_those_before_it_are_not_lost(
    data: bytes,
) -> None:
    reader = LineReader(4)
    reader.feed(b"a\n1234\n" + data)
    assert [reader.pop(), reader.pop()] == [b"a", b"1234"]
    with pytest.raises(LineTooLong, match="4 bytes"):
        reader.pop()
