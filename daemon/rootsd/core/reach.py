"""How far a change reaches: whose judgement may be another one after it, and on whom one rests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from rootsd.core.catalog import Catalog
from rootsd.core.model import Identity
from rootsd.core.paths import ancestors

# Up to here it is quicker to compare each path with each folder than to go through its ancestors.
_FEW_FOLDERS = 16


def reach(
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


def rests_on(path: bytes, catalog: Catalog) -> Mapping[bytes, Identity]:
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
