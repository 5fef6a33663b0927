"""Decide whether a server must be restarted to get the current roots. Pure.

Some servers cannot drop a root while they run: the root is in the server's command, or the server
read its roots once and does not read them again. Such a server is restarted, but only when a call
comes, and only if the restart changes what the server can reach. A folder that was deleted from
the disk is no reason to restart.

Times are seconds of a clock that never goes back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum, auto

from rootsd.core.paths import contains
from rootsd.core.quick_tuple import NamedTuple
from rootsd.proxy.run.command import LaunchSpec, ServerCommand
from rootsd.proxy.run.roots import RootFolder

_SETTLE_S = 0.3
_MAX_SETTLE_S = 2.0

FolderExists = Callable[[bytes], bool]


class RestartNeed(Enum):
    """The reason to start another server."""

    NONE = auto()
    WIDER = auto()
    """The server lacks a root. It may go on without it."""
    NARROWER = auto()
    """The server has a folder that is no longer approved."""
    MOVED = auto()
    """The server is where the session worked before."""
    WALL = auto()
    """The wall around the server lacks a root. No call may pass before it has it."""


class RestartDecision(NamedTuple):
    """The need for a restart. `lost` are the folders that the server must give up."""

    need: RestartNeed
    lost: tuple[RootFolder, ...] = ()


NO_RESTART = RestartDecision(RestartNeed.NONE)


class RestartPolicy:
    """A comparison of the running command with the command for the current roots."""

    def __init__(self, command: ServerCommand) -> None:
        self.deadline = math.inf
        """When to start a server, if none runs."""
        self.wall_is_outdated: Callable[[], bool] = _never_outdated
        """Returns whether the wall around the server lacks a root."""
        self._command = command
        self._running: LaunchSpec | None = None
        self._launched_with: tuple[RootFolder, ...] = ()
        self._first_change = math.inf
        self._is_at_old_place = False

    def move_to(self, place: bytes | None) -> None:
        """Note where the session works now."""
        self._command.move_to(place)
        self._is_at_old_place = True

    @property
    def roots_in_command(self) -> bool:
        """Whether the server gets its roots by its command."""
        return self._command.names_roots

    def start(self, folders: Sequence[RootFolder]) -> LaunchSpec:
        """Return the command to start now, and remember it as the running one."""
        self._running = self._command.launch(folders)
        self._launched_with = tuple(folders)
        self._first_change = self.deadline = math.inf
        self._is_at_old_place = False
        return self._running

    def roots_appeared(self, now: float) -> None:
        """Schedule a start, because there are roots and no server runs.

        It happens when no more roots have come for a moment.
        """
        self._first_change = min(self._first_change, now)
        self.deadline = min(now + _SETTLE_S, self._first_change + _MAX_SETTLE_S)

    def for_command(
        self, folders: Sequence[RootFolder], folder_exists: FolderExists
    ) -> RestartDecision:
        """Return whether the running command must change for these folders."""
        if self._running is None or self._is_same_command(folders):
            self._is_at_old_place = False
            return NO_RESTART
        known = {folder.path for folder in folders}
        lost = [each for each in self._launched_with if each.path not in known]
        if here := tuple(each for each in lost if folder_exists(each.path)):
            return RestartDecision(RestartNeed.NARROWER, here)
        if self._is_at_old_place:
            return RestartDecision(RestartNeed.MOVED)
        with_lost = list(folders)
        for each in lost:  # deleted from the disk, which is no reason to restart
            with_lost.insert(self._launched_with.index(each), each)
        return (
            NO_RESTART if self._is_same_command(with_lost) else RestartDecision(RestartNeed.WIDER)
        )

    def changes_command(self, folders: Sequence[RootFolder]) -> bool:
        """Return whether the words of the command differ for these folders."""
        return self.roots_in_command and not self._is_same_command(folders)

    def _is_same_command(self, folders: Sequence[RootFolder]) -> bool:
        fresh, running = self._command.launch(folders), self._running
        return running is not None and (
            fresh._replace(left_out=()) == running._replace(left_out=())
        )

    def keeps_old_place(self, sent: Sequence[RootFolder], folders: Sequence[RootFolder]) -> bool:
        """Return whether the session has moved away from the first of the roots `sent`."""
        if self._running is None or not self._is_at_old_place:
            return False
        first = [[each.path for each in roots[:1]] for roots in (sent, folders)]
        fresh = self._command.launch(folders)
        return first[0] != first[1] or fresh.replacements != self._running.replacements

    @staticmethod
    def for_sent_roots(
        sent: Sequence[RootFolder], folders: Sequence[RootFolder], folder_exists: FolderExists
    ) -> RestartDecision:
        """Return whether a server that keeps the roots `sent` needs others."""
        lost = tuple(
            each
            for each in sent
            if not any(contains(now.path, each.path) for now in folders)
            and folder_exists(each.path)
        )
        if lost:
            return RestartDecision(RestartNeed.NARROWER, lost)
        lacks_one = any(
            not any(contains(each.path, now.path) for each in sent) and folder_exists(now.path)
            for now in folders
        )
        return RestartDecision(RestartNeed.WIDER) if lacks_one else NO_RESTART


def _never_outdated() -> bool:
    return False
