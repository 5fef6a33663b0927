"""Format times as text."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=64)  # thousands of projects share one time
def rfc3339(moment: datetime) -> str:
    """Return a time as RFC 3339 text in UTC with whole seconds: `2026-11-21T12:00:00Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
