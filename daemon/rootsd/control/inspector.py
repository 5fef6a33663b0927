"""Look into approved projects again and again, and tell a person what has changed.

A look reads which files run by themselves, the risks, and the origin: `rootsd.helper.inspections`.
The catalog keeps what it found. Two things depend on that: a rule that names an origin or a risk,
and what a person is told about files that changed since the approval.

A worktree that only inherits its approval counts as changed where it differs from what was
accepted in its main checkout. A person is told of one content once for all worktrees.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import anyio

from rootsd.config.schema import ChangePolicy
from rootsd.control.project_reader import ProjectReader
from rootsd.core.inputs import ProjectInspected
from rootsd.core.model import ActorKind, Inspection, LapseReason, Presence, Project, Rule
from rootsd.core.rules import needs_inspection
from rootsd.state.ledger import Ledger

MAX_AT_ONCE = 64
"""With more projects, a decision does not wait: the first look comes afterwards."""
_BATCH = 128  # as of the observations of discovery: events for one transaction
_AT_ONCE = 512  # so that what was found about thousands is never in memory together
_SOON_S, _SWEEP_S = 10.0, 120.0
_PAUSE_S, _REST_S = 600.0, 0.5
_SHARE = 500  # a sweep takes at most this part of the time
_MAX_TOLD = 10_000
TellChanged = Callable[[str, Sequence[str]], None]


class Inspector:
    """Keeps the inspections in the catalog up to date.

    `tell` is called with the files that changed. `policy` says what happens to the approval.
    """

    def __init__(
        self, ledger: Ledger, reader: ProjectReader, tell: TellChanged, policy: ChangePolicy
    ) -> None:
        self._ledger = ledger
        self._reader = reader
        self._tell = tell
        self.policy = policy
        self._noted: set[bytes] = set()
        # Main checkout, file, and content. A switch between two branches is told once.
        self._told: set[tuple[bytes, str, str]] = set()
        self._wake = anyio.Event()

    def note(self, paths: Iterable[bytes]) -> None:
        """Look into these projects soon, if they are approved or a rule needs that."""
        # Without the others: a first scan observes thousands of paths.
        if noted := [project.path for project in self._needed(paths)]:
            self._noted.update(noted)
            self._wake.set()

    async def keep_looking(self, first_scan: Callable[[], Awaitable[None]]) -> None:
        """Look into all approved projects now and then, for as long as the daemon runs."""
        await first_scan()
        while True:
            started, self._noted = time.monotonic(), set()
            await self.sweep(_SWEEP_S)
            with anyio.move_on_after(max(_PAUSE_S, _SHARE * (time.monotonic() - started))):
                while True:
                    await self._wake.wait()
                    # A root that is removed must be withdrawn first. Then nobody looks into it.
                    with anyio.move_on_after(_REST_S):
                        await anyio.Event().wait()
                    self._wake = anyio.Event()
                    await self._look_at_noted()

    async def _look_at_noted(self) -> None:
        noted, self._noted = self._noted, set()
        await self.look(self._needed(noted), _SWEEP_S)

    async def sweep(self, seconds: float = _SOON_S) -> int:
        """Look into all approved projects, and those for which a rule needs that.

        Return how many could not be read in time.
        """
        return await self.look(self._needed(self._ledger.catalog.projects), seconds)

    def _needed(self, paths: Iterable[bytes]) -> list[Project]:
        """Return the projects at these paths that are approved, or that a rule needs to know."""
        catalog = self._ledger.catalog
        known = (catalog.projects.get(path) for path in paths)
        return [each for each in known if each is not None and _is_needed(each, catalog.rules)]

    async def look(self, projects: Sequence[Project], seconds: float = _SOON_S) -> int:
        """Look into these projects now, and put what was found into the catalog.

        Return how many could not be read in time.
        """
        end, unread = time.monotonic() + seconds, 0
        for start in range(0, len(projects), _AT_ONCE):
            part = projects[start : start + _AT_ONCE]
            unread += await self._look(part, end - time.monotonic())
        return unread

    async def _look(self, projects: Sequence[Project], seconds: float) -> int:
        lapse = LapseReason.CHANGED if self.policy is ChangePolicy.PENDING else None
        begun = self._ledger.catalog.projects
        projects = [begun.get(each.path, each) for each in projects]
        found = await self._reader.inspections(projects, seconds)
        now = self._ledger.catalog.projects
        events = [
            ProjectInspected(
                project.path,
                project.observed.identity,
                seen,
                lapse,
                _accepted_in_main(project, now, found),
            )
            for project in projects
            if project.path in found
            and (seen := found[project.path] or (lapse and project.observed.inspection))
            and _is_last_look(project, now.get(project.path))
        ]
        for start in range(0, len(events), _BATCH):
            before = self._ledger.catalog.projects
            await self._ledger.apply_events(events[start : start + _BATCH])
            paths = [event.path for event in events[start : start + _BATCH]]
            if new := [name for path in paths for name in self._new_changes(before.get(path))]:
                self._tell("", new)
        return len(projects) - len(found)

    def _new_changes(self, before: Project | None) -> list[str]:
        """Return the changed files of a project that were not changed `before`.

        Leave out a content of which the person was told before.
        """
        catalog = self._ledger.catalog
        now = None if before is None else catalog.projects.get(before.path)
        if before is None or now is None or now.observed.inspection is None:
            return []
        new, name = now.changed_files.keys() - before.changed_files, catalog.name_of(now)
        repository = now.observed.main_checkout or now.path
        found = {(repository, *file) for file in now.observed.inspection.files if file[0] in new}
        untold = sorted(found - self._told)
        if len(self._told) > _MAX_TOLD:
            self._told.clear()
        self._told |= found
        return [f"{name}/{path}" for _, path, _ in untold]


def _is_last_look(project: Project, now: Project | None) -> bool:
    """Return whether no other look into a project came before this one, which began earlier."""
    return now is None or now.observed.inspection == project.observed.inspection


def _is_needed(project: Project, rules: Iterable[Rule]) -> bool:
    seen = project.observed
    if seen.presence is not Presence.PRESENT or seen.incomplete is not None:
        return False
    return project.ruling.approves or needs_inspection(rules, project)


def _accepted_in_main(
    project: Project, projects: Mapping[bytes, Project], found: Mapping[bytes, Inspection | None]
) -> tuple[tuple[str, str], ...] | None:
    """Return the files that were accepted in the main checkout, if `project` only inherits."""
    ruling, main = project.ruling, projects.get(project.observed.main_checkout or b"")
    inherits = all(grant.actor.kind is ActorKind.MAIN_CHECKOUT for grant in ruling.grants)
    if main is None or ruling.decision is not None or not inherits:
        return None
    seen = found.get(main.path)
    return seen.files if main.ruling.files is None and seen is not None else main.ruling.files
