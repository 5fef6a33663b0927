"""The view of a program behind the wall: the roots that it may reach, and what to mask in them.

The wall is the part of rootsd that makes the kernel enforce approvals. A program behind it reaches
the roots in its scope, and no other files of the user. A warden is the process that mounts these
roots for the program. The daemon sends it a `WallView`, and then each change of it.

A view has more roots than the published set. A root that contains a denied project is withheld
from MCP clients, because a client could read the denied project through it. But a warden masks the
denied project, so the view includes the withheld root.

A warden also shows files that belong to no root, such as toolchains and caches. So the view names
all denied folders, and the warden masks what these files show of them.

A linked worktree or a submodule needs a Git directory outside of its own folder. The view says
which one, and whether the program may use it: see `rootsd.core.shared_git`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from msgspec import Struct

from rootsd.core.catalog import Catalog
from rootsd.core.decide import VerdictReason
from rootsd.core.model import (
    Decision,
    GitEntry,
    Identity,
    Presence,
    Project,
    ProjectKind,
    PublishedRoot,
    PublishedSet,
    Verdict,
)
from rootsd.core.mount_plan import RemovalReason, RemovedRoot
from rootsd.core.paths import ancestors
from rootsd.core.scope import Scope, apply_scope, is_folder
from rootsd.core.shared_git import SharedGit, shared_git


class WallRoot(Struct, frozen=True):
    """A root for a warden to mount.

    * `identity`: the identity of the folder that was approved.
    * `denied`: the folders inside to mask, sorted. None of them is inside another.
    * `shared_git`: the Git directory outside that the root uses, if there is one.
    * `is_withheld`: whether MCP clients do not get the root, because of `denied`.
    * `ending`: the approval behind the root if it has an end. While no daemon answers, the warden
      ends it.
    """

    root: PublishedRoot
    identity: Identity
    denied: tuple[bytes, ...] = ()
    shared_git: SharedGit | None = None
    is_withheld: bool = False
    ending: Decision | None = None


class WallView(Struct, frozen=True):
    """The roots that a program behind the wall may reach, sorted by name, at one revision.

    `denied` are all denied folders, sorted. None of them is inside another.

    Two views with the same revision can differ: a denial changes the view, but not always the
    published set.
    """

    revision: int
    roots: tuple[WallRoot, ...]
    denied: tuple[bytes, ...] = ()


class WallRoots(Struct, frozen=True):
    """All roots of a catalog that wardens can mount, by path and sorted by name.

    All wardens share this object. `linked` are the roots whose `.git` is a file. For `denied`, see
    `WallView`.
    """

    catalog: Catalog
    roots: Mapping[bytes, WallRoot]
    linked: frozenset[bytes]
    denied: tuple[bytes, ...]

    @staticmethod
    def of(catalog: Catalog) -> WallRoots:
        """Return the roots of `catalog`."""
        return _all_roots(catalog, {}, _denied_folders(catalog))

    def after(self, catalog: Catalog) -> WallRoots:
        """Return the same as `of`, but faster if `catalog` differs little.

        Most changes leave the roots as they are. Then only the roots that depend on other projects
        are computed again: those with a mask, and those with a shared Git directory.
        """
        before = self.catalog
        if catalog is before:
            return self
        is_same = catalog.denied == before.denied
        denied = self.denied if is_same else _denied_folders(catalog)
        if (
            catalog.roots != before.roots
            or catalog.withheld != before.withheld
            or catalog.identities != before.identities
        ):
            return _all_roots(catalog, self.roots, denied)
        masks = _outermost_denied(catalog)
        dependent = [*(path for path in catalog.withheld if path in self.roots), *self.linked]
        fresh = {path: _wall_root(catalog, self.roots[path].root, masks) for path in dependent}
        changed = {path: root for path, root in fresh.items() if root != self.roots[path]}
        roots = {**self.roots, **changed} if changed else self.roots
        return WallRoots(catalog, roots, self.linked, denied)


def wall_view(revision: int, every: WallRoots, scope: Scope) -> WallView:
    """Return the part of `every` that is in `scope`.

    A withheld root is in the scope under the same conditions as a published one. A denial counts
    in each scope.
    """
    published = PublishedSet(revision, tuple(each.root for each in every.roots.values()))
    chosen = apply_scope(published, scope).roots
    return WallView(revision, tuple(every.roots[root.path] for root in chosen), every.denied)


def view_change(
    before: WallView, after: WallView, catalog: Catalog
) -> tuple[tuple[WallRoot, ...], tuple[RemovedRoot, ...]]:
    """Return the new and changed roots of `after`, and those that are gone by `catalog`."""
    left = {each.root.path: each for each in before.roots}
    new = tuple(each for each in after.roots if left.pop(each.root.path, None) != each)
    gone = ((path, each.root.name) for path, each in left.items())
    return new, tuple(RemovedRoot(path, name, _why_gone(catalog, path)) for path, name in gone)


def _why_gone(catalog: Catalog, path: bytes) -> RemovalReason:
    """Return why a view lost the root at `path`."""
    project = catalog.projects.get(path)
    if project is None:
        return RemovalReason.UNDECIDED
    lapse = project.ruling.lapse
    match catalog.judgments[path].verdict:
        case Verdict.DENIED:
            return RemovalReason.DENIED
        case _ if path in catalog.roots or path in catalog.withheld:
            return RemovalReason.OUT_OF_SCOPE
        case _ if project.observed.presence is not Presence.PRESENT:
            return RemovalReason.MISSING
        case _ if lapse is not None:
            return RemovalReason.LAPSED if project.ruling.is_lapsed else RemovalReason.ENDED
        case _:
            return RemovalReason.UNDECIDED


def _all_roots(
    catalog: Catalog, known: Mapping[bytes, WallRoot], denied: tuple[bytes, ...]
) -> WallRoots:
    """Return the roots of `catalog`. Reuse objects in `known`, so comparing views is cheap."""
    masks = _outermost_denied(catalog)
    every = [*catalog.roots.values(), *catalog.withheld.values()]
    roots: dict[bytes, WallRoot] = {}
    linked = []
    for root in sorted(every, key=lambda root: root.name):
        identity = catalog.identities.get(root.path)
        if identity is None or not is_folder(root):
            continue
        before = known.get(root.path)
        if identity.git is GitEntry.FILE:
            linked.append(root.path)
        elif (
            before is not None
            and (before.root, before.identity) == (root, identity)
            and (before.denied, before.is_withheld) == (masks.get(root.path, ()), False)
            and before.ending == _ending_approval(catalog, root.path)
            and root.path not in catalog.withheld
        ):
            roots[root.path] = before
            continue
        roots[root.path] = _wall_root(catalog, root, masks)
    return WallRoots(catalog, roots, frozenset(linked), denied)


def _wall_root(
    catalog: Catalog, root: PublishedRoot, masks: Mapping[bytes, tuple[bytes, ...]]
) -> WallRoot:
    return WallRoot(
        root,
        catalog.identities[root.path],
        masks.get(root.path, ()),
        shared_git(catalog, catalog.projects[root.path]),
        root.path in catalog.withheld,
        _ending_approval(catalog, root.path),
    )


def _ending_approval(catalog: Catalog, path: bytes) -> Decision | None:
    """Return the approval with an end that publishes `path`: its own, or its main checkout's."""
    judgment = catalog.judgments[path]
    match judgment.reason, judgment.by:
        case VerdictReason.MAIN_CHECKOUT, bytes() as main:
            return catalog.expiring.get(main)
        case _:
            return catalog.expiring.get(path)


def _outermost_denied(catalog: Catalog) -> Mapping[bytes, tuple[bytes, ...]]:
    """Return the outermost denied folders inside each withheld root.

    Leave out a folder that is gone, because nothing can be mounted over it. If it returns, the
    next view has it.
    """
    if not catalog.withheld:
        return {}
    inside: dict[bytes, list[bytes]] = defaultdict(list)
    present = {path for path in catalog.denied if _is_folder_there(catalog.projects[path])}
    for path in sorted(present):
        above = [*ancestors(path)]
        if not present.isdisjoint(above):
            continue
        for folder in above:
            if folder in catalog.withheld:
                inside[folder].append(path)
    return {folder: tuple(paths) for folder, paths in inside.items()}


def _denied_folders(catalog: Catalog) -> tuple[bytes, ...]:
    """Return the outermost denied folders. Those that are gone count, too: they may return."""
    denied = catalog.denied
    return tuple(
        path
        for path in sorted(denied)
        if catalog.projects[path].observed.kind is not ProjectKind.URI
        and denied.isdisjoint(ancestors(path))
    )


def _is_folder_there(project: Project) -> bool:
    seen = project.observed
    return seen.kind is not ProjectKind.URI and seen.presence is not Presence.MISSING
