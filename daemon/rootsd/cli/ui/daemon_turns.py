"""Send the commands of the screen to the daemon, in the order of their keys."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

from rootsd.cli.answers import control_client
from rootsd.cli.ui.live import LiveLink
from rootsd.cli.ui.ordered_input import OrderedInputApp
from rootsd.cli.ui.plain_terminal import plain_terminal
from rootsd.link import rpc
from rootsd.wire.request import ControlRequest

CHALLENGE_NOTICE = "Confirm the command of the screen here, or press ^C:"


class DaemonTurns:
    """Requests to the daemon over `link`: at once, or each after those before it."""

    def __init__(self, app: OrderedInputApp[Any], link: LiveLink) -> None:
        self._app = app
        self._link = link
        self._turn = asyncio.Lock()

    async def ask(self, request: ControlRequest) -> dict[str, Any]:
        """Send a request in a thread. Raises RootsdError."""
        return await asyncio.to_thread(self._link.call, request)

    async def read(self, request: ControlRequest) -> dict[str, Any]:
        """Send a request after the commands before it. Raises RootsdError."""
        async with self._turn:
            return await self.ask(request)

    async def order(self, order: ControlRequest) -> dict[str, Any]:
        """Send an order in its turn. If the guard asks for a word, leave the screen for it.

        The word of the first challenge was drawn over the screen. So the order is sent again, and
        the daemon shows another word on the plain terminal.
        """
        async with self._turn:
            try:
                return await self.ask(order)
            except rpc.DaemonError as error:
                if error.challenge is None:
                    raise
                with plain_terminal(self._app, signal.default_int_handler):
                    sys.stdout.write(f"{CHALLENGE_NOTICE}\n")
                    sys.stdout.flush()
                    return control_client.call(order)
