from __future__ import annotations

import pytest

from rootsd.core import errors
from rootsd.core.errors import ErrorCode, OrderRefused, RootsdError, exit_of

CODES = {
    RootsdError: ErrorCode.FAILED,
    OrderRefused: ErrorCode.FAILED,
    errors.RefusedPlace: ErrorCode.FAILED,
    errors.DeniedHere: ErrorCode.DENIED,
    errors.IdentityChanged: ErrorCode.FAILED,
    errors.NotPresent: ErrorCode.FAILED,
    errors.NameTaken: ErrorCode.FAILED,
    errors.UnknownProject: ErrorCode.NOTHING_MATCHED,
    errors.UnknownRule: ErrorCode.NOTHING_MATCHED,
    errors.CannotUndo: ErrorCode.FAILED,
    errors.AmbiguousReference: ErrorCode.AMBIGUOUS,
    errors.CallerRefused: ErrorCode.REFUSED,
    errors.Unconfirmed: ErrorCode.REFUSED,
    errors.BadConfig: ErrorCode.BAD_CONFIG,
    errors.DaemonUnreachable: ErrorCode.UNREACHABLE,
    errors.Busy: ErrorCode.BUSY,
}


@pytest.mark.parametrize("kind", CODES)
def test_each_error_says_what_went_wrong_and_what_to_type(kind: type[RootsdError]) -> None:
    error = kind("it is so", "rootsd scan")
    assert (str(error), error.message, error.remedy) == ("it is so", "it is so", "rootsd scan")
    assert error.code is CODES[kind]
    assert kind("it is so").remedy == ""


def test_every_error_is_in_the_table() -> None:
    defined = {
        thing
        for thing in vars(errors).values()
        if isinstance(thing, type) and issubclass(thing, RootsdError)
    }
    assert defined == set(CODES)


def test_refused_orders_differ_from_other_errors() -> None:
    refusals = {kind.__name__ for kind in CODES if issubclass(kind, OrderRefused)}
    assert {kind.__name__ for kind in CODES} - refusals == {
        "RootsdError", "AmbiguousReference", "CallerRefused", "BadConfig", "DaemonUnreachable",
        "Busy", "Unconfirmed",
    }  # fmt: skip


def test_the_exit_statuses_equal_the_documented_ones() -> None:
    """Each error has its own exit status, on which scripts can rely."""
    assert {code.value: int(exit_of(code)) for code in ErrorCode} == {
        "failed": 1, "usage": 2, "pending": 3, "denied": 4, "nothing-matched": 5, "ambiguous": 6,
        "refused": 7, "unreachable": 69, "busy": 75, "bad-config": 78,
    }  # fmt: skip
