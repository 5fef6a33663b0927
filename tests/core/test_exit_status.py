"""Exit statuses: each error has its own, and scripts can rely on them."""

from __future__ import annotations

import pytest

from rootsd.core.errors import ErrorCode, Exit, exit_of


@pytest.mark.parametrize("code", ErrorCode)
def test_every_error_code_has_a_status_of_its_own_that_is_not_success(code: ErrorCode) -> None:
    others = [exit_of(other) for other in ErrorCode if other is not code]
    assert exit_of(code) not in (Exit.OK, *others)


def test_the_statuses_are_those_that_are_documented() -> None:
    assert {code.value: int(exit_of(code)) for code in ErrorCode} == {
        "failed": 1,
        "usage": 2,
        "pending": 3,
        "denied": 4,
        "nothing-matched": 5,
        "ambiguous": 6,
        "refused": 7,
        "unreachable": 69,
        "busy": 75,
        "bad-config": 78,
    }
