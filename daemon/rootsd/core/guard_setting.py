"""The setting of the guard, which most commands know without the guard itself."""

from __future__ import annotations

from enum import StrEnum


class Guard(StrEnum):
    """Which callers may decide."""

    AGENTS = "agents"
    """Callers that no agent started, as far as the facts show."""
    TERMINAL = "terminal"
    """The same callers, but only if a person types the word that the guard shows on a terminal."""
    OFF = "off"
    """Every process with this user id."""
