"""The access that a client or a program has to a root."""

from __future__ import annotations

from enum import StrEnum


class Access(StrEnum):
    """What clients are asked to limit themselves to. A wall enforces it; MCP roots cannot."""

    READ_WRITE = "read-write"
    READ = "read"


def stricter_access(one: Access, other: Access) -> Access:
    """Return the access that allows less."""
    return Access.READ if Access.READ in (one, other) else Access.READ_WRITE
