"""Each error has its own exit status, on which scripts can rely."""

from __future__ import annotations

import pytest

from rootsd.core.errors import ErrorCode, Exit, exit_of


@pytest.mark.parametrize("code", ErrorCode)
def test_every_error_code_has_a_unique_failure_status(code: ErrorCode) -> None:
    others = [exit_of(other) for other in ErrorCode if other is not code]
    assert exit_of(code) not in (Exit.OK, *others)


def test_the_statuses_equal_the_documented_ones() -> None:
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
