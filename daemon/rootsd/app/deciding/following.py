"""Who brings the worktrees of repositories into the catalogue before a person is shown them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

Follow = Callable[[Sequence[bytes]], Awaitable[None]]


async def follow_nothing(_mains: Sequence[bytes]) -> None:
    """Take the catalogue as it is."""
