"""Find the projects whose judgments a change can affect."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from rootsd.core.catalog import Catalog
from rootsd.core.paths import ancestors

# For at most this many folders, comparing each path with each of them is faster than checking all
# folders above each path.
_FEW_FOLDERS = 16


def affected_paths(
    touched: Iterable[bytes], overruled: AbstractSet[bytes], catalog: Catalog
) -> AbstractSet[bytes]:
    """Return the paths whose judgment may change when the `touched` projects change.

    `overruled` are those of them whose denial begins or ends. The result has the touched projects,
    the projects that contain them (because a denial inside withholds a root), the projects below
    the overruled ones, and the worktrees of all of these.
    """
    near = {*touched, *(project.path for project in catalog.containing(touched))}
    if overruled:
        near.update(paths_below(overruled, catalog.projects))
    worktrees = catalog.worktrees
    return near.union(*(worktrees[path] for path in worktrees.keys() & near))


def paths_below(folders: AbstractSet[bytes], paths: Iterable[bytes]) -> Iterable[bytes]:
    """Return the paths that are below one of the folders."""
    if len(folders) > _FEW_FOLDERS:
        return (path for path in paths if not folders.isdisjoint(_folders_above(path)))
    starts = tuple(folder + b"/" for folder in folders if folder.startswith(b"/"))
    return (path for path in paths if path.startswith(starts))


def _folders_above(path: bytes) -> Iterable[bytes]:
    return ancestors(path) if path.startswith(b"/") else ()
