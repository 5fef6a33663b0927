"""Finds the files in projects that agents execute, for a person who is about to approve many."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from anyio import CapacityLimiter, to_thread

from rootsd.core.model import Presence, Project, ProjectKind
from rootsd.host.disk.facts import executed_in

ExecutedIn = Callable[[Iterable[Project]], Awaitable[Mapping[bytes, Sequence[str]]]]

_MOST_SECONDS = 10.0


async def nothing_executed(_projects: Iterable[Project]) -> Mapping[bytes, Sequence[str]]:
    """Return that no project holds such a file."""
    return {}


class Executed:
    """Looks into projects in a thread of its own. `answers` tells if a look at a path will end."""

    def __init__(self, answers: Callable[[bytes], bool]) -> None:
        self._answers = answers
        self._threads = CapacityLimiter(1)

    async def of(self, projects: Iterable[Project]) -> Mapping[bytes, Sequence[str]]:
        """Return path -> files that agents execute, for the projects that hold any.

        A project that could not be looked into in time counts as one, and its list is empty.
        """
        here = [
            project
            for project in projects
            if project.sighting.presence is Presence.PRESENT
            and project.sighting.kind is not ProjectKind.URI
        ]
        return await to_thread.run_sync(self._read, here, limiter=self._threads)

    def _read(self, projects: Sequence[Project]) -> Mapping[bytes, Sequence[str]]:
        end, found = time.monotonic() + _MOST_SECONDS, dict[bytes, Sequence[str]]()
        for project in projects:
            if time.monotonic() > end or not self._answers(project.path):
                found[project.path] = ()
            elif files := executed_in(project.path, project.sighting.kind):
                found[project.path] = files
        return found
