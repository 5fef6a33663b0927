"""Read what the disk shows about projects now: facts, risks, and origins.

The helper reads the facts and the risks, because a read may hang. An origin is read when a person
decides about a project. It is compared when the project is proposed again. A person who is about
to decide about many projects sees their risks.

Nothing is cached. A cache would have to know of each change in each folder of each project, and
most of these folders are not watched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import anyio
from anyio import CapacityLimiter, to_thread

from rootsd.core.model import Inspection, Parent, Presence, Project, ProjectKind
from rootsd.core.paths import contains
from rootsd.disk.markers import ProjectFiles
from rootsd.helper.client import Helper, NoAnswer
from rootsd.helper.inspections import inspect
from rootsd.helper.projects import (
    MAX_PROJECTS_PER_QUESTION,
    ProjectQuery,
    ask_facts,
    ask_inspections,
    ask_last_commit,
    ask_risks,
    ask_tracking,
)
from rootsd.vcs.facts import CollectedFacts, CollectedRisks, collect_facts, collect_risks
from rootsd.vcs.origin import read_origin
from rootsd.wire.projects import ShownFacts, TrackingFacts

Risks = Mapping[bytes, CollectedRisks]
"""The risks of projects, by path."""
T = TypeVar("T")

# Each question has threads of its own, as many as the helper has workers for it.
_FACTS_THREADS = _RISKS_THREADS = _ORIGIN_THREADS = 2
# A worker that has no answer by then hangs. A longer limit leaves it a part of that.
_HANG_S = 0.3
_HANG_SHARE = 8
# If the projects are many or hostile, those that are not read by then get no origin.
_ORIGIN_SECONDS = 1.0
_INSPECTED_AT_ONCE = 256  # most have not changed since the last look, so it takes 0.2 ms
_ORIGIN_TIMEOUT_S = 2.0


class ProjectReader:
    """Reads the facts, the risks, and the origins of projects.

    `parents` returns the configured parents. The innermost parent of a project says which of its
    files are project files. `responds` returns whether the file system of a path responds.
    """

    def __init__(
        self,
        helper: Helper,
        parents: Callable[[], Sequence[Parent]],
        responds: Callable[[bytes], bool],
    ) -> None:
        self._helper = helper
        self._parents = parents
        self._responds = responds
        self._facts_threads = CapacityLimiter(_FACTS_THREADS)
        self._risks_threads = CapacityLimiter(_RISKS_THREADS)
        self._origin_threads = CapacityLimiter(_ORIGIN_THREADS)

    async def facts(self, projects: Sequence[Project]) -> Sequence[ShownFacts | None]:
        """Return the facts of each project, in order, with None if it is out of reach."""
        parents = self._parents()
        here = [project for project in projects if _is_folder_there(project)]
        found: dict[bytes, ShownFacts | None] = {}

        async def read(part: Sequence[Project]) -> None:
            queries = [_query_for(project, parents) for project in part]
            seen = await to_thread.run_sync(self._read_facts, queries, limiter=self._facts_threads)
            found.update(zip((query.path for query in queries), seen, strict=True))

        async with anyio.create_task_group() as group:
            for part in _parts(here):
                group.start_soon(read, part)
        return [found.get(project.path) for project in projects]

    async def risks(self, projects: Sequence[Project], seconds: float) -> Risks:
        """Return the risks that could be read within `seconds`, by path."""
        parts = _parts([_short_query(each) for each in projects if _is_folder_there(each)])
        return await self._read_all(parts, seconds, ask_risks, _risks_here)

    async def inspections(
        self, projects: Sequence[Project], seconds: float
    ) -> Mapping[bytes, Inspection | None]:
        """Return what a look into the projects finds within `seconds`, by path.

        It is None where nothing has changed since the last look.
        """
        queries = [_short_query(each) for each in projects if _is_folder_there(each)]
        parts = _parts(queries, _INSPECTED_AT_ONCE)
        return await self._read_all(parts, seconds, ask_inspections, _inspections_here)

    async def _read_all(
        self,
        parts: list[Sequence[ProjectQuery]],
        seconds: float,
        ask: Callable[[Helper, Sequence[ProjectQuery], float], list[T]],
        here: Callable[[Sequence[ProjectQuery]], list[T]],
    ) -> Mapping[bytes, T]:
        """Return the answers of `ask` within `seconds`; without a helper, those of `here`."""
        parts.reverse()  # the first projects are read first
        found: dict[bytes, T] = {}
        end = time.monotonic() + seconds
        most = max(_HANG_S, seconds / _HANG_SHARE)

        async def read() -> None:
            await to_thread.run_sync(
                self._read_parts, parts, end, most, found, ask, here,
                limiter=self._risks_threads, abandon_on_cancel=True,
            )  # fmt: skip

        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as group:
                for _ in range(min(_RISKS_THREADS, len(parts))):
                    group.start_soon(read)
        return dict(found)

    async def origins(self, projects: Iterable[Project]) -> Mapping[bytes, str]:
        """Return the origins that can be read now, without credentials, by path."""
        here = [
            project
            for project in projects
            if _is_folder_there(project) and project.observed.kind is not ProjectKind.PROJECT
        ]
        found: dict[bytes, str] = {}
        if here:
            with anyio.move_on_after(_ORIGIN_TIMEOUT_S):
                found = await to_thread.run_sync(
                    self._read_origins, here, limiter=self._origin_threads, abandon_on_cancel=True
                )
        return found

    def _read_facts(self, queries: Sequence[ProjectQuery]) -> list[ShownFacts | None]:
        if self._helper.problem():
            # Our own readers work without the helper, as long as the file systems respond.
            asked: list[CollectedFacts | None] = [
                collect_facts(path, kind, ProjectFiles.changed(files))
                for path, kind, files, _ in queries
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

    def _read_parts(
        self,
        parts: list[Sequence[ProjectQuery]],
        end: float,
        most: float,
        found: dict[bytes, T],
        ask: Callable[[Helper, Sequence[ProjectQuery], float], list[T]],
        here: Callable[[Sequence[ProjectQuery]], list[T]],
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
                read = here(queries[:1])
            else:
                try:
                    read = ask(self._helper, queries, min(left, most))
                except NoAnswer:
                    # One of several hangs its worker, so each gets its own.
                    parts += [[query] for query in reversed(queries) if len(queries) > 1]
                    continue
            found.update({query.path: facts for query, facts in zip(queries, read, strict=False)})
            if len(read) < len(queries):
                parts.append(queries[len(read) :])

    def _read_origins(self, projects: Iterable[Project]) -> dict[bytes, str]:
        end, found = time.monotonic() + _ORIGIN_SECONDS, {}
        for project in projects:
            if time.monotonic() > end:
                break
            if self._responds(project.path):
                origin = read_origin(project.path, project.observed.kind)
                if origin:
                    found[project.path] = origin
        return found


def _is_folder_there(project: Project) -> bool:
    seen = project.observed
    return seen.presence is Presence.PRESENT and seen.kind is not ProjectKind.URI


def _risks_here(queries: Sequence[ProjectQuery]) -> list[CollectedRisks]:
    return [collect_risks(each.path, each.kind) for each in queries]


def _inspections_here(queries: Sequence[ProjectQuery]) -> list[Inspection | None]:
    return [inspect(each.path, each.kind, each.state) for each in queries]


def _short_query(project: Project) -> ProjectQuery:
    seen = project.observed
    state = b"" if seen.inspection is None else seen.inspection.state
    return ProjectQuery(project.path, seen.kind, state=state)


def _parts(items: Sequence[T], size: int = MAX_PROJECTS_PER_QUESTION) -> list[Sequence[T]]:
    """Return the items in parts, each small enough for one question."""
    return [items[at : at + size] for at in range(0, len(items), size)]


def _query_for(project: Project, parents: Sequence[Parent]) -> ProjectQuery:
    holders = [parent for parent in parents if contains(parent.path, project.path)]
    innermost = max(holders, key=lambda parent: len(parent.path), default=None)
    files = innermost.project_files if innermost is not None else ()
    return ProjectQuery(project.path, project.observed.kind, files)
