"""Show the folders of sessions to an agent that this process has started behind the wall."""

from __future__ import annotations

from collections.abc import Iterable

from rootsd.link import rpc
from rootsd.net.root_question import TIMEOUT_S


class StartedWall:
    """The wall of `rootsd confine`, which runs as a child of the relay."""

    def __init__(self) -> None:
        self._opened: set[str] = set()

    def open(self, names: Iterable[str]) -> None:
        """Show these roots to the agent. Return when it sees them. Raises RootsdError."""
        if not (more := {*names} - self._opened):
            return
        with rpc.connect_control(TIMEOUT_S) as channel:
            channel.settimeout(TIMEOUT_S)
            rpc.ask(channel, "add_to_session", {"names": sorted(more), "id": ""})
        self._opened |= more
