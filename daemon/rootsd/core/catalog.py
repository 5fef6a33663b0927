"""All projects and rules at one moment with their verdicts. Immutable; `plan` replaces it as a
whole.

All projects and rules at one moment, each judged; immutable, replaced whole by `plan`.

How far a change reaches: whose judgment may be another one after it, and on whom one rests.
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
    """The catalog. Build it with `Catalog.of`; change it with `rootsd.core.plan.plan`.

    `reserved` holds each name that a project once had, and the path of the last one that had it:
    no other project is given it unasked. `approvals` is the number of the newest approval by a
    person: see `Decision.number`.

    `judgments` has one entry for each project, `roots` one for each published project, and
    `identities` the identity that was approved for each of those that is a folder; `denied` are
    the projects whose verdict is a denial.
    """

    projects: Mapping[bytes, Project]
    rules: tuple[Rule, ...]
    places: RefusedPlaces
    next_rule: int = 1
    judgments: Mapping[bytes, Judgment] = field(default_factory=dict)
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
        """A catalog with everything judged."""
        known = {p.path: p for p in projects}
        catalog = Catalog(
            known, tuple(rules), places, next_rule, approvals=approvals, reserved=reserved
        )
        return catalog.judged(catalog.projects, catalog)

    def judged(self, paths: Iterable[bytes], before: Catalog) -> Catalog:
        """This catalog with `paths` judged anew and all others as they were in `before`."""
        anew = dict.fromkeys((*paths, *_differing(before._disambiguated, self._disambiguated)))
        affected = [project for path in anew if (project := self.projects.get(path)) is not None]
        denied = _denied_paths(self.rules, self.projects, before.denied.difference(anew), affected)
        context = _context(self.rules, self.projects, self.places, denied)
        judgments, roots = dict(before.judgments), dict(before.roots)
        identities = dict(before.identities)
        for path in anew:
            judgments.pop(path, None)
            roots.pop(path, None)
            identities.pop(path, None)
        for project in affected:
            judgment = judgments[project.path] = judge(project, context)
            if is_published(project, judgment):
                roots[project.path] = root_of(project, self._disambiguated.get(project.path))
                if (identity := project.observed.identity) is not None:
                    identities[project.path] = identity
        derived = judgments, roots, identities, denied, self.approvals, self.reserved
        new = Catalog(self.projects, self.rules, self.places, self.next_rule, *derived)
        new._copy_cached(self, ())
        new._update_sorted_roots(before, anew)
        return new

    def with_places(self, places: RefusedPlaces) -> Catalog:
        """Return this catalog with other places, and everything judged by them."""
        moved = replace(self, places=places)
        return moved.judged(moved.projects, moved)

    def with_projects(
        self,
        projects: Mapping[bytes, Project],
        rules: tuple[Rule, ...],
        next_rule: int,
        approvals: int,
        changed: Iterable[bytes],
    ) -> Catalog:
        """Return a catalog of other projects and rules in the same places; nothing is judged
        yet. `changed` are the paths where `projects` are not those of this catalog."""
        touched = tuple(changed)
        new = Catalog(
            projects,
            rules,
            self.places,
            next_rule,
            approvals=approvals,
            reserved=self._reserved_after(projects, touched),
        )
        new._copy_cached(self, touched)
        return new

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

    def _copy_cached(self, before: Catalog, changed: Iterable[bytes]) -> None:
        """Spare what was worked out for `before` and is the same here: of thousands of projects,
        few change at a time, and hardly in what these look at."""
        pairs = [(before.projects.get(path), self.projects.get(path)) for path in changed]
        for name, part in _INPUTS_OF_CACHED.items():
            known = before.__dict__.get(name)
            if known is not None and all(_is_equal_in(part, *pair) for pair in pairs):
                self.__dict__[name] = known

    def _update_sorted_roots(self, before: Catalog, anew: Collection[bytes]) -> None:
        """Find the places of the few roots that came among those that stay."""
        known = before.__dict__.get("sorted_roots")
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
        self.__dict__["sorted_roots"] = tuple(kept)

    @cached_property
    def decision_context(self) -> DecisionContext:
        """What every judgment in this catalog looks at."""
        return _context(self.rules, self.projects, self.places, self.denied)

    @cached_property
    def sorted_roots(self) -> tuple[PublishedRoot, ...]:
        """The roots in the order of their names, as they are published."""
        return tuple(sorted(self.roots.values(), key=_BY_NAME))

    @cached_property
    def worktrees(self) -> Mapping[bytes, tuple[bytes, ...]]:
        """Main checkout -> its linked worktrees."""
        linked: dict[bytes, list[bytes]] = defaultdict(list)
        for project in self.projects.values():
            if project.observed.main_checkout is not None:
                linked[project.observed.main_checkout].append(project.path)
        return {main: tuple(paths) for main, paths in linked.items()}

    @cached_property
    def expiring(self) -> Mapping[bytes, Decision]:
        """Path -> the approval there, of those that have an end."""
        return {
            project.path: decision
            for project in self.projects.values()
            if (decision := _end_of(project)) is not None
        }

    @cached_property
    def session_bound(self) -> Mapping[bytes, SessionKey]:
        """Path -> the session for which alone the project is approved."""
        return {
            project.path: session
            for project in self.projects.values()
            if (session := _session_of(project)) is not None
        }

    @cached_property
    def missing_approved(self) -> Mapping[bytes, Project]:
        """Path -> project, of those that are approved and not there: they may come back."""
        return {p.path: p for p in self.projects.values() if _is_missing_approved(p)}

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
    def frozen_keys(self) -> Mapping[str, bytes]:
        """Look of a name -> path, of the projects whose name was frozen: see `names.look_of`."""
        return {
            names.comparison_key(name): project.path
            for project in self.projects.values()
            for name in (project.ruling.name, self._frozen_name_of(project))
            if name is not None
        }

    @cached_property
    def _disambiguated(self) -> Mapping[bytes, str]:
        """Path -> name, of the projects whose stored names look the same; mostly empty."""
        stored = ((p.path, n) for p in self.projects.values() if (n := p.ruling.name) is not None)
        return names.disambiguate(stored, self._id_of)

    def _id_of(self, path: bytes) -> str:
        return self.projects[path].id

    def _frozen_name_of(self, project: Project) -> str | None:
        return self._disambiguated.get(project.path) or project.ruling.name

    @cached_property
    def proposed_names(self) -> Mapping[bytes, str]:
        """Path -> the name proposed for it, for the projects without a frozen one."""
        unnamed = (p.path for p in self.projects.values() if p.ruling.name is None)
        stored = (p.path for p in self.projects.values() if p.ruling.name is not None)
        return names.propose_names(
            unnamed,
            self.frozen_keys,
            others=stored,
            reserved=self.reserved,
            id_of=self._id_of,
        )

    @cached_property
    def _missing_by_inode(self) -> Mapping[_Inode, tuple[Project, ...]]:
        """What was decided about and is not there now, by what any directory has."""
        away: dict[_Inode, list[Project]] = defaultdict(list)
        for project in self.projects.values():
            seen = project.observed
            gone = seen.presence is Presence.MISSING
            if gone and seen.identity is not None and project.ruling != UNDECIDED:
                away[_inode_of(seen.identity)].append(project)
        return {inode: tuple(projects) for inode, projects in away.items()}

    @cached_property
    def _missing_by_origin(self) -> Mapping[str, Project]:
        """What was approved and is not there now, by where it came from."""
        return {
            project.ruling.origin: project
            for project in self.projects.values()
            if project.ruling.origin is not None and project.observed.presence is Presence.MISSING
        }

    def may_match_origin(self, project: Project) -> bool:
        """Whether its origin may tell a person what a project that waits was before."""
        return project.ruling.origin is not None or bool(self._missing_by_origin)

    def missing_with_origin(self, project: Project, origin: str) -> Project | None:
        """What came from the same `origin`, was approved, and is not there any more.

        A hint like `moved_from`, and a weaker one: an origin is what the author says it is.
        """
        return self._missing_by_origin.get(origin) if _is_undecided(project) else None

    def moved_from(self, project: Project) -> Project | None:
        """What a project that nothing was decided about was before its folder was moved here.

        A hint for a person, who decides anew: an approval binds to the path, too.
        """
        identity = project.observed.identity
        if identity is None or not _is_undecided(project):
            return None
        candidates = self._missing_by_inode.get(_inode_of(identity), ())
        same = (
            p for p in candidates if p.observed.identity and p.observed.identity.same_as(identity)
        )
        return next(same, None)

    def name_of(self, project: Project) -> str:
        """Return the frozen name, or else the proposed one."""
        return self._frozen_name_of(project) or self.proposed_names[project.path]

    def approved_since(self, project: Project) -> int | None:
        """Return since when `project` is approved without a break; see `decide.since_of`."""
        return approved_since_ns(project, self.judgments[project.path], self.decision_context)

    def below(self, folder: bytes) -> Iterable[Project]:
        """The projects at or below `folder`."""
        return (p for p in self.projects.values() if contains(folder, p.path))

    def containing(self, paths: Iterable[bytes]) -> Iterable[Project]:
        """The projects at `paths`, and those that hold one of them, each once."""
        folders = dict.fromkeys(
            folder
            for path in paths
            for folder in (path, *(ancestors(path) if path.startswith(b"/") else ()))
        )
        return (self.projects[folder] for folder in folders if folder in self.projects)

    def is_denied(self, project: Project) -> bool:
        """Whether the verdict on `project` is a denial, its own or one that covers it."""
        return self.judgments[project.path].verdict is Verdict.DENIED

    def project_containing(self, path: bytes) -> Project | None:
        """The innermost project that `path` is, or lies in."""
        for folder in (path, *ancestors(path)):
            if (project := self.projects.get(folder)) is not None:
                return project
        return None

    def why_unapprovable(self, project: Project) -> str | None:
        """Return why no approval can ever publish `project` where it is, or None."""
        if project.observed.kind is ProjectKind.URI:
            return None
        if not is_utf8(project.path):
            return "its path is not UTF-8"
        if not has_stable_identity(project.observed.identity):
            return NO_STABLE_IDENTITY
        return self.places.why_no_root(project.path)

    def is_pending(self, project: Project) -> bool:
        """Whether a person is to be asked: undecided or lapsed, there, whole, and approvable."""
        return self._is_undecided_and_ready(project) and self.why_unapprovable(project) is None

    def is_unpublishable(self, project: Project) -> bool:
        """Whether a person would be asked, if an approval could publish `project`."""
        return self._is_undecided_and_ready(project) and self.why_unapprovable(project) is not None

    def _is_undecided_and_ready(self, project: Project) -> bool:
        judgment = self.judgments[project.path]
        return (
            judgment.reason in (VerdictReason.UNDECIDED, VerdictReason.LAPSED)
            and project.observed.absent_since is None
            and project.observed.incomplete is None
            and project.observed.hazard is None
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


def _is_missing_approved(project: Project) -> bool:
    return project.observed.presence is Presence.MISSING and project.ruling.approves


# What the values that are worked out once for a catalog look at, in each project.
_INPUTS_OF_CACHED: Mapping[str, Callable[[Project], object]] = {
    "worktrees": lambda project: project.observed.main_checkout,
    "missing_approved": lambda project: project if _is_missing_approved(project) else None,
    "expiring": _end_of,
    "session_bound": _session_of,
    "ids": lambda project: project.id,
    "frozen_names": lambda project: (project.ruling.name, project.id),
    "frozen_keys": lambda project: (project.ruling.name, project.id),
    "_disambiguated": lambda project: (project.ruling.name, project.id),
}


def _is_equal_in(
    part: Callable[[Project], object], before: Project | None, after: Project | None
) -> bool:
    """Whether both have the same part; no project has none."""
    if before is after:
        return True
    return (before and part(before)) == (after and part(after))


def _denied_paths(
    rules: tuple[Rule, ...],
    projects: Mapping[bytes, Project],
    known: frozenset[bytes],
    affected: Iterable[Project],
) -> frozenset[bytes]:
    """The projects that a denial stands on: `known`, and those of `affected` that have one."""
    by_person = (project.path for project in affected if is_denied_by_person(project))
    folders = _folders_denied_by_person(projects, known.union(by_person))
    context = DecisionContext(rules, folders, frozenset(), lambda _: None)
    return known.union(p.path for p in affected if denial_of(p, context) is not None)


def _context(
    rules: tuple[Rule, ...],
    projects: Mapping[bytes, Project],
    places: RefusedPlaces,
    denied: frozenset[bytes],
) -> DecisionContext:
    """What to judge by, where `denied` are all projects that a denial stands on.

    Nothing in it refers to a catalog: a cycle would keep each replaced catalog in memory
    until the garbage collector comes by.
    """
    holding = (f for path in denied if path.startswith(b"/") for f in ancestors(path))
    context = DecisionContext(
        rules,
        _folders_denied_by_person(projects, denied),
        frozenset(holding),
        approved_since=lambda _: None,  # never asked about a main checkout: worktrees do not chain
        parents=places.parents,
    )
    return replace(
        context,
        approved_since=partial(_approved_since, projects, context),
        projects_below=partial(_projects_below, projects, cache(lambda: sorted(projects))),
    )


def _projects_below(
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
    projects: Mapping[bytes, Project], context: DecisionContext, path: bytes
) -> int | None:
    """Return since when the main checkout at `path` is approved itself, or None if it is not."""
    project = projects.get(path)
    if project is None or project.observed.main_checkout is not None:
        return None
    return approved_since_ns(project, judge(project, context), context)


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
    """The projects whose judgment may change with `touched`, of which `overruled` were denied
    or forgotten.

    That is: themselves, what holds them (withheld when they are denied), what lies below the
    overruled ones, and the worktrees of all.
    """
    near = {*touched, *(project.path for project in catalog.containing(touched))}
    if overruled:
        near.update(_below(overruled, catalog.projects))
    worktrees = catalog.worktrees
    return near.union(*(worktrees[path] for path in worktrees.keys() & near))


def identities_behind(path: bytes, catalog: Catalog) -> Mapping[bytes, Identity]:
    """The published folders, with their approved identities, by which it is settled what `path` is
    to clients: those at or above it, and for worktrees their main checkouts."""
    holding = [p for p in catalog.containing((path,)) if p.path in catalog.roots]
    mains = (p.observed.main_checkout for p in holding)
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
