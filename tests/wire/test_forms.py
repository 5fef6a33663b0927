from __future__ import annotations

from collections.abc import Callable

import pytest

from rootsd.core.model import Verdict
from rootsd.wire.forms import number, optional, text, texts, truth, word

Form = Callable[[object], object]


@pytest.mark.parametrize(
    ("form", "raw", "value"),
    [
        (text, "a", "a"),
        (optional(text), None, None),
        (number, 3, 3),
        (optional(number), None, None),
        (texts, ["a", ""], ("a", "")),
        (truth, True, True),
        (word(Verdict), "denied", Verdict.DENIED),
    ],
)
def test_a_value_of_its_form_is_taken(form: Form, raw: object, value: object) -> None:
    assert form(raw) == value


@pytest.mark.parametrize(
    ("form", "raw"),
    [
        (truth, 1), (truth, "true"),
        (text, 1), (text, None), (optional(text), []), (number, True), (number, "1"),
        (number, 1.0),
        (optional(number), "1"), (texts, "ab"), (texts, [1]), (word(Verdict), "maybe"),
        (word(Verdict), 1),
    ],
)  # fmt: skip
def test_a_value_of_another_form_is_refused(form: Form, raw: object) -> None:
    with pytest.raises(ValueError, match=r"not|none|valid|neither"):
        form(raw)
