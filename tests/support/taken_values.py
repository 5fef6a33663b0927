"""What takes effect when a file is read again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import anyio

HANG_GUARD = 30
ValueT = TypeVar("ValueT")
NoteT = TypeVar("NoteT")


class TakenValues(Generic[ValueT, NoteT]):
    """Collects the values that take effect, with a note each, and lets a test wait for one."""

    def __init__(self) -> None:
        self.values: list[ValueT] = []
        self.notes: list[NoteT] = []
        self._news = anyio.Event()

    async def over(self, value: ValueT, note: NoteT) -> None:
        self.values.append(value)
        self.notes.append(note)
        self._news.set()
        self._news = anyio.Event()

    async def until(self, fits: Callable[[ValueT], bool]) -> None:
        """Wait until the value in force passes `fits`."""
        with anyio.fail_after(HANG_GUARD):
            while not self.values or not fits(self.values[-1]):
                await self._news.wait()
