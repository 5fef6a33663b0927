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

_QUIET_S = 0.3
_LONGEST_S = 2.0

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
        self._given: tuple[RootFolder, ...] = ()
        self._first_change = math.inf

    @property
    def is_by_command(self) -> bool:
        """Whether the server is told of its roots by its command."""
        return self._command.names_roots

    def start(self, folders: Sequence[RootFolder]) -> LaunchSpec:
        """Return what to start now, which is what runs from here on."""
        self._running = self._command.launch(folders)
        self._given = tuple(folders)
        self._first_change = self.deadline = math.inf
        return self._running

    def appear(self, now: float) -> None:
        """There are roots, and no server runs: start one when no more roots come for a moment."""
        self._first_change = min(self._first_change, now)
        self.deadline = min(now + _QUIET_S, self._first_change + _LONGEST_S)

    def by_command(self, folders: Sequence[RootFolder], is_there: FolderExists) -> RestartDecision:
        """Return whether the command that runs has to be another one for these folders."""
        if self._running is None or self._is_as_now(folders):
            return NO_RESTART
        known = {folder.path for folder in folders}
        lost = [each for each in self._given if each.path not in known]
        if here := tuple(each for each in lost if is_there(each.path)):
            return RestartDecision(RestartNeed.NARROWER, here)
        as_if_there = list(folders)
        for each in lost:  # they are gone, and no reason by themselves
            as_if_there.insert(self._given.index(each), each)
        return NO_RESTART if self._is_as_now(as_if_there) else RestartDecision(RestartNeed.WIDER)

    def _is_as_now(self, folders: Sequence[RootFolder]) -> bool:
        fresh, running = self._command.launch(folders), self._running
        return running is not None and (
            (fresh.words, fresh.environment) == (running.words, running.environment)
        )

    @staticmethod
    def by_answer(
        given: Sequence[RootFolder], folders: Sequence[RootFolder], is_there: FolderExists
    ) -> RestartDecision:
        """Return whether a server that was `given` folders may not have one of them any more."""
        lost = tuple(
            each
            for each in given
            if not any(contains(now.path, each.path) for now in folders) and is_there(each.path)
        )
        return RestartDecision(RestartNeed.NARROWER, lost) if lost else NO_RESTART
