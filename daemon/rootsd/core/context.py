"""Collect what a judgment depends on besides the project itself.

A denial covers the projects below it, so the denied projects are found first. A context never
refers to a catalog. Otherwise a reference cycle would keep each replaced catalog in memory until
the garbage collector runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial

from msgspec.structs import replace

from rootsd.core.decide import (
    DecisionContext,
    approved_since_ns,
    denial_of,
    is_denied_by_person,
    judge_behind_wall,
)
from rootsd.core.model import Project, Rule
from rootsd.core.paths import RefusedPlaces, ancestors, paths_below
from rootsd.core.policy import MachinePolicy


def denied_paths(
    projects: Mapping[bytes, Project],
    rules: tuple[Rule, ...],
    policy: MachinePolicy,
    known: frozenset[bytes],
    affected: Iterable[Project],
) -> frozenset[bytes]:
    """Return the paths that a denial covers: those in `known`, and those of `affected`."""
    affected = tuple(affected)
    by_person = (project.path for project in affected if is_denied_by_person(project))
    folders = _folders_denied_by_person(projects, known.union(by_person))
    context = DecisionContext(rules, folders, frozenset(), lambda _: None, policy=policy)
    return known.union(p.path for p in affected if denial_of(p, context) is not None)


def context_of(
    projects: Mapping[bytes, Project],
    rules: tuple[Rule, ...],
    places: RefusedPlaces,
    denied: frozenset[bytes],
    policy: MachinePolicy,
) -> DecisionContext:
    """Return the context for judgments. `denied` are all projects that a denial covers."""
    holding = (f for path in denied if path.startswith(b"/") for f in ancestors(path))
    context = DecisionContext(
        rules,
        _folders_denied_by_person(projects, denied),
        frozenset(holding),
        approved_since=lambda _: None,  # not needed to judge a main checkout
        parents=places.parents,
        policy=policy,
    )
    return replace(
        context,
        approved_since=partial(_approved_since, projects, context),
        projects_below=partial(_projects_below, projects, cache(lambda: sorted(projects))),
    )


def _projects_below(
    projects: Mapping[bytes, Project], in_order: Callable[[], Sequence[bytes]], folder: bytes
) -> Sequence[Project]:
    """Return the projects below `folder`, without the one at `folder` itself."""
    return [projects[path] for path in paths_below(folder, in_order())]


def _folders_denied_by_person(
    projects: Mapping[bytes, Project], denied: Iterable[bytes]
) -> frozenset[bytes]:
    return frozenset(
        path for path in denied if path.startswith(b"/") and is_denied_by_person(projects[path])
    )


def _approved_since(
    projects: Mapping[bytes, Project], context: DecisionContext, path: bytes
) -> int | None:
    """Return the time since which the main checkout at `path` is approved, or None.

    A checkout that is withheld only because it contains a denied project still counts: the denial
    is of that project, and not of the worktrees.
    """
    project = projects.get(path)
    if project is None or project.observed.main_checkout is not None:
        return None
    return approved_since_ns(project, judge_behind_wall(project, context), context)
