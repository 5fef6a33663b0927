"""The control request for the daemon's part of `rootsd doctor`."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from rootsd.core.doctor import DoctorFinding
from rootsd.wire.request import ControlRequest


class DoctorResult(NamedTuple):
    """All checks, including those without a problem."""

    items: tuple[DoctorFinding, ...]
    """The findings."""


class DoctorRequest(ControlRequest, frozen=True):
    """Check everything that the daemon needs, from inside the daemon: `DoctorResult`."""

    method: ClassVar[str] = "examine"
    result: ClassVar[type] = DoctorResult
