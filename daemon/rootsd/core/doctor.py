"""Findings of `rootsd doctor`: a sentence about a topic, with a severity and a remedy."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Severity(StrEnum):
    """The severity of a finding.

    OK: there is no problem. WARNING: something works, but not well. ERROR: it does not work.
    """

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class DoctorFinding(Struct, frozen=True):
    """One finding. `remedy` is a command to type, or empty if nothing needs to be done."""

    topic: str
    condition: Severity
    finding: str
    remedy: str = ""


def ok(topic: str, finding: str) -> DoctorFinding:
    """Return a finding without a problem."""
    return DoctorFinding(topic, Severity.OK, finding)


def warning(topic: str, finding: str, remedy: str) -> DoctorFinding:
    """Return a finding about something that works, but not well."""
    return DoctorFinding(topic, Severity.WARNING, finding, remedy)


def error(topic: str, finding: str, remedy: str) -> DoctorFinding:
    """Return a finding about something that does not work."""
    return DoctorFinding(topic, Severity.ERROR, finding, remedy)
