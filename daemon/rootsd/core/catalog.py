"""All projects and rules at one moment, with the verdict on each project.

A catalog is immutable: `rootsd.core.plan.plan` replaces it with a new one. There may be thousands
of projects, and most changes concern few of them. So a new catalog judges only the projects that
the change can affect (see `affected_paths`), and copies the cached values that it cannot affect.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum, auto
from functools import cached_property
from itertools import islice
from operator import attrgetter
from types import MappingProxyType

from msgspec.structs import replace

from rootsd.core import names
from rootsd.core.access import Access, stricter_access
from rootsd.core.context import context_of, denied_paths
from rootsd.core.decide import (
    DecisionContext,
    Judgment,
    VerdictReason,
    approved_since_ns,
    is_published,
    judge,
    judge_behind_wall,
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
from rootsd.core.paths import RefusedPlaces, ancestors, is_utf8, paths_below
from rootsd.core.policy import NO_POLICY, MachinePolicy
from rootsd.core.transition import NO_STABLE_IDENTITY, has_stable_identity

_Inode = tuple[bytes, int]
_BY_NAME = attrgetter("name")
# With more changes, sorting everything is about as fast as single insertions.
_FEW_CHANGES = 64
# The names of this many projects that are gone stay with their paths.
MAX_GONE = 10_000


class Count(Enum):
    """A state of a project that `rootsd status` counts. A project may be in several."""

    PENDING = auto()
    UNPUBLISHABLE = auto()
    APPROVED = auto()
    DENIED = auto()
    LAPSED = auto()
    INCOMPLETE = auto()


@dataclasses.dataclass(frozen=True)
class Catalog:
    """All projects and rules, with judgments. Build it with `Catalog.of`; change it with `plan`.

    * `reserved`: the names that projects gave up, each with the path of the last project that had
      it. rootsd proposes such a name for no other project.
    * `policy`: the machine's policy. `places` has its refused places, too.
    * `approvals`: the number of the newest approval by a person; see `Decision.number`.
    * `judgments`: the judgment of each project.
    * `roots`: the published root of each published project.
    * `withheld`: the root of each approved project that only a wall can publish, because it
      contains a denied project.
    * `identities`: the approved identity of each published or withheld folder.
    * `denied`: the paths of the projects that are denied.
    """

    projects: Mapping[bytes, Project]
    rules: tuple[Rule, ...]
    places: RefusedPlaces
    next_rule: int = 1
    judgments: Mapping[bytes, Judgment] = dataclasses.field(default_factory=dict)
    roots: Mapping[bytes, PublishedRoot] = dataclasses.field(default_factory=dict)
    withheld: Mapping[bytes, PublishedRoot] = dataclasses.field(default_factory=dict)
    identities: Mapping[bytes, Identity] = dataclasses.field(default_factory=dict)
    denied: frozenset[bytes] = frozenset()
    policy: MachinePolicy = NO_POLICY
    approvals: int = dataclasses.field(default=0, compare=False)
    reserved: Mapping[str, bytes] = dataclasses.field(default_factory=dict, compare=False)

    @staticmethod
    def of(
        projects: Iterable[Project],
        rules: Iterable[Rule],
        places: RefusedPlaces,
        next_rule: int,
        approvals: int = 0,
        reserved: Mapping[str, bytes] = MappingProxyType({}),
        policy: MachinePolicy = NO_POLICY,
    ) -> Catalog:
        """Return a catalog with all projects judged."""
        known = _with_unlike_names({p.path: p for p in projects})
        catalog = Catalog(
            known,
            tuple(rules),
            places._replace(by_policy=policy.refused),
            next_rule,
            policy=policy,
            approvals=approvals,
            reserved=reserved,
        )
        return catalog.judged(catalog.projects, catalog)

    def judged(self, paths: Iterable[bytes], before: Catalog) -> Catalog:
        """Return this catalog with new judgments for `paths`, and old ones from `before`."""
        changed = dict.fromkeys(paths)
        affected = [
            project for path in changed if (project := self.projects.get(path)) is not None
        ]
        known = before.denied.difference(changed)
        denied = denied_paths(self.projects, self.rules, self.policy, known, affected)
        context = self._context(denied)
        judgments, roots = dict(before.judgments), dict(before.roots)
        withheld, identities = dict(before.withheld), dict(before.identities)
        for path in changed:
            for each in (judgments, roots, withheld, identities):
                each.pop(path, None)
        for project in affected:
            judgment = judgments[project.path] = judge(project, context)
            publishing = roots
            if judgment.reason is VerdictReason.HOLDS_DENIED:
                judgment, publishing = judge_behind_wall(project, context), withheld
            if is_published(project, judgment):
                publishing[project.path] = root_of(project, self._access_of(project, judgment))
                if (identity := project.observed.identity) is not None:
                    identities[project.path] = identity
        derived = judgments, roots, withheld, identities, denied, self.policy
        counted = self.approvals, self.reserved
        new = Catalog(self.projects, self.rules, self.places, self.next_rule, *derived, *counted)
        new._copy_cached(self, ())
        new._update_sorted_roots(before, changed)
        new._update_counts(before, changed)
        return new

    def _access_of(self, project: Project, judgment: Judgment) -> Access:
        """Return the access of a root. A worktree gets no more than its main checkout."""
        access, main = project.ruling.access, project.observed.main_checkout
        if judgment.reason is not VerdictReason.MAIN_CHECKOUT or main is None:
            return access
        return stricter_access(access, self.projects[main].ruling.access)

    def with_places(self, places: RefusedPlaces) -> Catalog:
        """Return this catalog with other refused places, and all projects judged again.

        The places that the policy refuses stay.
        """
        moved = dataclasses.replace(self, places=places._replace(by_policy=self.policy.refused))
        return moved.judged(moved.projects, moved)

    def with_policy(self, policy: MachinePolicy) -> Catalog:
        """Return this catalog under another policy, and all projects judged again."""
        places = self.places._replace(by_policy=policy.refused)
        ruled = dataclasses.replace(self, policy=policy, places=places)
        return ruled.judged(ruled.projects, ruled)

    def with_projects(
        self,
        projects: Mapping[bytes, Project],
        rules: tuple[Rule, ...],
        next_rule: int,
        approvals: int,
        changed: Iterable[bytes],
    ) -> Catalog:
        """Return a catalog of other projects and rules, without judgments.

        `changed` are the paths at which `projects` differs from the projects of this catalog.
        """
        touched = tuple(changed)
        new = Catalog(
            projects,
            rules,
            self.places,
            next_rule,
            policy=self.policy,
            approvals=approvals,
            reserved=self._reserved_after(projects, touched),
        )
        new._copy_cached(self, touched)
        new._update_sorted_paths(self, touched)
        new._update_keys(self, touched)
        return new

    def _reserved_after(
        self, projects: Mapping[bytes, Project], changed: Iterable[bytes]
    ) -> Mapping[str, bytes]:
        """Return the reserved names, including those that the `changed` projects give up.

        Without the oldest, if there are more than `MAX_GONE` and one for each project.
        """
        given_up = {}
        for path in changed:
            before, after = self.projects.get(path), projects.get(path)
            name = before.name if before is not None else None
            if name is not None and (after is None or after.name != name):
                given_up[name] = path
        if not given_up:
            return self.reserved
        reserved = {**self.reserved}
        for name in given_up:
            reserved.pop(name, None)  # it is the newest now
        reserved |= given_up
        too_many = max(0, len(reserved) - MAX_GONE - len(projects))
        for name in [*islice(reserved, too_many)]:
            del reserved[name]
        return reserved

    def _copy_cached(self, before: Catalog, changed: Iterable[bytes]) -> None:
        """Copy the cached values of `before` that are the same here.

        Few projects change at a time, and rarely in the fields on which a cached value depends.
        """
        pairs = [(before.projects.get(path), self.projects.get(path)) for path in changed]
        for name, part in _INPUTS_OF_CACHED.items():
            known = before.__dict__.get(name)
            if known is not None and all(_is_equal_in(part, *pair) for pair in pairs):
                self.__dict__[name] = known

    def _update_sorted_paths(self, before: Catalog, changed: Collection[bytes]) -> None:
        """Insert and remove the few changed paths in the sorted paths of `before`."""
        known = before.__dict__.get("sorted_paths")
        if known is None or "sorted_paths" in self.__dict__ or len(changed) > _FEW_CHANGES:
            return
        kept = [*known]
        for path in changed:
            if path in before.projects and path not in self.projects:
                del kept[bisect_left(kept, path)]
            elif path in self.projects and path not in before.projects:
                insort(kept, path)
        self.__dict__["sorted_paths"] = kept

    def _update_keys(self, before: Catalog, changed: Collection[bytes]) -> None:
        """Replace the ids and the keys of names of the changed projects in those of `before`."""
        for cached, key_of in (("ids", attrgetter("id")), ("kept_keys", _kept_key)):
            known = before.__dict__.get(cached)
            if known is None or cached in self.__dict__:
                continue
            keys = dict(known)
            for path in changed:
                if (project := before.projects.get(path)) is not None:
                    keys.pop(key_of(project), None)
            for path in changed:
                project = self.projects.get(path)
                if project is not None and (key := key_of(project)) is not None:
                    keys[key] = path
            self.__dict__[cached] = keys

    def _update_sorted_roots(self, before: Catalog, changed: Collection[bytes]) -> None:
        """Insert the few changed roots into the sorted roots of `before`."""
        known = before.__dict__.get("sorted_roots")
        if known is None or len(changed) > _FEW_CHANGES:
            return
        kept: list[PublishedRoot] = list(known)
        for path in changed:
            if (root := before.roots.get(path)) is not None:
                at = bisect_left(kept, root.name, key=_BY_NAME)
                if kept[at : at + 1] != [root]:  # two roots have this name: sort everything
                    return
                del kept[at]
        for path in changed:
            if (root := self.roots.get(path)) is not None:
                insort(kept, root, key=_BY_NAME)
        self.__dict__["sorted_roots"] = tuple(kept)

    def _update_counts(self, before: Catalog, changed: Collection[bytes]) -> None:
        """Count the changed projects again, and keep what `before` counted of all others."""
        known = before.__dict__.get("counts")
        # Each changed project is counted twice: as it was, and as it is.
        if known is None or len(changed) > max(_FEW_CHANGES, len(self.projects) // 2):
            return
        counts = Counter(known)
        counts.subtract(before._counted(changed))
        counts.update(self._counted(changed))
        self.__dict__["counts"] = counts

    @cached_property
    def counts(self) -> Mapping[Count, int]:
        """Return how many projects are in each state. A missing state has none."""
        return Counter(self._counted(self.projects))

    def _counted(self, paths: Iterable[bytes]) -> Iterator[Count]:
        """Yield each state of each project at `paths`."""
        for path in paths:
            if (project := self.projects.get(path)) is None:
                continue
            verdict = self.judgments[path].verdict
            if verdict is not Verdict.PENDING:
                yield Count.APPROVED if verdict is Verdict.APPROVED else Count.DENIED
            if project.ruling.is_lapsed:
                yield Count.LAPSED
            if project.observed.incomplete is not None:
                yield Count.INCOMPLETE
            elif self._is_undecided_and_safe(project):
                is_fit = self.why_unpublishable(project) is None
                yield Count.PENDING if is_fit else Count.UNPUBLISHABLE

    @cached_property
    def decision_context(self) -> DecisionContext:
        """Return the context that every judgment in this catalog uses."""
        return self._context(self.denied)

    def _context(self, denied: frozenset[bytes]) -> DecisionContext:
        return context_of(self.projects, self.rules, self.places, denied, self.policy)

    @cached_property
    def sorted_paths(self) -> Sequence[bytes]:
        """Return the paths of all projects, in order."""
        return sorted(self.projects)

    @cached_property
    def sorted_roots(self) -> tuple[PublishedRoot, ...]:
        """Return the roots sorted by name, as they are published."""
        return tuple(sorted(self.roots.values(), key=_BY_NAME))

    @cached_property
    def worktrees(self) -> Mapping[bytes, tuple[bytes, ...]]:
        """Return the linked worktrees of each main checkout."""
        linked: dict[bytes, list[bytes]] = defaultdict(list)
        for project in self.projects.values():
            if project.observed.main_checkout is not None:
                linked[project.observed.main_checkout].append(project.path)
        return {main: tuple(paths) for main, paths in linked.items()}

    @cached_property
    def expiring(self) -> Mapping[bytes, Decision]:
        """Return the decision for each path with an approval that has an end."""
        return {
            project.path: decision
            for project in self.projects.values()
            if (decision := _end_of(project)) is not None
        }

    @cached_property
    def session_bound(self) -> Mapping[bytes, SessionKey]:
        """Return the session for each path that is approved for one session only."""
        return {
            project.path: session
            for project in self.projects.values()
            if (session := _session_of(project)) is not None
        }

    @cached_property
    def including_git(self) -> Mapping[bytes, Project]:
        """Return the projects whose approval includes a Git directory in another checkout."""
        return {p.path: p for p in self.projects.values() if _includes_git(p)}

    @cached_property
    def named(self) -> AbstractSet[bytes]:
        """Return the folders that only a person proposed."""
        return frozenset(p.path for p in self.projects.values() if p.observed.named)

    @cached_property
    def missing_approved(self) -> Mapping[bytes, Project]:
        """Return the approved projects that are missing, by path. They may come back."""
        return {p.path: p for p in self.projects.values() if _is_missing_approved(p)}

    @cached_property
    def ids(self) -> Mapping[str, bytes]:
        """Return the path for each id."""
        return {project.id: project.path for project in self.projects.values()}

    @cached_property
    def kept_keys(self) -> Mapping[names.NameKey, bytes]:
        """Return the path for the key of each name that stays; see `names.comparison_key`."""
        return {key: p.path for p in self.projects.values() if (key := _kept_key(p)) is not None}

    @cached_property
    def proposed_names(self) -> Mapping[bytes, str]:
        """Return the proposed name for each path without a kept name."""
        unnamed = [p.path for p in self.projects.values() if p.name is None]
        if not unnamed:
            return {}
        return names.propose_names(
            unnamed,
            self.kept_keys,
            others=self.kept_keys.values(),
            reserved=self.reserved,
            id_of=lambda path: self.projects[path].id,
        )

    @cached_property
    def named_paths(self) -> Mapping[str, bytes]:
        """Return the path for each name, kept or proposed."""
        return {self.name_of(project): project.path for project in self.projects.values()}

    @cached_property
    def _missing_by_inode(self) -> Mapping[_Inode, tuple[Project, ...]]:
        """Return the missing projects with a decision, by inode."""
        away: dict[_Inode, list[Project]] = defaultdict(list)
        for project in self.projects.values():
            seen = project.observed
            gone = seen.presence is Presence.MISSING
            if gone and seen.identity is not None and project.ruling != UNDECIDED:
                away[_inode_of(seen.identity)].append(project)
        return {inode: tuple(projects) for inode, projects in away.items()}

    @cached_property
    def _missing_by_origin(self) -> Mapping[str, Project]:
        """Return the missing project for each origin, if the project was approved."""
        return {
            project.ruling.origin: project
            for project in self.projects.values()
            if project.ruling.origin is not None and project.observed.presence is Presence.MISSING
        }

    def may_match_origin(self, project: Project) -> bool:
        """Return whether the origin of `project` matters: it may be an earlier project, moved."""
        return project.ruling.origin is not None or bool(self._missing_by_origin)

    def missing_with_origin(self, project: Project, origin: str) -> Project | None:
        """Return the missing project with the same `origin` that was approved, or None.

        This hint is weaker than `moved_from`, because an author can write any origin.
        """
        return self._missing_by_origin.get(origin) if _is_undecided(project) else None

    def moved_from(self, project: Project) -> Project | None:
        """Return the missing project whose folder was moved to the undecided `project`, or None.

        This is a hint for a person, who must decide again: an approval also binds to the path.
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
        """Return the kept name of `project`, or else the proposed one."""
        return project.name or self.proposed_names[project.path]

    def approved_since(self, project: Project) -> int | None:
        """Return the time since which `project` is approved; see `decide.approved_since_ns`."""
        return approved_since_ns(project, self.judgments[project.path], self.decision_context)

    def paths_below(self, folder: bytes) -> Sequence[bytes]:
        """Return the paths below `folder`, in order, without `folder` itself."""
        return paths_below(folder, self.sorted_paths)

    def containing(self, paths: Iterable[bytes]) -> Iterable[Project]:
        """Return the projects at `paths` and the projects that contain one of them, each once."""
        folders = dict.fromkeys(
            folder
            for path in paths
            for folder in (path, *(ancestors(path) if path.startswith(b"/") else ()))
        )
        return (self.projects[folder] for folder in folders if folder in self.projects)

    def is_denied(self, project: Project) -> bool:
        """Return whether `project` is denied, by its own denial or by one that covers it."""
        return project.path in self.denied

    def denied_inside(self, folder: bytes) -> Project:
        """Return the first denied project below `folder`, which withholds its root."""
        return next(
            self.projects[path] for path in self.paths_below(folder) if path in self.denied
        )

    def project_containing(self, path: bytes) -> Project | None:
        """Return the innermost project at or above `path`, or None."""
        for folder in (path, *ancestors(path)):
            if (project := self.projects.get(folder)) is not None:
                return project
        return None

    def why_unpublishable(self, project: Project) -> str | None:
        """Return why no approval can ever publish `project` where it is, or None."""
        if project.observed.kind is ProjectKind.URI:
            return None
        if not is_utf8(project.path):
            return "its path is not UTF-8"
        if not has_stable_identity(project.observed.identity):
            return NO_STABLE_IDENTITY
        return self.places.why_no_root(project.path)

    def is_pending(self, project: Project) -> bool:
        """Return whether a person should decide about `project`.

        It is then undecided or lapsed, on the disk, complete, safe, and publishable.
        """
        return self.is_open(project) and self.why_unpublishable(project) is None

    def is_unpublishable(self, project: Project) -> bool:
        """Return whether `project` would be pending if an approval could publish it."""
        return self.is_open(project) and self.why_unpublishable(project) is not None

    def is_incomplete(self, project: Project) -> bool:
        """Return whether `project` would be pending if it were complete.

        A person may approve it by name.
        """
        return (
            project.observed.incomplete is not None
            and self._is_undecided_and_safe(project)
            and self.why_unpublishable(project) is None
        )

    def is_open(self, project: Project) -> bool:
        """Return whether `project` is undecided or lapsed, on the disk, complete, and safe."""
        return project.observed.incomplete is None and self._is_undecided_and_safe(project)

    def _is_undecided_and_safe(self, project: Project) -> bool:
        judgment = self.judgments[project.path]
        return (
            judgment.reason in (VerdictReason.UNDECIDED, VerdictReason.LAPSED)
            and project.observed.absent_since is None
            and project.observed.hazard is None
        )


def _with_unlike_names(projects: dict[bytes, Project]) -> dict[bytes, Project]:
    """Return the projects without kept names that look like another one.

    There are such names only if observed states were lost, or restored from a backup.
    """
    taken: set[names.NameKey] = set()
    for project in sorted(projects.values(), key=lambda p: (p.ruling.name is None, p.path)):
        key = _kept_key(project)
        if key in taken and project.ruling.name is None:
            unnamed = replace(project.observed, name=None)
            projects[project.path] = replace(project, observed=unnamed)
        elif key is not None:
            taken.add(key)
    return projects


def _kept_key(project: Project) -> names.NameKey | None:
    return None if project.name is None else names.comparison_key(project.name)


def _end_of(project: Project) -> Decision | None:
    decision = project.ruling.decision
    return decision if decision is not None and decision.expires is not None else None


def _session_of(project: Project) -> SessionKey | None:
    decision = project.ruling.decision
    return None if decision is None else decision.session


def _includes_git(project: Project) -> bool:
    decision = project.ruling.decision
    return decision is not None and decision.shared_git is not None


def _is_missing_approved(project: Project) -> bool:
    return project.observed.presence is Presence.MISSING and project.ruling.approves


# The part of a project that each cached value of a catalog depends on.
_INPUTS_OF_CACHED: Mapping[str, Callable[[Project], object]] = {
    "worktrees": lambda project: project.observed.main_checkout,
    "missing_approved": lambda project: project if _is_missing_approved(project) else None,
    "including_git": lambda project: project if _includes_git(project) else None,
    "named": lambda project: project.observed.named,
    "expiring": _end_of,
    "session_bound": _session_of,
    "ids": lambda project: project.id,
    "sorted_paths": lambda project: project.path,
    "kept_keys": lambda project: (project.name, project.id),
    # `reserved` changes only together with a name.
    "proposed_names": lambda project: (project.name, project.id),
    "named_paths": lambda project: (project.name, project.id),
}


def _is_equal_in(
    part: Callable[[Project], object], before: Project | None, after: Project | None
) -> bool:
    """Return whether `part` is the same for both projects. A missing project has no part."""
    if before is after:
        return True
    return (before and part(before)) == (after and part(after))


def _is_undecided(project: Project) -> bool:
    """Return whether no decision about `project` is or was in force. It may have a name."""
    ruling = project.ruling
    return ruling.decision is None and ruling.lapse is None and not ruling.grants


def _inode_of(identity: Identity) -> _Inode:
    """Return the part of an identity that is the same for all equal identities."""
    return identity.filesystem, identity.inode


def identities_behind(path: bytes, catalog: Catalog) -> Mapping[bytes, Identity]:
    """Return the approved identities of the published folders on which access to `path` depends.

    These are the folders at or above `path`, and the main checkouts of those that are worktrees.
    """
    holding = [p for p in catalog.containing((path,)) if p.path in catalog.roots]
    mains = (p.observed.main_checkout for p in holding)
    settling = {*(p.path for p in holding), *(main for main in mains if main is not None)}
    identities = catalog.identities
    return {at: identities[at] for at in settling if at in identities}
