"""All projects and rules at one moment with their verdicts. Immutable; `plan` replaces it as a
whole.

All projects and rules at one moment, each judged; immutable, replaced whole by `plan`.

How far a change reaches: whose judgement may be another one after it, and on whom one rests.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from operator import attrgetter
from types import MappingProxyType

from rootsd.core import names
from rootsd.core.decide import (
    DecisionContext,
    Judgment,
    VerdictReason,
    approved_since_ns,
    denial_of,
    is_denied_by_person,
    is_published,
    judge,
    root_of,
)
from rootsd.core.model import (
    UNDECIDED,
    Decision,
    Identity,
    Presence,
    Project,
    ProjectKind,
    PublishedRoot,
    Rule,
    SessionKey,
    Verdict,
)
from rootsd.core.paths import RefusedPlaces, ancestors, contains, is_utf8
from rootsd.core.transition import NO_STABLE_IDENTITY, has_stable_identity

_Inode = tuple[bytes, int, int]
_BY_NAME = attrgetter("name")
# Beyond that, to sort all is hardly slower than to find the place of each.
_FEW = 64


@dataclass(frozen=True)
class Catalog:
    """The catalogue. Build it with `Catalog.of`; change it with `rootsd.core.plan.plan`.

    `reserved` holds each name that a project once had, and the path of the last one that had it:
    no other project is given it unasked. `approvals` is the number of the newest approval by a
    person: see `Decision.number`.

    `judgements` has one entry for each project, `roots` one for each published project, and
    `identities` the identity that was approved for each of those that is a folder; `denied` are
    the projects whose verdict is a denial.
    """

    projects: Mapping[bytes, Project]
    rules: tuple[Rule, ...]
    places: RefusedPlaces
    next_rule: int = 1
    judgements: Mapping[bytes, Judgment] = field(default_factory=dict)
    roots: Mapping[bytes, PublishedRoot] = field(default_factory=dict)
    identities: Mapping[bytes, Identity] = field(default_factory=dict)
    denied: frozenset[bytes] = frozenset()
    approvals: int = field(default=0, compare=False)
    reserved: Mapping[str, bytes] = field(default_factory=dict, compare=False)

    @staticmethod
    def of(
        projects: Iterable[Project],
        rules: Iterable[Rule],
        places: RefusedPlaces,
        next_rule: int,
        approvals: int = 0,
        reserved: Mapping[str, bytes] = MappingProxyType({}),
    ) -> Catalog:
        """A catalogue with everything judged."""
        known = {p.path: p for p in projects}
        catalog = Catalog(
            known, tuple(rules), places, next_rule, approvals=approvals, reserved=reserved
        )
        return catalog.judged(catalog.projects, catalog)

    def judged(self, paths: Iterable[bytes], before: Catalog) -> Catalog:
        """This catalogue with `paths` judged anew and all others as they were in `before`."""
        anew = dict.fromkeys((*paths, *_differing(before._told_apart, self._told_apart)))
        affected = [project for path in anew if (project := self.projects.get(path)) is not None]
        denied = _denied_paths(self.rules, self.projects, before.denied.difference(anew), affected)
        around = _context(self.rules, self.projects, self.places, denied)
        judgements, roots = dict(before.judgements), dict(before.roots)
        identities = dict(before.identities)
        for path in anew:
            judgements.pop(path, None)
            roots.pop(path, None)
            identities.pop(path, None)
        for project in affected:
            judgement = judgements[project.path] = judge(project, around)
            if is_published(project, judgement):
                roots[project.path] = root_of(project, self._told_apart.get(project.path))
                if (identity := project.sighting.identity) is not None:
                    identities[project.path] = identity
        derived = judgements, roots, identities, denied, self.approvals, self.reserved
        made = Catalog(self.projects, self.rules, self.places, self.next_rule, *derived)
        made._take_over(self, ())
        made._put_in_order(before, anew)
        return made

    def in_places(self, places: RefusedPlaces) -> Catalog:
        """Return this catalogue with other places, and everything judged by them."""
        moved = replace(self, places=places)
        return moved.judged(moved.projects, moved)

    def replaced(
        self,
        projects: Mapping[bytes, Project],
        rules: tuple[Rule, ...],
        next_rule: int,
        approvals: int,
        changed: Iterable[bytes],
    ) -> Catalog:
        """Return a catalogue of other projects and rules in the same places; nothing is judged
        yet. `changed` are the paths where `projects` are not those of this catalogue."""
        touched = tuple(changed)
        made = Catalog(
            projects,
            rules,
            self.places,
            next_rule,
            approvals=approvals,
            reserved=self._reserved_after(projects, touched),
        )
        made._take_over(self, touched)
        return made

    def _reserved_after(
        self, projects: Mapping[bytes, Project], changed: Iterable[bytes]
    ) -> Mapping[str, bytes]:
        """Return the reserved names with those that the `changed` projects give up."""
        given_up = {}
        for path in changed:
            before, after = self.projects.get(path), projects.get(path)
            name = before.ruling.name if before is not None else None
            if name is not None and (after is None or after.ruling.name != name):
                given_up[name] = path
        return {**self.reserved, **given_up} if given_up else self.reserved

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
        kept: list[PublishedRoot] = list(known)
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
    def surroundings(self) -> DecisionContext:
        """What every judgement in this catalogue looks at."""
        return _context(self.rules, self.projects, self.places, self.denied)

    @cached_property
    def in_order(self) -> tuple[PublishedRoot, ...]:
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
    def bound(self) -> Mapping[bytes, SessionKey]:
        """Path -> the session for which alone the project is approved."""
        return {
            project.path: session
            for project in self.projects.values()
            if (session := _session_of(project)) is not None
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
        return {
            name: project.path
            for project in self.projects.values()
            if (name := self._frozen_name_of(project)) is not None
        }

    @cached_property
    def frozen_looks(self) -> Mapping[str, bytes]:
        """Look of a name -> path, of the projects whose name was frozen: see `names.look_of`."""
        return {
            names.comparison_key(name): project.path
            for project in self.projects.values()
            for name in (project.ruling.name, self._frozen_name_of(project))
            if name is not None
        }

    @cached_property
    def _told_apart(self) -> Mapping[bytes, str]:
        """Path -> name, of the projects whose stored names look the same; mostly empty."""
        stored = ((p.path, n) for p in self.projects.values() if (n := p.ruling.name) is not None)
        return names.disambiguate(stored, self._id_of)

    def _id_of(self, path: bytes) -> str:
        return self.projects[path].id

    def _frozen_name_of(self, project: Project) -> str | None:
        return self._told_apart.get(project.path) or project.ruling.name

    @cached_property
    def proposed_names(self) -> Mapping[bytes, str]:
        """Path -> the name proposed for it, for the projects without a frozen one."""
        unnamed = (p.path for p in self.projects.values() if p.ruling.name is None)
        stored = (p.path for p in self.projects.values() if p.ruling.name is not None)
        return names.propose_names(
            unnamed,
            self.frozen_looks,
            others=stored,
            reserved=self.reserved,
            id_of=self._id_of,
        )

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
        """Return the frozen name, or else the proposed one."""
        return self._frozen_name_of(project) or self.proposed_names[project.path]

    def since(self, project: Project) -> int | None:
        """Return since when `project` is approved without a break; see `decide.since_of`."""
        return approved_since_ns(project, self.judgements[project.path], self.surroundings)

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

    def why_never(self, project: Project) -> str | None:
        """Return why no approval can ever publish `project` where it is, or None."""
        if project.sighting.kind is ProjectKind.URI:
            return None
        if not is_utf8(project.path):
            return "its path is not UTF-8"
        if not has_stable_identity(project.sighting.identity):
            return NO_STABLE_IDENTITY
        return self.places.why_no_root(project.path)

    def is_waiting(self, project: Project) -> bool:
        """Whether a person is to be asked: undecided or lapsed, there, whole, and approvable."""
        return self._is_open(project) and self.why_never(project) is None

    def is_unpublishable(self, project: Project) -> bool:
        """Whether a person would be asked, if an approval could publish `project`."""
        return self._is_open(project) and self.why_never(project) is not None

    def _is_open(self, project: Project) -> bool:
        judgement = self.judgements[project.path]
        return (
            judgement.ground in (VerdictReason.UNDECIDED, VerdictReason.LAPSED)
            and project.sighting.absent_since is None
            and project.sighting.incomplete is None
            and project.sighting.hazard is None
        )


def _differing(before: Mapping[bytes, str], after: Mapping[bytes, str]) -> Iterable[bytes]:
    """Return the keys whose value is not the same in both."""
    return (path for path, _ in before.items() ^ after.items()) if before or after else ()


def _end_of(project: Project) -> Decision | None:
    decision = project.ruling.decision
    return decision if decision is not None and decision.expires is not None else None


def _session_of(project: Project) -> SessionKey | None:
    decision = project.ruling.decision
    return None if decision is None else decision.session


def _is_awaited(project: Project) -> bool:
    return project.sighting.presence is Presence.MISSING and project.ruling.approves


# What the values that are worked out once for a catalogue look at, in each project.
_TRAITS: Mapping[str, Callable[[Project], object]] = {
    "linked": lambda project: project.sighting.main_checkout,
    "awaited": lambda project: project if _is_awaited(project) else None,
    "ending": _end_of,
    "bound": _session_of,
    "ids": lambda project: project.id,
    "frozen_names": lambda project: (project.ruling.name, project.id),
    "frozen_looks": lambda project: (project.ruling.name, project.id),
    "_told_apart": lambda project: (project.ruling.name, project.id),
}


def _are_alike(
    trait: Callable[[Project], object], before: Project | None, after: Project | None
) -> bool:
    """Whether both have the same trait; no project has none."""
    if before is after:
        return True
    return (before and trait(before)) == (after and trait(after))


def _denied_paths(
    rules: tuple[Rule, ...],
    projects: Mapping[bytes, Project],
    known: frozenset[bytes],
    affected: Iterable[Project],
) -> frozenset[bytes]:
    """The projects that a denial stands on: `known`, and those of `affected` that have one."""
    by_person = (project.path for project in affected if is_denied_by_person(project))
    folders = _folders_denied_by_person(projects, known.union(by_person))
    around = DecisionContext(rules, folders, frozenset(), lambda _: None)
    return known.union(p.path for p in affected if denial_of(p, around) is not None)


def _context(
    rules: tuple[Rule, ...],
    projects: Mapping[bytes, Project],
    places: RefusedPlaces,
    denied: frozenset[bytes],
) -> DecisionContext:
    """What to judge by, where `denied` are all projects that a denial stands on.

    Nothing in it refers to a catalogue: a cycle would keep each replaced catalogue in memory
    until the garbage collector comes by.
    """
    holding = (f for path in denied if path.startswith(b"/") for f in ancestors(path))
    around = DecisionContext(
        rules,
        _folders_denied_by_person(projects, denied),
        frozenset(holding),
        approved_since=lambda _: None,  # never asked about a main checkout: worktrees do not chain
        parents=places.parents,
    )
    return replace(
        around,
        approved_since=partial(_approved_since, projects, around),
        inside=partial(_inside, projects, cache(lambda: sorted(projects))),
    )


def _inside(
    projects: Mapping[bytes, Project], in_order: Callable[[], Sequence[bytes]], folder: bytes
) -> Sequence[Project]:
    """Return the projects below `folder`, but not the one at `folder` itself."""
    paths, start = in_order(), folder + b"/"
    first = bisect_left(paths, start)
    # "0" comes right after "/".
    end = bisect_left(paths, folder + b"0", first)
    return [projects[path] for path in paths[first:end]]


def _folders_denied_by_person(
    projects: Mapping[bytes, Project], denied: Iterable[bytes]
) -> frozenset[bytes]:
    return frozenset(
        path for path in denied if path.startswith(b"/") and is_denied_by_person(projects[path])
    )


def _approved_since(
    projects: Mapping[bytes, Project], around: DecisionContext, path: bytes
) -> int | None:
    """Return since when the main checkout at `path` is approved itself, or None if it is not."""
    project = projects.get(path)
    if project is None or project.sighting.main_checkout is not None:
        return None
    return approved_since_ns(project, judge(project, around), around)


def _is_undecided(project: Project) -> bool:
    """Whether nothing was ever decided about it; it may have been named."""
    ruling = project.ruling
    return ruling.decision is None and ruling.lapse is None and not ruling.grants


def _inode_of(identity: Identity) -> _Inode:
    """What two identities have in common where they are the same, and others may."""
    return identity.filesystem, identity.inode, identity.owner


# Up to here it is quicker to compare each path with each folder than to go through its ancestors.
_FEW_FOLDERS = 16


def affected_paths(
    touched: Iterable[bytes], overruled: AbstractSet[bytes], catalog: Catalog
) -> AbstractSet[bytes]:
    """The projects whose judgement may change with `touched`, of which `overruled` were denied
    or forgotten.

    That is: themselves, what holds them (withheld when they are denied), what lies below the
    overruled ones, and the worktrees of all.
    """
    near = {*touched, *(project.path for project in catalog.over(touched))}
    if overruled:
        near.update(_below(overruled, catalog.projects))
    linked = catalog.linked
    return near.union(*(linked[path] for path in linked.keys() & near))


def identities_behind(path: bytes, catalog: Catalog) -> Mapping[bytes, Identity]:
    """The published folders, with their approved identities, by which it is settled what `path` is
    to clients: those at or above it, and for worktrees their main checkouts."""
    holding = [p for p in catalog.over((path,)) if p.path in catalog.roots]
    mains = (p.sighting.main_checkout for p in holding)
    settling = {*(p.path for p in holding), *(main for main in mains if main is not None)}
    identities = catalog.identities
    return {at: identities[at] for at in settling if at in identities}


def _below(folders: AbstractSet[bytes], paths: Iterable[bytes]) -> Iterable[bytes]:
    """Those of the paths that lie below one of the folders."""
    if len(folders) > _FEW_FOLDERS:
        return (path for path in paths if not folders.isdisjoint(_folders_above(path)))
    starts = tuple(folder + b"/" for folder in folders if folder.startswith(b"/"))
    return (path for path in paths if path.startswith(starts))


def _folders_above(path: bytes) -> Iterable[bytes]:
    return ancestors(path) if path.startswith(b"/") else ()
