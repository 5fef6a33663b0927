"""What `rootsd doctor` finds: one sentence about one thing, how bad that is, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Condition(StrEnum):
    """How something stands: as it should, worse than it could, or so that rootsd cannot work."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One finding. `remedy` is a command to type, or empty where nothing is to be done."""

    topic: str
    condition: Condition
    finding: str
    remedy: str = ""


def ok(topic: str, finding: str) -> Diagnosis:
    """As it should be."""
    return Diagnosis(topic, Condition.OK, finding)


def warning(topic: str, finding: str, remedy: str) -> Diagnosis:
    """It works, and worse than it could."""
    return Diagnosis(topic, Condition.WARNING, finding, remedy)


def error(topic: str, finding: str, remedy: str) -> Diagnosis:
    """It does not work."""
    return Diagnosis(topic, Condition.ERROR, finding, remedy)
