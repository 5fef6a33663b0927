"""Find the projects that an order decides about, which may be more than a person typed.

The words of an order do not tell this. A glob, a rule, or a denied folder covers many projects,
the root of a whole folder shows clients every project in it, and an undo can bring all of them
back. Only the plan of the order tells: this module compares the catalog before it with the catalog
after it. An order about several projects needs a person's confirmation of exactly these
(`rootsd.control.confirmation`).

A worktree is not counted when it only follows its main checkout: when clients read it anyway as a
part of that root, or when it loses the approval that it inherited. Neither is an approved project
counted that is withheld only because of a denial inside, or no longer: the answer warns of that.

A new root also shows what no scan has reported, in a parent whose scan still runs, or in a folder
outside all parents. `FoundBelow` has the projects that a look found there.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain

from msgspec import Struct

from rootsd.core.access import Access
from rootsd.core.catalog import Catalog
from rootsd.core.changes import ChangeVerb, ProjectChange
from rootsd.core.decide import Judgment, VerdictReason
from rootsd.core.encoding import identity_fingerprint
from rootsd.core.inputs import ProjectObserved
from rootsd.core.model import (
    ObservedState,
    Presence,
    Project,
    PublishedRoot,
    Verdict,
)
from rootsd.core.names import project_id
from rootsd.core.paths import ancestors, contains
from rootsd.core.plan import Plan

_ORDER = (Verdict.DENIED, Verdict.PENDING, Verdict.APPROVED)
_TOKEN_LENGTH = 16
_BY_ITSELF = (ChangeVerb.OBSERVED, ChangeVerb.LAPSED)


class FoundBelow(Struct, frozen=True):
    """What a look below new roots found that the catalog does not have.

    * `projects`: those, by path. They stay unknown.
    * `unsearched`: the roots with more folders than the look could read.
    """

    projects: Mapping[bytes, Project] = {}
    unsearched: frozenset[bytes] = frozenset()

    @classmethod
    def of(
        cls, catalog: Catalog, seen: Iterable[ProjectObserved], unsearched: frozenset[bytes]
    ) -> FoundBelow:
        """Return what of `seen` is not in `catalog`, with the ids that it would get."""
        projects = {
            each.path: Project(
                each.path,
                project_id(each.path, catalog.ids),
                ObservedState(each.kind, each.identity, _NEVER, main_checkout=each.main_checkout),
            )
            for each in seen
            if each.path not in catalog.projects
        }
        return cls(projects, unsearched)


_NEVER = datetime.min.replace(tzinfo=UTC)  # for a project that is not in the catalog
NOTHING_FOUND = FoundBelow()


class AffectedProject(Struct, frozen=True):
    """A project that an order decides about.

    * `project`: the project after the order; the project before it, if it is dropped.
    * `before`, `after`: its verdicts. `before` is None for a folder that was unknown.
    * `within`: the root around it that is new or opens more, if the project itself stays as it is.
    * `is_wider`: whether the order gives the project more than it had.
    """

    project: Project
    before: Verdict | None
    after: Verdict
    within: bytes | None
    is_wider: bool

    @property
    def token(self) -> str:
        """Return a word that stands for this project, its folder, and its new verdict."""
        identity = identity_fingerprint(self.project.observed.identity)
        digest = sha256()
        for part in (self.project.path, self.after.value.encode(), identity.encode()):
            digest.update(len(part).to_bytes(8) + part)
        return digest.hexdigest()[:_TOKEN_LENGTH]

    @property
    def is_shown(self) -> bool:
        """Return whether clients can read the project after the order."""
        return self.within is not None or self.after is Verdict.APPROVED


class AffectedProjects(Struct, frozen=True):
    """All projects that an order decides about, by path, and the parents that it covers.

    A new root or a denial that covers a parent also covers every project that appears there later.
    `unsearched` has the new roots that may hold more projects than these.
    """

    projects: tuple[AffectedProject, ...]
    parents: tuple[bytes, ...]
    unsearched: tuple[bytes, ...] = ()

    @property
    def are_several(self) -> bool:
        """Return whether the order decides about more than one project, now or later."""
        return len(self.projects) > 1 or bool(self.parents) or bool(self.unsearched)

    @property
    def are_wider(self) -> bool:
        """Return whether the order gives any of several projects more than it had."""
        return self.are_several and any(each.is_wider for each in self.projects)

    def are_among(self, tokens: Container[str]) -> bool:
        """Return whether a person has confirmed each of these projects, by its token."""
        return all(each.token in tokens for each in self.projects)


def openable(catalog: Catalog, projects: Iterable[Project]) -> list[Project]:
    """Return those of `projects` whose approval would show clients more than they see now."""
    roots = {**catalog.withheld, **catalog.roots}
    return [
        project
        for project in projects
        if (root := roots.get(project.path)) is None or root.session or root.access is Access.READ
    ]


def affected_projects(
    before: Catalog, made: Plan, found: FoundBelow = NOTHING_FOUND
) -> AffectedProjects:
    """Return what the plan `made` of orders decides about. `before` is the catalog before it.

    `found` is what a look below the projects that it may open found.
    """
    after = made.catalog
    changed = _ordered(made) | _judged_differently(before, made)
    opened = _opened(before, made)
    shown = {
        path
        for path in chain.from_iterable(map(after.paths_below, opened))
        if path not in changed and after.projects[path].observed.presence is not Presence.MISSING
    }
    decided = changed | opened
    hidden = (
        path
        for path in found.projects
        if path not in after.projects and not opened.isdisjoint(ancestors(path))
    )
    affected = [
        each
        for path in sorted(changed.union(shown, hidden))
        if (each := _affected(found.projects.get(path), path, before, after, opened)) is not None
        and not _only_follows(each, decided)
    ]
    covering = [path for path in changed if path in opened or path in after.denied - before.denied]
    parents = after.decision_context.parents
    covered = (parent for parent in parents if any(contains(path, parent) for path in covering))
    return AffectedProjects(
        tuple(affected), tuple(covered), tuple(sorted(found.unsearched & opened))
    )


def _opened(before: Catalog, made: Plan) -> set[bytes]:
    """Return the roots that are new, or that more sessions get or may write to."""
    return {
        path
        for path in made.judged
        if (root := _root_at(path, made.catalog)) is not None
        and (
            (was := _root_at(path, before)) is None
            or _reach(was) < _reach(root)
            or (was.session and not root.session)
        )
    }


def _root_at(path: bytes, catalog: Catalog) -> PublishedRoot | None:
    """Return the root that clients or only a wall may get, or None."""
    return catalog.roots.get(path) or catalog.withheld.get(path)


def _reach(root: PublishedRoot) -> int:
    return 1 if root.access is Access.READ else 2


def _ordered(made: Plan) -> set[bytes]:
    """Return the projects that an order names, even if their verdicts stay."""
    changes = (change for change in made.changes if isinstance(change, ProjectChange))
    return {change.path for change in changes if change.verb not in _BY_ITSELF}


def _judged_differently(before: Catalog, made: Plan) -> set[bytes]:
    known, after = before.judgments, made.catalog
    return {
        path
        for path in made.judged
        if (now := after.judgments.get(path)) is not None
        and (was := known.get(path)) is not now
        and (
            was is None
            or was.verdict is not now.verdict
            or (path in before.roots) is not (path in after.roots)
        )
        and not _is_withheld(was)
        and not _is_withheld(now)
    }


def _is_withheld(judgment: Judgment | None) -> bool:
    """Return whether a denial inside withholds an approved project. The approval itself stays."""
    return judgment is not None and judgment.reason is VerdictReason.HOLDS_DENIED


def _affected(
    found: Project | None,
    path: bytes,
    before: Catalog,
    after: Catalog,
    opened: Container[bytes],
) -> AffectedProject | None:
    """Return the project at `path` as affected; None if it is gone and nobody decided about it.

    `found` is the project if only a look found it.
    """
    earlier, now = before.projects.get(path), after.projects.get(path)
    project = now or earlier or found
    assert project is not None, "the path is in one of the catalogs, or was found"
    was = before.judgments[path].verdict if earlier is not None else None
    is_gone = now is None and project.observed.presence is Presence.MISSING
    if is_gone and was is Verdict.PENDING:
        return None
    verdict = after.judgments[path].verdict if now is not None else Verdict.PENDING
    within = None
    if verdict is not Verdict.APPROVED and path.startswith(b"/"):
        within = next((each for each in ancestors(path) if each in opened), None)
    is_wider = (
        _ORDER.index(verdict) > _ORDER.index(was or Verdict.PENDING)
        or within is not None
        or path in opened
    )
    return AffectedProject(project, was, verdict, within, is_wider)


def _only_follows(each: AffectedProject, decided: Container[bytes]) -> bool:
    """Return whether a worktree only follows its main checkout, about which the order decides."""
    main = each.project.observed.main_checkout
    if main is None or main not in decided:
        return False
    has_lost_inherited = (each.before, each.after) == (Verdict.APPROVED, Verdict.PENDING)
    return contains(main, each.project.path) or has_lost_inherited
