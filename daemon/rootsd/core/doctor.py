"""Findings of `rootsd doctor`: one sentence on one topic, its severity, and a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How something stands: as it should, worse than it could, or so that rootsd cannot work."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One finding. `remedy` is a command to type, or empty where nothing is to be done."""

    topic: str
    condition: Severity
    finding: str
    remedy: str = ""


def ok(topic: str, finding: str) -> DoctorFinding:
    """As it should be."""
    return DoctorFinding(topic, Severity.OK, finding)


def warning(topic: str, finding: str, remedy: str) -> DoctorFinding:
    """It works, and worse than it could."""
    return DoctorFinding(topic, Severity.WARNING, finding, remedy)


def error(topic: str, finding: str, remedy: str) -> DoctorFinding:
    """It does not work."""
    return DoctorFinding(topic, Severity.ERROR, finding, remedy)
