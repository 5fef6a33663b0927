"""The decoder of inotify records, with valid records and with arbitrary bytes."""

from __future__ import annotations

import struct

from hypothesis import assume, example, given
from hypothesis import strategies as st

from rootsd.watch.inotify_records import (
    IN_IGNORED,
    IN_Q_OVERFLOW,
    MAX_RECORD_BYTES,
    InotifyRecord,
    decode_records,
    drop_before_overflow,
)

OVERFLOW = InotifyRecord(-1, IN_Q_OVERFLOW, 0, b"")
# Names with many bytes that also occur in headers.
NAMES = st.lists(st.sampled_from([*b"a/.\x01\x40\x80\xff"]), max_size=34).map(bytes) | st.binary(
    max_size=255
).map(lambda name: name.replace(b"\0", b"\xff"))
NUMBERS = st.sampled_from([1, 0x40, 0x80, 0x4000, 0x8000]) | st.integers(1, 2**31 - 1)
CHANGES = st.builds(
    InotifyRecord,
    wd=NUMBERS,
    mask=NUMBERS.filter(lambda mask: not mask & (IN_IGNORED | IN_Q_OVERFLOW)),
    cookie=NUMBERS,
    name=NAMES.filter(bool),
)
ENDS = st.builds(InotifyRecord, NUMBERS, st.just(IN_IGNORED), st.just(0), st.just(b""))
RECORDS = st.lists(CHANGES | ENDS | st.just(OVERFLOW), max_size=12)


def encoded(record: InotifyRecord) -> bytes:
    """Encode a record as the kernel does: with at least one NUL, to a multiple of 16 bytes."""
    name = record.name and record.name + bytes(16 - len(record.name) % 16)
    return struct.pack("=iIII", record.wd, record.mask, record.cookie, len(name)) + name


def joined(records: list[InotifyRecord]) -> bytes:
    return b"".join(map(encoded, records))


@given(RECORDS)
def test_records_are_decoded_in_order(records: list[InotifyRecord]) -> None:
    assert list(decode_records(joined(records))) == records
    assert all(len(encoded(record)) <= MAX_RECORD_BYTES for record in records)


@given(RECORDS, st.data())
def test_a_truncated_record_counts_as_an_overflow(
    records: list[InotifyRecord], data: st.DataObject
) -> None:
    whole = joined(records)
    cut = data.draw(st.integers(0, len(whole)))
    ends = [len(joined(records[:count])) for count in range(len(records) + 1)]
    complete = sum(end <= cut for end in ends) - 1
    expected = records[:complete] + [OVERFLOW] * (cut not in ends)
    assert list(decode_records(whole[:cut])) == expected


@given(st.binary(max_size=600))
def test_any_bytes_are_decoded_or_count_as_an_overflow(found: bytes) -> None:
    records = list(decode_records(found))
    assert bool(records) == bool(found)
    assert sum(16 + len(record.name) for record in records[:-1]) <= len(found)


@given(RECORDS)
@example([InotifyRecord(1, 0x100, 0, b"\x80"), OVERFLOW])  # looks like the end of a watch
def test_before_an_overflow_only_ends_remain(records: list[InotifyRecord]) -> None:
    assume(OVERFLOW in records)
    last = len(records) - 1 - records[::-1].index(OVERFLOW)
    expected = [record for record in records[:last] if record.is_end] + records[last:]
    assert list(decode_records(drop_before_overflow(joined(records)))) == expected


@given(st.lists(CHANGES | ENDS, max_size=12))
def test_without_an_overflow_everything_remains(records: list[InotifyRecord]) -> None:
    assert drop_before_overflow(joined(records)) == joined(records)
