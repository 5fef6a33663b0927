"""Gathers what is to be seen of projects: by the helper, which may hang in the daemon's place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio
from anyio import CapacityLimiter, to_thread

from rootsd.core.model import Presence, Project, ProjectKind
from rootsd.core.parents import Parent
from rootsd.core.paths import contains
from rootsd.host.disk.facts import facts_of
from rootsd.host.disk.markers import ProjectFiles
from rootsd.host.helper.describing import (
    MOST_AT_ONCE,
    Facts,
    Subject,
    ask_facts,
    ask_last_commit,
)
from rootsd.host.helper.link import Helper

FactsOf = Callable[[Sequence[Project]], Awaitable[Sequence[Facts]]]

# As many workers as the helper has for a question.
_THREADS = 2


async def no_facts(projects: Sequence[Project]) -> Sequence[Facts]:
    """Nothing is to be seen."""
    return [{} for _ in projects]


class Sight:
    """Looks at projects, some at a time, in threads of its own. Nothing it finds is kept.

    `parents` are those in force: what is a project file is settled by the innermost that holds it.
    """

    def __init__(self, helper: Helper, parents: Callable[[], Sequence[Parent]]) -> None:
        self._helper = helper
        self._parents = parents
        self._threads = CapacityLimiter(_THREADS)

    async def facts_of(self, projects: Sequence[Project]) -> Sequence[Facts]:
        """The facts of each project, in order; empty for one that is out of reach."""
        parents = self._parents()
        here = [
            (number, _subject(project, parents))
            for number, project in enumerate(projects)
            if project.sighting.presence is Presence.PRESENT
            and project.sighting.kind is not ProjectKind.URI
        ]
        found: list[Facts] = [{} for _ in projects]
        parts = [here[at : at + MOST_AT_ONCE] for at in range(0, len(here), MOST_AT_ONCE)]

        async def look(part: Sequence[tuple[int, Subject]]) -> None:
            subjects = [subject for _, subject in part]
            seen = await to_thread.run_sync(self._look, subjects, limiter=self._threads)
            for (number, _), facts in zip(part, seen, strict=True):
                found[number] = facts

        async with anyio.create_task_group() as group:
            for part in parts:
                group.start_soon(look, part)
        return found

    def _look(self, subjects: Sequence[Subject]) -> list[Facts]:
        if self._helper.trouble():
            # Our own readers do without it, as long as the file systems answer.
            asked: list[Facts | None] = [
                facts_of(path, kind, ProjectFiles.changed(files)) for path, kind, files in subjects
            ]
        else:
            asked = ask_facts(self._helper, subjects)
        found = [facts or {} for facts in asked]
        for each, facts in zip(subjects, found, strict=True):
            has_history = facts.pop("has_history", False)
            commit = ask_last_commit(self._helper, each.path) if has_history else None
            facts["last_commit"] = commit
        return found


def _subject(project: Project, parents: Sequence[Parent]) -> Subject:
    holders = [parent for parent in parents if contains(parent.path, project.path)]
    innermost = max(holders, key=lambda parent: len(parent.path), default=None)
    files = innermost.project_files if innermost is not None else ()
    return Subject(project.path, project.sighting.kind, files)
