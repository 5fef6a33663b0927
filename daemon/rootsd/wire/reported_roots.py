"""What a run proxy says about the roots of its server. Only few programs need the whole hello."""

from __future__ import annotations

from typing import TypedDict


class ReportedRoots(TypedDict):
    """The roots that a run proxy has sent to its server."""

    roots: int
    """Their number."""
    names: list[str]
    """The first names."""
