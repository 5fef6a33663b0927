"""Find the projects whose judgments a change can affect."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from rootsd.core.catalog import Catalog


def affected_paths(
    touched: Iterable[bytes], overruled: AbstractSet[bytes], catalog: Catalog
) -> AbstractSet[bytes]:
    """Return the paths whose judgment may change when the `touched` projects change.

    `overruled` are those of them whose denial begins or ends. The result has the touched projects,
    the projects that contain them (because a denial inside withholds a root), the projects below
    the overruled ones, and the worktrees of all of these.
    """
    near = {*touched, *(project.path for project in catalog.containing(touched))}
    near.update(*map(catalog.paths_below, overruled))
    worktrees = catalog.worktrees
    return near.union(*(worktrees[path] for path in worktrees.keys() & near))
