"""Say what `rootsd.proxy.run.loop` needs from a session. Pure."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable

from rootsd.core.errors import RootsdError
from rootsd.proxy.run.command import LaunchSpec
from rootsd.proxy.run.roots import RootFolder, WallState
from rootsd.wire.hello import MoveResult
from rootsd.wire.roots_subscription import RootsUpdate


class RelayedSession:
    """One client and the program behind it. The loop passes it the lines of both sides.

    What is not abstract does nothing here, and is for sessions that need it. Times are seconds of
    a clock that never goes back.
    """

    verb = "rootsd run"
    """The command that messages for people begin with."""
    program = "server"
    """What the program is."""
    restart = "restart the MCP server in your client"
    """What to do when it has ended."""

    @property
    def backlog(self) -> int:
        """How many bytes of the client wait."""
        return 0

    @property
    def deadline(self) -> float:
        """When to call `tick` at the latest."""
        return math.inf

    @property
    def printed_text(self) -> str:
        """The label of text that the program printed after its last message; mostly empty."""
        return ""

    @property
    def pending_responses(self) -> int:
        """How many responses the client waits for, without those that end a stream."""
        return 0

    @property
    def is_flooded(self) -> bool:
        """Whether the program has asked for so much that the loop must stop reading it."""
        return False

    @abstractmethod
    def from_client(self, line: bytes, now: float) -> None:
        """Take a line of the client, without its newline."""

    @abstractmethod
    def from_server(self, line: bytes, now: float) -> None:
        """Take a line of the program, without its newline."""

    @abstractmethod
    def refuse_oversized_line(self) -> None:
        """Refuse a line of the client that is too long. Its id is not known."""

    @abstractmethod
    def fail_oversized_response(self, ends: bytes) -> None:
        """Drop a line of the program that is too long. `ends` are its beginning and its end."""

    @abstractmethod
    def fail_all(self, error: RootsdError) -> None:
        """Answer everything that the client waits for with `error`: no other program follows."""

    @abstractmethod
    def start(self) -> LaunchSpec:
        """Return the command of the program that is about to start."""

    @abstractmethod
    def roots_updated(self, update: RootsUpdate[RootFolder], now: float) -> None:
        """Apply an update of the approved roots."""

    def may_stream(self, begun: bytes) -> bool:  # noqa: ARG002
        """Whether a long line of the program may go to the client before its end has arrived.

        `begun` is the beginning of the line. After such a line, call `stream_ended`.
        """
        return False

    def stream_ended(self, ends: bytes, now: float) -> None:
        """Note the end of a streamed line. `ends` are its beginning and its end."""

    def roots_outdated(self) -> None:
        """Note that the last update may no longer be true."""

    def wall_changed(self, state: WallState, requests: int, now: float) -> None:
        """Apply a change of the roots behind the wall. `requests` counts the queries of the
        program that it answers.
        """

    def moved(self, outcome: MoveResult | RootsdError, now: float) -> None:
        """Note what the daemon says about the place where the session works now."""

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""

    def started(self, now: float, is_busy: Callable[[], bool]) -> None:
        """Note that the program runs. `is_busy` returns whether it is busy."""

    def output_written(self) -> None:
        """Note that the program may have read its input."""

    def server_exited(self) -> bool:
        """Note that the program ended by itself. Return whether the session goes on without it."""
        return False

    def server_revoked(self) -> None:
        """Note that a revoke has ended the program, which another one replaces now."""
