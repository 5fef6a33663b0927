"""Where projects come from, by their own word: read when somebody decides about them, and compared
with that when they are proposed again."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping

import anyio
from anyio import CapacityLimiter, to_thread

from rootsd.core.model import Presence, Project, ProjectKind
from rootsd.host.vcs.origin import origin_of

OriginsOf = Callable[[Iterable[Project]], Awaitable[Mapping[bytes, str]]]

_THREADS = 2
# Of many projects, or hostile ones, the rest does without.
_MOST_SECONDS = 1.0
_PATIENCE_S = 2.0


async def no_origins(_projects: Iterable[Project]) -> Mapping[bytes, str]:
    """None of them says anything."""
    return {}


class Origins:
    """Reads them in threads of its own. `answers` tells whether a look at a path will end."""

    def __init__(self, answers: Callable[[bytes], bool]) -> None:
        self._answers = answers
        self._threads = CapacityLimiter(_THREADS)

    async def of(self, projects: Iterable[Project]) -> Mapping[bytes, str]:
        """Path -> origin without credentials, of the projects that have one to be read now."""
        here = [
            project
            for project in projects
            if project.sighting.presence is Presence.PRESENT
            and project.sighting.kind not in (ProjectKind.URI, ProjectKind.PROJECT)
        ]
        found: dict[bytes, str] = {}
        if here:
            with anyio.move_on_after(_PATIENCE_S):
                found = await to_thread.run_sync(
                    self._read, here, limiter=self._threads, abandon_on_cancel=True
                )
        return found

    def _read(self, projects: Iterable[Project]) -> dict[bytes, str]:
        end, found = time.monotonic() + _MOST_SECONDS, {}
        for project in projects:
            if time.monotonic() > end:
                break
            if self._answers(project.path):
                origin = origin_of(project.path, project.sighting.kind)
                if origin:
                    found[project.path] = origin
        return found
