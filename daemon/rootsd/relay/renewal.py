"""When a server has to be started again, since its command names roots and they are others. Pure.

What is taken away is taken away at once; what is added waits until nothing more is added for a
moment, so that ten approvals in a row are one new server.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rootsd.relay.arguments import Command, Launch
from rootsd.relay.roots import Folder

_QUIET_S = 0.3
_LONGEST_S = 2.0


class Renewal:
    """The command as it runs, against the command as it should."""

    def __init__(self, command: Command) -> None:
        self.deadline = math.inf
        """When another server is due."""
        self._command = command
        self._running: Launch | None = None
        self._first_change = math.inf

    @property
    def is_by_command(self) -> bool:
        """Whether the server is told of its roots by its command."""
        return self._command.names_roots

    def start(self, folders: Sequence[Folder]) -> Launch:
        """What to start now; what runs from here on."""
        self._running = self._command.launch(folders)
        self._first_change = self.deadline = math.inf
        return self._running

    def hold(self) -> None:
        """Another server is on its way, and will be started with the roots of that moment."""
        self.deadline = math.inf

    def change(self, folders: Sequence[Folder], now: float, *, narrows: bool) -> None:
        """The roots are others; `narrows` where one of them is gone."""
        if self._running is None:
            return
        if self._command.launch(folders) == self._running:
            self._first_change = self.deadline = math.inf
            return
        self._first_change = min(self._first_change, now)
        quiet = min(now + _QUIET_S, self._first_change + _LONGEST_S)
        if self.deadline > now:  # else it is due already
            self.deadline = now if narrows else quiet
