"""Gathers what is to be seen of projects: by the helper, which may hang in the daemon's place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio
from anyio import CapacityLimiter, to_thread

from rootsd.core.model import Presence, Project, ProjectKind
from rootsd.host.disk.facts import facts_of
from rootsd.host.helper.describing import MOST_AT_ONCE, Facts, ask_facts, ask_last_commit
from rootsd.host.helper.link import Helper

FactsOf = Callable[[Sequence[Project]], Awaitable[Sequence[Facts]]]

# As many workers as the helper has for a question.
_THREADS = 2


async def no_facts(projects: Sequence[Project]) -> Sequence[Facts]:
    """Nothing is to be seen."""
    return [{} for _ in projects]


class Sight:
    """Looks at projects, some at a time, in threads of its own. Nothing it finds is kept."""

    def __init__(self, helper: Helper) -> None:
        self._helper = helper
        self._threads = CapacityLimiter(_THREADS)

    async def facts_of(self, projects: Sequence[Project]) -> Sequence[Facts]:
        """The facts of each project, in order; empty for one that is out of reach."""
        here = [
            (number, project.path, project.sighting.kind)
            for number, project in enumerate(projects)
            if project.sighting.presence is Presence.PRESENT
            and project.sighting.kind is not ProjectKind.URI
        ]
        found: list[Facts] = [{} for _ in projects]
        parts = [here[at : at + MOST_AT_ONCE] for at in range(0, len(here), MOST_AT_ONCE)]

        async def look(part: Sequence[tuple[int, bytes, ProjectKind]]) -> None:
            places = [(path, kind) for _, path, kind in part]
            seen = await to_thread.run_sync(self._look, places, limiter=self._threads)
            for (number, _, _), facts in zip(part, seen, strict=True):
                found[number] = facts

        async with anyio.create_task_group() as group:
            for part in parts:
                group.start_soon(look, part)
        return found

    def _look(self, places: Sequence[tuple[bytes, ProjectKind]]) -> list[Facts]:
        if self._helper.trouble():
            # Our own readers do without it, as long as the file systems answer.
            asked: list[Facts | None] = [facts_of(path, kind) for path, kind in places]
        else:
            asked = ask_facts(self._helper, places)
        found = [facts or {} for facts in asked]
        for (path, _), facts in zip(places, found, strict=True):
            has_history = facts.pop("has_history", False)
            facts["last_commit"] = ask_last_commit(self._helper, path) if has_history else None
        return found
