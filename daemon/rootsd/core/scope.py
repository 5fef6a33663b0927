"""The part of the published set that one connection sees. A scope can only take roots away.

A connection asks for names, for tags, or for what its working directory stands for: the root that
holds it, or its *workspace*. A workspace is that root, its worktrees, the roots that share a tag
with it, and every root that a person approves while the session runs.

Which root the working directory stands for is decided once, when the session begins, and kept in
`Start`. So a removal never opens another folder: when that root is denied, forgotten, replaced or
unmounted, nothing takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto

from rootsd.core.catalog import Catalog
from rootsd.core.model import ProjectKind, PublishedRoot, PublishedSet
from rootsd.core.paths import ancestors, contains


class UriFilter(Enum):
    """Which URIs a connection takes in `roots/list`: every revision of MCP says `file://` alone,
    and a client may ask for the others all the same."""

    FILE = auto()
    ANY = auto()


class ScopeExtent(StrEnum):
    """How much of the set a working directory stands for."""

    ROOT = "root"
    """The root that holds it."""
    WORKSPACE = "workspace"
    """The workspace of that root; the whole set where no known project holds the directory."""


@dataclass(frozen=True, slots=True)
class SessionStart:
    """What a session needs to know later about its beginning.

    `anchor` is the project that held the working directory: the innermost root, or else the
    innermost known project. It is None where no known project did. `approvals` is the number of
    the newest approval by a person at that moment.
    """

    anchor: bytes | None = None
    approvals: int = 0


NO_SESSION_START = SessionStart()


@dataclass(frozen=True, slots=True)
class Scope:
    """What a connection asked for: a root fits by its name, by one of its tags, or by what the
    working directory `folder` stands for. Where none of the three is given, every root fits.

    `folder` is canonical; `extent` and `start` have a meaning only beside it. `uris` takes no root
    away from the set. A root that is approved for one session alone fits only if that session is
    in `sessions`.
    """

    names: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    folder: bytes | None = None
    uris: UriFilter = UriFilter.FILE
    extent: ScopeExtent = ScopeExtent.ROOT
    start: SessionStart = NO_SESSION_START
    sessions: frozenset[str] = frozenset()

    @property
    def is_full(self) -> bool:
        """Whether nothing is taken away."""
        return not self.names and not self.tags and not self.narrows_by_folder

    @property
    def narrows_by_folder(self) -> bool:
        """Whether the working directory narrows the set. A workspace without a project does not:
        the session gets the whole set."""
        if self.folder is None:
            return False
        return self.extent is ScopeExtent.ROOT or self.start.anchor is not None


FULL_SCOPE = Scope()


def session_start_in(catalog: Catalog, folder: bytes) -> SessionStart:
    """Return the start of a session that begins now, with its working directory in `folder`
    (canonical). A project in a place that can never be a root holds nothing."""
    above = [folder, *ancestors(folder)]
    roots = (path for path in above if path in catalog.roots)
    root = next((path for path in roots if catalog.roots[path].session is None), None)
    known = (path for path in above if path in catalog.projects)
    anchor = root or next((p for p in known if catalog.places.why_no_root(p) is None), None)
    return SessionStart(anchor, catalog.approvals)


def apply_scope(published: PublishedSet, scope: Scope) -> PublishedSet:
    """Return the roots of `published` that fit `scope`, in their order, at the same revision."""
    published = _unbound(published, scope.sessions)
    if scope.is_full:
        return published
    here = _standing_for(published, scope) if scope.narrows_by_folder else frozenset[bytes]()
    roots = tuple(
        root
        for root in published.roots
        if root.path in here or root.name in scope.names or not scope.tags.isdisjoint(root.tags)
    )
    return PublishedSet(published.revision, roots, published.focus)


def bound_sessions(published: PublishedSet) -> frozenset[str]:
    """Return the ids of the sessions for which alone a root is approved."""
    return frozenset(root.session for root in published.roots if root.session is not None)


def _unbound(published: PublishedSet, sessions: frozenset[str]) -> PublishedSet:
    """Return `published` without the roots of other sessions."""
    if bound_sessions(published) <= sessions:
        return published
    roots = (r for r in published.roots if r.session is None or r.session in sessions)
    return PublishedSet(published.revision, tuple(roots), published.focus)


def workspace(published: PublishedSet, scope: Scope) -> frozenset[bytes]:
    """Return the paths of the roots in the workspace of a session with `scope`: all roots where
    the session has no workspace of its own."""
    if scope.folder is None or scope.start.anchor is None:
        return frozenset(root.path for root in published.roots)
    return _workspace(published, scope.start.anchor, scope.start.approvals)


def workspace_at_start(published: PublishedSet, start: SessionStart) -> frozenset[bytes]:
    """Return the paths of the roots in the workspace of a session that began so; none where it
    has no workspace."""
    if start.anchor is None:
        return frozenset()
    return _workspace(published, start.anchor, start.approvals)


def _standing_for(published: PublishedSet, scope: Scope) -> frozenset[bytes]:
    """Return the paths of the roots that the working directory of `scope` stands for."""
    anchor, folder = scope.start.anchor, scope.folder
    assert folder is not None, "asked only for a scope with a folder"
    if anchor is None:
        # No project held it at the start. The outermost root that does now: when an inner one is
        # removed, the set does not grow.
        around = [root.path for root in _around(published, folder)]
        return frozenset(around[:1])
    if scope.extent is ScopeExtent.ROOT:
        return frozenset(root.path for root in published.roots if root.path == anchor)
    return _workspace(published, anchor, scope.start.approvals)


def _workspace(published: PublishedSet, anchor: bytes, approvals: int) -> frozenset[bytes]:
    root = next((root for root in published.roots if root.path == anchor), None)
    tags = frozenset(root.tags) if root else frozenset[str]()
    return frozenset(
        each.path
        for each in published.roots
        if each is root
        or each.session is not None
        or each.approval > approvals
        or not tags.isdisjoint(each.tags)
        or (root is not None and each.main_checkout == anchor)
    )


def apply_focus(scope: Scope, tag: str | None) -> Scope:
    """Return what a connection with `scope` sees while the focus is on `tag`. A connection that
    asked for a part of the set sees that part."""
    if tag is None or not scope.is_full:
        return scope
    return replace(scope, tags=frozenset((tag,)))


def root_containing(published: PublishedSet, path: bytes) -> PublishedRoot | None:
    """Return the innermost root that is `path` or holds it; `path` is canonical."""
    return next(reversed(_around(published, path)), None)


def _around(published: PublishedSet, path: bytes) -> list[PublishedRoot]:
    """Return the roots that are `path` or hold it, the outermost first."""
    around = [root for root in published.roots if is_folder(root) and contains(root.path, path)]
    return sorted(around, key=lambda root: len(root.path))


def is_folder(root: PublishedRoot) -> bool:
    """Return whether the root is a folder, so that its URI is a `file://` one."""
    return root.kind is not ProjectKind.URI


def listed_roots(published: PublishedSet, uris: UriFilter) -> tuple[PublishedRoot, ...]:
    """Return the roots that `roots/list` and `roots://approved` show."""
    return published.roots if uris is UriFilter.ANY else tuple(filter(is_folder, published.roots))
