"""JSON objects are read strictly: a wrong type is refused with its key."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rootsd.core.encoding import RecordReader
from rootsd.core.model import Verdict
from rootsd.core.record import BadRecord


def test_values_of_the_right_type_are_returned() -> None:
    fields = RecordReader.parse(
        '{"t":"x","n":7,"h":"00ff","m":"denied","l":["a","b"],"o":{"n":1},"os":[{"n":2}]}'
    )
    assert fields.text("t") == "x"
    assert fields.number("n") == 7
    assert fields.hex_bytes("h") == b"\x00\xff"
    assert fields.member("m", Verdict) is Verdict.DENIED
    assert fields.texts("l") == ("a", "b")
    assert fields.inner("o").number("n") == 1
    assert [inner.number("n") for inner in fields.objects("os")] == [2]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("{}", lambda fields: fields.text("k")),
        ('{"k":1}', lambda fields: fields.text("k")),
        ('{"k":"1"}', lambda fields: fields.number("k")),
        ('{"k":true}', lambda fields: fields.number("k")),
        ('{"k":1.0}', lambda fields: fields.number("k")),
        ('{"k":"0g"}', lambda fields: fields.hex_bytes("k")),
        ('{"k":"FF"}', lambda fields: fields.hex_bytes("k")),
        ('{"k":"00 11"}', lambda fields: fields.hex_bytes("k")),
        ('{"k":"maybe"}', lambda fields: fields.member("k", Verdict)),
        ('{"k":"ab"}', lambda fields: fields.texts("k")),
        ('{"k":[1]}', lambda fields: fields.texts("k")),
        ('{"k":[[]]}', lambda fields: fields.objects("k")),
        ('{"k":[]}', lambda fields: fields.inner("k")),
    ],
)
def test_a_missing_key_or_another_type_is_refused_by_its_name(
    text: str, read: Callable[[RecordReader], object]
) -> None:
    with pytest.raises(BadRecord, match="k"):
        read(RecordReader.parse(text))


def test_an_absent_optional_key_is_none_or_empty_and_one_of_another_type_is_refused() -> None:
    fields = RecordReader.parse('{"null":null}')
    assert fields.maybe("k", fields.text) is None
    assert fields.texts("k") == ()
    assert fields.objects("k") == []
    with pytest.raises(BadRecord):
        fields.maybe("null", fields.text)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "null", "[" * 100_000, "9" * 10_000])
def test_a_value_that_is_not_an_object_is_refused(text: str) -> None:
    with pytest.raises(BadRecord):
        RecordReader.parse(text)
