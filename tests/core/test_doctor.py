"""Findings of the doctor."""

from __future__ import annotations

from rootsd.core.doctor import Severity, error, ok, warning


def test_what_is_well_has_no_remedy_and_what_is_not_has_one() -> None:
    assert (ok("disk", "room").condition, ok("disk", "room").remedy) == (Severity.OK, "")
    assert warning("disk", "little room", "df -h").condition is Severity.WARNING
    assert error("disk", "no room", "df -h").remedy == "df -h"
