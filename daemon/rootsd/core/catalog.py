"""All projects and rules at one moment, each judged; immutable, replaced whole by `plan`."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import attrgetter

from rootsd.core import names
from rootsd.core.decide import (
    Ground,
    Judgement,
    Surroundings,
    is_denied_by_person,
    is_published,
    judge,
    root_of,
    why_denied,
)
from rootsd.core.model import UNDECIDED, Decision, Identity, Presence, Project, Root, Rule, Verdict
from rootsd.core.paths import RefusedPlaces, ancestors, contains

_Inode = tuple[bytes, int, int]
_BY_NAME = attrgetter("name")
# Beyond that, to sort all is hardly slower than to find the place of each.
_FEW = 64


@dataclass(frozen=True)
class Catalog:
    """The catalogue. Build it with `Catalog.of`; change it with `rootsd.core.plan.plan`.

    `judgements` has one entry for each project, `roots` one for each published project, and
    `identities` the identity that was approved for each of those that is a folder; `denied` are
    the projects whose verdict is a denial.
    """

    projects: Mapping[bytes, Project]
    rules: tuple[Rule, ...]
    places: RefusedPlaces
    next_rule: int = 1
    judgements: Mapping[bytes, Judgement] = field(default_factory=dict)
    roots: Mapping[bytes, Root] = field(default_factory=dict)
    identities: Mapping[bytes, Identity] = field(default_factory=dict)
    denied: frozenset[bytes] = frozenset()

    @staticmethod
    def of(
        projects: Iterable[Project], rules: Iterable[Rule], places: RefusedPlaces, next_rule: int
    ) -> Catalog:
        """A catalogue with everything judged."""
        catalog = Catalog({p.path: p for p in projects}, tuple(rules), places, next_rule)
        return catalog.judged(catalog.projects, catalog)

    def judged(self, paths: Iterable[bytes], before: Catalog) -> Catalog:
        """This catalogue with `paths` judged anew and all others as they were in `before`."""
        anew = dict.fromkeys(paths)
        affected = [project for path in anew if (project := self.projects.get(path)) is not None]
        denied = _denied(self.rules, self.projects, before.denied.difference(anew), affected)
        around = _surroundings(self.rules, self.projects, denied)
        judgements, roots = dict(before.judgements), dict(before.roots)
        identities = dict(before.identities)
        for path in anew:
            judgements.pop(path, None)
            roots.pop(path, None)
            identities.pop(path, None)
        for project in affected:
            judgement = judgements[project.path] = judge(project, around)
            if is_published(project, judgement):
                roots[project.path] = root_of(project)
                if (identity := project.sighting.identity) is not None:
                    identities[project.path] = identity
        derived = judgements, roots, identities, denied
        made = Catalog(self.projects, self.rules, self.places, self.next_rule, *derived)
        made._take_over(self, ())
        made._put_in_order(before, anew)
        return made

    def replaced(
        self,
        projects: Mapping[bytes, Project],
        rules: tuple[Rule, ...],
        next_rule: int,
        changed: Iterable[bytes],
    ) -> Catalog:
        """Other projects and rules in the same places, nothing judged yet. `changed` are the paths
        where `projects` are not those of this catalogue."""
        made = Catalog(projects, rules, self.places, next_rule)
        made._take_over(self, changed)
        return made

    def _take_over(self, before: Catalog, changed: Iterable[bytes]) -> None:
        """Spare what was worked out for `before` and is the same here: of thousands of projects,
        few change at a time, and hardly in what these look at."""
        pairs = [(before.projects.get(path), self.projects.get(path)) for path in changed]
        for name, trait in _TRAITS.items():
            known = before.__dict__.get(name)
            if known is not None and all(_are_alike(trait, *pair) for pair in pairs):
                self.__dict__[name] = known

    def _put_in_order(self, before: Catalog, anew: Collection[bytes]) -> None:
        """Find the places of the few roots that came among those that stay."""
        known = before.__dict__.get("in_order")
        if known is None or len(anew) > _FEW:
            return
        kept: list[Root] = list(known)
        for path in anew:
            if (root := before.roots.get(path)) is not None:
                at = bisect_left(kept, root.name, key=_BY_NAME)
                if kept[at : at + 1] != [root]:  # two of one name: which goes is not left to luck
                    return
                del kept[at]
        for path in anew:
            if (root := self.roots.get(path)) is not None:
                insort(kept, root, key=_BY_NAME)
        self.__dict__["in_order"] = tuple(kept)

    @cached_property
    def surroundings(self) -> Surroundings:
        """What every judgement in this catalogue looks at."""
        return _surroundings(self.rules, self.projects, self.denied)

    @cached_property
    def in_order(self) -> tuple[Root, ...]:
        """The roots in the order of their names, as they are published."""
        return tuple(sorted(self.roots.values(), key=_BY_NAME))

    @cached_property
    def linked(self) -> Mapping[bytes, tuple[bytes, ...]]:
        """Main checkout -> its linked worktrees."""
        linked: dict[bytes, list[bytes]] = defaultdict(list)
        for project in self.projects.values():
            if project.sighting.main_checkout is not None:
                linked[project.sighting.main_checkout].append(project.path)
        return {main: tuple(paths) for main, paths in linked.items()}

    @cached_property
    def ending(self) -> Mapping[bytes, Decision]:
        """Path -> the approval there, of those that have an end."""
        return {
            project.path: decision
            for project in self.projects.values()
            if (decision := _end_of(project)) is not None
        }

    @cached_property
    def awaited(self) -> Mapping[bytes, Project]:
        """Path -> project, of those that are approved and not there: they may come back."""
        return {p.path: p for p in self.projects.values() if _is_awaited(p)}

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

    @cached_property
    def _away(self) -> Mapping[_Inode, tuple[Project, ...]]:
        """What was decided about and is not there now, by what any directory has."""
        away: dict[_Inode, list[Project]] = defaultdict(list)
        for project in self.projects.values():
            seen = project.sighting
            gone = seen.presence is Presence.MISSING
            if gone and seen.identity is not None and project.ruling != UNDECIDED:
                away[_inode_of(seen.identity)].append(project)
        return {inode: tuple(projects) for inode, projects in away.items()}

    @cached_property
    def _away_by_origin(self) -> Mapping[str, Project]:
        """What was approved and is not there now, by where it came from."""
        return {
            project.ruling.origin: project
            for project in self.projects.values()
            if project.ruling.origin is not None and project.sighting.presence is Presence.MISSING
        }

    def may_come_back(self, project: Project) -> bool:
        """Whether its origin may tell a person what a project that waits was before."""
        return project.ruling.origin is not None or bool(self._away_by_origin)

    def cloned_again(self, project: Project, origin: str) -> Project | None:
        """What came from the same `origin`, was approved, and is not there any more.

        A hint like `moved_from`, and a weaker one: an origin is what the author says it is.
        """
        return self._away_by_origin.get(origin) if _is_undecided(project) else None

    def moved_from(self, project: Project) -> Project | None:
        """What a project that nothing was decided about was before its folder was moved here.

        A hint for a person, who decides anew: an approval binds to the path, too.
        """
        identity = project.sighting.identity
        if identity is None or not _is_undecided(project):
            return None
        candidates = self._away.get(_inode_of(identity), ())
        same = (
            p for p in candidates if p.sighting.identity and p.sighting.identity.same_as(identity)
        )
        return next(same, None)

    def name_of(self, project: Project) -> str:
        """The frozen name, else the proposed one."""
        return project.ruling.name or self.proposed_names[project.path]

    def below(self, folder: bytes) -> Iterable[Project]:
        """The projects at or below `folder`."""
        return (p for p in self.projects.values() if contains(folder, p.path))

    def over(self, paths: Iterable[bytes]) -> Iterable[Project]:
        """The projects at `paths`, and those that hold one of them, each once."""
        folders = dict.fromkeys(
            folder
            for path in paths
            for folder in (path, *(ancestors(path) if path.startswith(b"/") else ()))
        )
        return (self.projects[folder] for folder in folders if folder in self.projects)

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


def _end_of(project: Project) -> Decision | None:
    decision = project.ruling.decision
    return decision if decision is not None and decision.expires is not None else None


def _is_awaited(project: Project) -> bool:
    return project.sighting.presence is Presence.MISSING and project.ruling.approves


# What the values that are worked out once for a catalogue look at, in each project.
_TRAITS: Mapping[str, Callable[[Project], object]] = {
    "linked": lambda project: project.sighting.main_checkout,
    "awaited": lambda project: project if _is_awaited(project) else None,
    "ending": _end_of,
    "ids": lambda project: project.id,
    "frozen_names": lambda project: project.ruling.name,
}


def _are_alike(
    trait: Callable[[Project], object], before: Project | None, after: Project | None
) -> bool:
    """Whether both have the same trait; no project has none."""
    if before is after:
        return True
    return (before and trait(before)) == (after and trait(after))


def _denied(
    rules: tuple[Rule, ...],
    projects: Mapping[bytes, Project],
    known: frozenset[bytes],
    affected: Iterable[Project],
) -> frozenset[bytes]:
    """The projects that a denial stands on: `known`, and those of `affected` that have one."""
    by_person = (project.path for project in affected if is_denied_by_person(project))
    folders = _folders_denied_by_person(projects, known.union(by_person))
    around = Surroundings(rules, folders, frozenset(), lambda _: False)
    return known.union(p.path for p in affected if why_denied(p, around) is not None)


def _surroundings(
    rules: tuple[Rule, ...], projects: Mapping[bytes, Project], denied: frozenset[bytes]
) -> Surroundings:
    """What to judge by, where `denied` are all projects that a denial stands on.

    Nothing in it refers to a catalogue: a cycle would keep each replaced catalogue in memory
    until the garbage collector comes by.
    """
    holding = (f for path in denied if path.startswith(b"/") for f in ancestors(path))
    around = Surroundings(
        rules,
        _folders_denied_by_person(projects, denied),
        frozenset(holding),
        approved=lambda _: False,  # is never asked about a main checkout: worktrees do not chain
    )
    return replace(around, approved=partial(_is_approved_checkout, projects, around))


def _folders_denied_by_person(
    projects: Mapping[bytes, Project], denied: Iterable[bytes]
) -> frozenset[bytes]:
    return frozenset(
        path for path in denied if path.startswith(b"/") and is_denied_by_person(projects[path])
    )


def _is_approved_checkout(
    projects: Mapping[bytes, Project], around: Surroundings, path: bytes
) -> bool:
    """Whether the main checkout at `path` is approved itself."""
    project = projects.get(path)
    if project is None or project.sighting.main_checkout is not None:
        return False
    return judge(project, around).verdict is Verdict.APPROVED


def _is_undecided(project: Project) -> bool:
    """Whether nothing was ever decided about it; it may have been named."""
    ruling = project.ruling
    return ruling.decision is None and ruling.lapse is None and not ruling.grants


def _inode_of(identity: Identity) -> _Inode:
    """What two identities have in common where they are the same, and others may."""
    return identity.filesystem, identity.inode, identity.owner
