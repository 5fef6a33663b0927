"""A screen without a terminal, and a person in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
from draw_pictures import text_of_screen
from textual.events import Key
from textual.pilot import Pilot

from rootsd.cli.ui.app import RootsdScreen
from rootsd.core.errors import RootsdError
from support.ledger_harness import HANG_GUARD

_CHARACTERS = {"space": " ", "slash": "/", "asterisk": "*"}

ScreenPilot = Pilot[RootsdError | None]


class ScreenUser:
    """A person in front of a screen."""

    def __init__(self, pilot: ScreenPilot, app: RootsdScreen) -> None:
        self.pilot = pilot
        self.app = app

    async def presses(self, *keys: str) -> None:
        """Press keys, and wait until they are handled. An error is read before."""
        await self.waits_until(lambda: not self.app.is_in_dropped_burst)
        await self.pilot.press(*keys)

    async def sends_in_one_burst(self, *keys: str) -> None:
        """Send keys as a terminal does that gets them all at once, and wait until it is quiet."""
        for key in keys:
            self.app.post_message(Key(key, _CHARACTERS.get(key, key if len(key) == 1 else None)))
        await self.pilot.pause()

    async def types(self, text: str) -> None:
        """Type a text."""
        await self.pilot.press(*text)

    @property
    def sees(self) -> str:
        """The text on the screen."""
        return text_of_screen(self.app)

    async def waits_for(self, text: str) -> None:
        """Wait until a text is on the screen."""
        await self.waits_until(lambda: text in self.sees, text)

    async def waits_until(self, is_so: Callable[[], bool], what: str = "") -> None:
        """Wait until something is so."""
        try:
            with anyio.fail_after(HANG_GUARD):
                while not is_so():
                    await self.pilot.pause()
        except TimeoutError:
            pytest.fail(f"did not see {what}; saw:\n{self.sees}")


@asynccontextmanager
async def a_screen(width: int = 120, height: int = 32) -> AsyncIterator[ScreenUser]:
    """Run a screen of this size."""
    app = RootsdScreen()
    async with app.run_test(size=(width, height)) as pilot:
        yield ScreenUser(pilot, app)
