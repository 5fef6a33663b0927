"""Decide whether a server must be restarted to get the current roots. Pure.

A server has roots that it cannot be told to drop in two cases: its command names them, or it read
them once and does not read them again. It is started again only at a call, and only if that
changes what it can reach: a folder that is gone from the disk is no reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import NamedTuple

from rootsd.core.paths import contains
from rootsd.proxy.run.command import LaunchSpec, ServerCommand
from rootsd.proxy.run.roots import RootFolder

_SETTLE_S = 0.3
_MAX_SETTLE_S = 2.0

FolderExists = Callable[[bytes], bool]


class RestartNeed(Enum):
    """Why another server would have to be started."""

    NONE = auto()
    WIDER = auto()
    """The server lacks something: it may serve on as it is."""
    NARROWER = auto()
    """It has a folder that it may not have any more."""


class RestartDecision(NamedTuple):
    """What another server is needed for; `lost` are the folders that this one may not have."""

    need: RestartNeed
    lost: tuple[RootFolder, ...] = ()


NO_RESTART = RestartDecision(RestartNeed.NONE)


class RestartPolicy:
    """The command as it runs, against the command as it should."""

    def __init__(self, command: ServerCommand) -> None:
        self.deadline = math.inf
        """When to start a server where none runs."""
        self._command = command
        self._running: LaunchSpec | None = None
        self._launched_with: tuple[RootFolder, ...] = ()
        self._first_change = math.inf

    @property
    def roots_in_command(self) -> bool:
        """Whether the server is told of its roots by its command."""
        return self._command.names_roots

    def start(self, folders: Sequence[RootFolder]) -> LaunchSpec:
        """Return what to start now, which is what runs from here on."""
        self._running = self._command.launch(folders)
        self._launched_with = tuple(folders)
        self._first_change = self.deadline = math.inf
        return self._running

    def roots_appeared(self, now: float) -> None:
        """There are roots, and no server runs: start one when no more roots come for a moment."""
        self._first_change = min(self._first_change, now)
        self.deadline = min(now + _SETTLE_S, self._first_change + _MAX_SETTLE_S)

    def for_command(
        self, folders: Sequence[RootFolder], folder_exists: FolderExists
    ) -> RestartDecision:
        """Return whether the command that runs has to be another one for these folders."""
        if self._running is None or self._is_same_command(folders):
            return NO_RESTART
        known = {folder.path for folder in folders}
        lost = [each for each in self._launched_with if each.path not in known]
        if here := tuple(each for each in lost if folder_exists(each.path)):
            return RestartDecision(RestartNeed.NARROWER, here)
        with_lost = list(folders)
        for each in lost:  # they are gone, and no reason by themselves
            with_lost.insert(self._launched_with.index(each), each)
        return (
            NO_RESTART if self._is_same_command(with_lost) else RestartDecision(RestartNeed.WIDER)
        )

    def _is_same_command(self, folders: Sequence[RootFolder]) -> bool:
        fresh, running = self._command.launch(folders), self._running
        return running is not None and (
            (fresh.words, fresh.environment) == (running.words, running.environment)
        )

    @staticmethod
    def for_sent_roots(
        sent: Sequence[RootFolder], folders: Sequence[RootFolder], folder_exists: FolderExists
    ) -> RestartDecision:
        """Return whether a server that was `given` folders may not have one of them any more."""
        lost = tuple(
            each
            for each in sent
            if not any(contains(now.path, each.path) for now in folders)
            and folder_exists(each.path)
        )
        return RestartDecision(RestartNeed.NARROWER, lost) if lost else NO_RESTART
