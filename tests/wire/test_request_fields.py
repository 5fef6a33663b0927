from __future__ import annotations

from collections.abc import Callable

import pytest

from rootsd.core.model import Verdict
from rootsd.wire.request import (
    enum_reader,
    optional_reader,
    read_bool,
    read_int,
    read_str,
    read_strs,
)

Form = Callable[[object], object]


@pytest.mark.parametrize(
    ("form", "raw", "value"),
    [
        (read_str, "a", "a"),
        (optional_reader(read_str), None, None),
        (read_int, 3, 3),
        (optional_reader(read_int), None, None),
        (read_strs, ["a", ""], ("a", "")),
        (read_bool, True, True),
        (enum_reader(Verdict), "denied", Verdict.DENIED),
    ],
)
def test_a_value_of_the_right_type_is_accepted(form: Form, raw: object, value: object) -> None:
    assert form(raw) == value


@pytest.mark.parametrize(
    ("form", "raw"),
    [
        (read_bool, 1),
        (read_bool, "true"),
        (read_str, 1),
        (read_str, None),
        (optional_reader(read_str), []),
        (read_int, True),
        (read_int, "1"),
        (read_int, 1.0),
        (optional_reader(read_int), "1"),
        (read_strs, "ab"),
        (read_strs, [1]),
        (enum_reader(Verdict), "maybe"),
        (enum_reader(Verdict), 1),
    ],
)
def test_a_value_of_another_type_is_refused(form: Form, raw: object) -> None:
    with pytest.raises(ValueError, match=r"not|none|valid|neither"):
        form(raw)
