"""All projects and rules at one moment, each judged; immutable, replaced whole by `plan`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from rootsd.core import names
from rootsd.core.decide import (
    Ground,
    Judgement,
    Surroundings,
    is_published,
    judge,
    root_of,
    why_denied,
)
from rootsd.core.model import Project, ProjectKind, Root, Rule, Verdict
from rootsd.core.paths import RefusedPlaces, ancestors, contains


@dataclass(frozen=True)
class Catalog:
    """The catalogue. Build it with `Catalog.of`; change it with `rootsd.core.plan.plan`.

    `judgements` has one entry for each project, `roots` one for each published project.
    """

    projects: Mapping[bytes, Project]
    rules: tuple[Rule, ...]
    places: RefusedPlaces
    next_rule: int = 1
    judgements: Mapping[bytes, Judgement] = field(default_factory=dict)
    roots: Mapping[bytes, Root] = field(default_factory=dict)

    @staticmethod
    def of(
        projects: Iterable[Project], rules: Iterable[Rule], places: RefusedPlaces, next_rule: int
    ) -> Catalog:
        """A catalogue with everything judged."""
        catalog = Catalog({p.path: p for p in projects}, tuple(rules), places, next_rule)
        return catalog.judged(catalog.projects, {}, {})

    def judged(
        self,
        paths: Iterable[bytes],
        judgements: dict[bytes, Judgement],
        roots: dict[bytes, Root],
    ) -> Catalog:
        """This catalogue with `paths` judged anew and everything else as in the two tables.

        The tables become the catalogue's own.
        """
        around = self.surroundings
        for path in paths:
            judgements.pop(path, None)
            roots.pop(path, None)
            project = self.projects.get(path)
            if project is None:
                continue
            judgement = judgements[path] = judge(project, around)
            if is_published(project, judgement):
                roots[path] = root_of(project)
        return Catalog(self.projects, self.rules, self.places, self.next_rule, judgements, roots)

    @cached_property
    def surroundings(self) -> Surroundings:
        """What every judgement in this catalogue looks at."""
        return Surroundings(
            rules=self.rules,
            denied=self._denied_folders,
            holding_denied=self._folders_holding_denied,
            approved=self._is_approved,
        )

    @cached_property
    def _denied_folders(self) -> frozenset[bytes]:
        return frozenset(
            project.path
            for project in self.projects.values()
            if project.ruling.decision is not None
            and project.ruling.decision.verdict is Verdict.DENIED
            and project.sighting.kind is not ProjectKind.URI
        )

    @cached_property
    def _folders_holding_denied(self) -> frozenset[bytes]:
        alone = Surroundings(self.rules, self._denied_folders, frozenset(), lambda _: False)
        has_deny_rule = any(rule.verdict is Verdict.DENIED for rule in self.rules)
        denied = (
            (p.path for p in self.projects.values() if why_denied(p, alone))
            if has_deny_rule
            else self._denied_folders
        )
        return frozenset(
            folder for path in denied if path.startswith(b"/") for folder in ancestors(path)
        )

    def _is_approved(self, path: bytes) -> bool:
        """Whether the main checkout at `path` is approved itself; worktrees do not chain."""
        project = self.projects.get(path)
        if project is None or project.sighting.main_checkout is not None:
            return False
        return judge(project, self.surroundings).verdict is Verdict.APPROVED

    @cached_property
    def linked(self) -> Mapping[bytes, tuple[bytes, ...]]:
        """Main checkout -> its linked worktrees."""
        linked: dict[bytes, list[bytes]] = defaultdict(list)
        for project in self.projects.values():
            if project.sighting.main_checkout is not None:
                linked[project.sighting.main_checkout].append(project.path)
        return {main: tuple(paths) for main, paths in linked.items()}

    @cached_property
    def ids(self) -> Mapping[str, bytes]:
        """Id -> path."""
        return {project.id: project.path for project in self.projects.values()}

    @cached_property
    def frozen_names(self) -> Mapping[str, bytes]:
        """Name -> path, of the projects whose name was frozen by an approval."""
        return {p.ruling.name: p.path for p in self.projects.values() if p.ruling.name is not None}

    @cached_property
    def proposed_names(self) -> Mapping[bytes, str]:
        """Path -> the name proposed for it, for the projects without a frozen one."""
        unnamed = (p.path for p in self.projects.values() if p.ruling.name is None)
        return names.propose(unnamed, self.frozen_names)

    def name_of(self, project: Project) -> str:
        """The frozen name, else the proposed one."""
        return project.ruling.name or self.proposed_names[project.path]

    def below(self, folder: bytes) -> Iterable[Project]:
        """The projects at or below `folder`."""
        return (p for p in self.projects.values() if contains(folder, p.path))

    def is_denied(self, project: Project) -> bool:
        """Whether the verdict on `project` is a denial, its own or one that covers it."""
        return self.judgements[project.path].verdict is Verdict.DENIED

    def holding(self, path: bytes) -> Project | None:
        """The innermost project that `path` is, or lies in."""
        for folder in (path, *ancestors(path)):
            if (project := self.projects.get(folder)) is not None:
                return project
        return None

    def is_waiting(self, project: Project) -> bool:
        """Whether a person is to be asked: undecided or lapsed, there, and whole."""
        judgement = self.judgements[project.path]
        return (
            judgement.ground in (Ground.UNDECIDED, Ground.LAPSED)
            and project.sighting.absent_since is None
            and project.sighting.incomplete is None
            and project.sighting.hazard is None
        )
