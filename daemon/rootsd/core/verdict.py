"""The verdict about a project. Commands load it without the rest of the model."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """What all decisions and rules together mean for a project."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
