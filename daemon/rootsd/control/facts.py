"""Read what the disk shows about projects now: facts, risks, and origins.

The helper reads the facts and the risks, because a read may hang. An origin is read when a person
decides about a project. It is compared when the project is proposed again. A person who is about
to decide about many projects sees their risks. `RefreshWorktrees` updates the worktrees of
repositories in the catalog before a person sees them.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import anyio
from anyio import CapacityLimiter, to_thread

from rootsd.core.model import Parent, Presence, Project, ProjectKind
from rootsd.core.paths import contains
from rootsd.disk.markers import ProjectFiles
from rootsd.helper.client import Helper, NoAnswer
from rootsd.helper.questions import (
    MAX_PROJECTS_PER_QUESTION,
    ProjectQuery,
    ask_facts,
    ask_last_commit,
    ask_risks,
    ask_tracking,
)
from rootsd.vcs.facts import CollectedFacts, CollectedRisks, collect_facts, collect_risks
from rootsd.vcs.origin import read_origin
from rootsd.wire.projects import ShownFacts, TrackingFacts

CollectFacts = Callable[[Sequence[Project]], Awaitable[Sequence[ShownFacts | None]]]

# The helper has this many workers for the question.
_FACTS_THREADS = 2


async def no_facts(projects: Sequence[Project]) -> Sequence[None]:
    """Return no facts for any project."""
    return [None for _ in projects]


class FactsCollector:
    """Reads the facts of projects in groups, in its own threads. It caches nothing.

    `parents` returns the configured parents. The innermost parent of a project says which of its
    files are project files.
    """

    def __init__(self, helper: Helper, parents: Callable[[], Sequence[Parent]]) -> None:
        self._helper = helper
        self._parents = parents
        self._threads = CapacityLimiter(_FACTS_THREADS)

    async def facts_of(self, projects: Sequence[Project]) -> Sequence[ShownFacts | None]:
        """Return the facts of each project, in order, with None if it is out of reach."""
        parents = self._parents()
        here = [
            (number, _query_for(project, parents))
            for number, project in enumerate(projects)
            if project.observed.presence is Presence.PRESENT
            and project.observed.kind is not ProjectKind.URI
        ]
        found: list[ShownFacts | None] = [None for _ in projects]
        parts = [
            here[at : at + MAX_PROJECTS_PER_QUESTION]
            for at in range(0, len(here), MAX_PROJECTS_PER_QUESTION)
        ]

        async def read(part: Sequence[tuple[int, ProjectQuery]]) -> None:
            queries = [query for _, query in part]
            seen = await to_thread.run_sync(self._read, queries, limiter=self._threads)
            for (number, _), facts in zip(part, seen, strict=True):
                found[number] = facts

        async with anyio.create_task_group() as group:
            for part in parts:
                group.start_soon(read, part)
        return found

    def _read(self, queries: Sequence[ProjectQuery]) -> list[ShownFacts | None]:
        if self._helper.problem():
            # Our own readers work without the helper, as long as the file systems respond.
            asked: list[CollectedFacts | None] = [
                collect_facts(path, kind, ProjectFiles.changed(files))
                for path, kind, files in queries
            ]
        else:
            asked = ask_facts(self._helper, queries)
        return [
            None if found is None else self._with_history(each.path, found)
            for each, found in zip(queries, asked, strict=True)
        ]

    def _with_history(self, path: bytes, found: CollectedFacts) -> ShownFacts:
        commit = ask_last_commit(self._helper, path) if found.has_history else None
        # If libgit2 could not read the commit in time, do not ask it for more.
        tracking = TrackingFacts() if commit is None else ask_tracking(self._helper, path)
        return {**found.facts, "last_commit": commit, **tracking}


def _query_for(project: Project, parents: Sequence[Parent]) -> ProjectQuery:
    holders = [parent for parent in parents if contains(parent.path, project.path)]
    innermost = max(holders, key=lambda parent: len(parent.path), default=None)
    files = innermost.project_files if innermost is not None else ()
    return ProjectQuery(project.path, project.observed.kind, files)


Risks = Mapping[bytes, CollectedRisks]
"""The risks of projects, by path."""
ReadRisks = Callable[[Sequence[Project], float], Awaitable[Risks]]

# A worker that has no answer by then hangs. A longer limit leaves it a part of that.
_HANG_S = 0.3
_HANG_SHARE = 8
_RISKS_THREADS = 2


async def no_risks(_projects: Sequence[Project], _seconds: float) -> Risks:
    """Return no risks for any project."""
    return {}


class RiskReader:
    """Reads the risks of many projects within a time limit. It caches nothing.

    A cache would have to know of each change in each folder of each project, and most of these
    folders are not watched. `responds` returns whether the file system of a path responds.
    """

    def __init__(self, helper: Helper, responds: Callable[[bytes], bool]) -> None:
        self._helper = helper
        self._responds = responds
        self._threads = CapacityLimiter(_RISKS_THREADS)

    async def of(self, projects: Sequence[Project], seconds: float) -> Risks:
        """Return the risks that could be read within `seconds`, by path."""
        queries = [
            ProjectQuery(project.path, project.observed.kind)
            for project in projects
            if project.observed.presence is Presence.PRESENT
            and project.observed.kind is not ProjectKind.URI
        ]
        parts = [
            queries[at : at + MAX_PROJECTS_PER_QUESTION]
            for at in range(0, len(queries), MAX_PROJECTS_PER_QUESTION)
        ]
        parts.reverse()  # the first projects are read first
        found: dict[bytes, CollectedRisks] = {}
        end = time.monotonic() + seconds
        most = max(_HANG_S, seconds / _HANG_SHARE)

        async def read() -> None:
            await to_thread.run_sync(
                self._read, parts, end, most, found, limiter=self._threads, abandon_on_cancel=True
            )

        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as group:
                for _ in range(min(_RISKS_THREADS, len(parts))):
                    group.start_soon(read)
        return dict(found)

    def _read(
        self,
        parts: list[list[ProjectQuery]],
        end: float,
        most: float,
        found: dict[bytes, CollectedRisks],
    ) -> None:
        """Move projects from `parts`, which several threads share, to `found`."""
        while (left := end - time.monotonic()) > 0:
            try:
                part = parts.pop()
            except IndexError:
                return
            queries = [query for query in part if self._responds(query.path)]
            if not queries:
                continue
            if self._helper.problem():
                read = [collect_risks(queries[0].path, queries[0].kind)]
            else:
                try:
                    read = ask_risks(self._helper, queries, min(left, most))
                except NoAnswer:
                    # One of several hangs its worker, so each gets its own.
                    parts += [[query] for query in reversed(queries) if len(queries) > 1]
                    continue
            found.update({query.path: facts for query, facts in zip(queries, read, strict=False)})
            if len(read) < len(queries):
                parts.append(queries[len(read) :])


ReadOrigins = Callable[[Iterable[Project]], Awaitable[Mapping[bytes, str]]]

_ORIGIN_THREADS = 2
# If the projects are many or hostile, those that are not read by then get no origin.
_ORIGIN_SECONDS = 1.0
_ORIGIN_TIMEOUT_S = 2.0


async def no_origins(_projects: Iterable[Project]) -> Mapping[bytes, str]:
    """Return no origins."""
    return {}


class OriginReader:
    """Reads the origins of projects, in its own threads.

    `responds` returns whether the file system of a path responds.
    """

    def __init__(self, responds: Callable[[bytes], bool]) -> None:
        self._responds = responds
        self._threads = CapacityLimiter(_ORIGIN_THREADS)

    async def of(self, projects: Iterable[Project]) -> Mapping[bytes, str]:
        """Return the origins that can be read now, without credentials, by path."""
        here = [
            project
            for project in projects
            if project.observed.presence is Presence.PRESENT
            and project.observed.kind not in (ProjectKind.URI, ProjectKind.PROJECT)
        ]
        found: dict[bytes, str] = {}
        if here:
            with anyio.move_on_after(_ORIGIN_TIMEOUT_S):
                found = await to_thread.run_sync(
                    self._read, here, limiter=self._threads, abandon_on_cancel=True
                )
        return found

    def _read(self, projects: Iterable[Project]) -> dict[bytes, str]:
        end, found = time.monotonic() + _ORIGIN_SECONDS, {}
        for project in projects:
            if time.monotonic() > end:
                break
            if self._responds(project.path):
                origin = read_origin(project.path, project.observed.kind)
                if origin:
                    found[project.path] = origin
        return found


RefreshWorktrees = Callable[[Sequence[bytes]], Awaitable[None]]


async def no_refresh(_mains: Sequence[bytes]) -> None:
    """Leave the worktrees in the catalog as they are."""
