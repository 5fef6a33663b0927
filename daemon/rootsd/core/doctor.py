"""Findings of `rootsd doctor`: a sentence about a topic, with a severity and a remedy."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    """The severity of a finding.

    OK: there is no problem. WARNING: something works, but not well. ERROR: it does not work.
    """

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class DoctorFinding(NamedTuple):
    """One finding of `rootsd doctor`."""

    topic: str
    """What it is about, in a word or two."""
    condition: Severity
    """How bad it is."""
    finding: str
    """A sentence."""
    remedy: str | None = None
    """A command that helps, or null."""
    seen_by: str = "command"
    """`daemon` or `command`: who found it."""


def ok(topic: str, finding: str) -> DoctorFinding:
    """Return a finding without a problem."""
    return DoctorFinding(topic, Severity.OK, finding)


def warning(topic: str, finding: str, remedy: str) -> DoctorFinding:
    """Return a finding about something that works, but not well."""
    return DoctorFinding(topic, Severity.WARNING, finding, remedy or None)


def error(topic: str, finding: str, remedy: str) -> DoctorFinding:
    """Return a finding about something that does not work."""
    return DoctorFinding(topic, Severity.ERROR, finding, remedy or None)
