"""What the daemon finds when it examines itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypedDict

from rootsd.wire.request import Request


@dataclass(frozen=True, slots=True)
class Examine(Request):
    """Look at all that the daemon needs, from inside: `Examined`."""

    method: ClassVar[str] = "examine"


class DiagnosisItem(TypedDict):
    """One finding; `condition` is a word of `core.diagnosis.Condition`, `seen_by` is `daemon` or
    `command`."""

    topic: str
    condition: str
    finding: str
    remedy: str | None
    seen_by: str


class Examined(TypedDict):
    """All that was looked at, also what is well."""

    revision: int
    items: list[DiagnosisItem]
    warnings: list[str]
