"""Findings of the doctor."""

from __future__ import annotations

from rootsd.core.doctor import Severity, error, ok, warning


def test_only_a_finding_with_a_problem_has_a_remedy() -> None:
    assert (ok("disk", "room").condition, ok("disk", "room").remedy) == (Severity.OK, None)
    assert warning("disk", "little room", "df -h").condition is Severity.WARNING
    assert error("disk", "no room", "df -h").remedy == "df -h"
