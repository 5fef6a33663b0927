"""The part of the published set that one connection sees. A scope can only take roots away.

A connection asks for names, for tags, for the tag of the focus, for the root that contains its
working directory, or for the *workspace* of that root. A workspace has the root, its worktrees,
the roots that share a tag with it, and every root that a person approves while the session runs.

When a session begins, it finds the project of its working directory and stores it in its
`SessionStart`. So if that root is later denied, forgotten, replaced, or unmounted, the session
gets no other root in its place.
"""

from __future__ import annotations

from enum import Enum, StrEnum, auto

from msgspec import Struct
from msgspec.structs import replace

from rootsd.core.catalog import Catalog
from rootsd.core.model import Focus, ProjectKind, PublishedRoot, PublishedSet
from rootsd.core.paths import ancestors, contains, text_of


class UriFilter(Enum):
    """Which URIs a connection gets from `roots/list`.

    All revisions of MCP allow only `file://` URIs there, but a client may ask for others.
    """

    FILE = auto()
    ANY = auto()


class ScopeExtent(StrEnum):
    """Which roots a working directory selects."""

    ROOT = "root"
    """The root that contains it."""
    WORKSPACE = "workspace"
    """The workspace of that root; the whole set if no known project contains the directory."""


class FocusUse(Enum):
    """What the focus does to a connection."""

    NARROW = auto()
    """It narrows a connection that asked for no part of the set: the focus at the start of the
    session, or the last one that was set for running sessions, too."""
    FOLLOW = auto()
    """The connection asked for the roots with the tag of the focus, at any time. Without a focus,
    it gets none of them: the end of the focus opens no further folder."""


class SessionStart(Struct, frozen=True):
    """The facts about the start of a session on which its scope depends.

    `anchor` is the project that contained the working directory: the innermost root, or else the
    innermost known project, or None. `approvals` is the number of the newest approval by a person
    at that time. `added` are the roots that contain the other folders of the session.

    A session that moves has the start of one that begins at its new place.
    """

    anchor: bytes | None = None
    approvals: int = 0
    added: tuple[bytes, ...] = ()


NO_SESSION_START = SessionStart()


class Scope(Struct, frozen=True):
    """The part of the published set that a connection asked for.

    A root is in the scope because of its name, because of one of its tags, because it has the tag
    of the focus, or because the working directory `folder` selects it. If none of the four is
    given, every root is in the scope. But a
    root that is approved for one session is in the scope only if `sessions` has that session.

    `folder` is canonical. `extent` and `start` matter only with a `folder`. `uris` excludes no
    root from the set, but `listed_roots` applies it.
    """

    names: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    folder: bytes | None = None
    uris: UriFilter = UriFilter.FILE
    extent: ScopeExtent = ScopeExtent.ROOT
    start: SessionStart = NO_SESSION_START
    sessions: frozenset[str] = frozenset()
    focus: FocusUse = FocusUse.NARROW

    @property
    def is_full(self) -> bool:
        """Return whether the scope excludes no roots."""
        by_words = self.names or self.tags or self.focus is FocusUse.FOLLOW
        return not by_words and not self.narrows_by_folder

    @property
    def narrows_by_folder(self) -> bool:
        """Return whether the working directory narrows the set.

        It does not if the session has a workspace but no project contained its directory.
        """
        if self.folder is None:
            return False
        return self.extent is ScopeExtent.ROOT or self.start.anchor is not None


FULL_SCOPE = Scope()


def session_start_in(catalog: Catalog, folder: bytes) -> SessionStart:
    """Return the start of a session that begins now in the canonical working directory `folder`.

    A project in a place that can never be a root cannot be the anchor.
    """
    above = [folder, *ancestors(folder)]
    roots = (path for path in above if path in catalog.roots)
    root = next((path for path in roots if catalog.roots[path].session is None), None)
    known = (path for path in above if path in catalog.projects)
    anchor = root or next((p for p in known if catalog.places.why_no_root(p) is None), None)
    return SessionStart(anchor, catalog.approvals)


def apply_scope(published: PublishedSet, scope: Scope) -> PublishedSet:
    """Return the roots of `published` that are in `scope`, in order, at the same revision."""
    published = _unbound(published, scope.sessions)
    if scope.is_full:
        return published
    here = _selected_by_folder(published, scope) if scope.narrows_by_folder else frozenset[bytes]()
    roots = tuple(
        root
        for root in published.roots
        if root.path in here or root.name in scope.names or not scope.tags.isdisjoint(root.tags)
    )
    return PublishedSet(published.revision, roots, published.focus)


def bound_sessions(published: PublishedSet) -> frozenset[str]:
    """Return the ids of the sessions for which a root is approved."""
    return frozenset(root.session for root in published.roots if root.session is not None)


def _unbound(published: PublishedSet, sessions: frozenset[str]) -> PublishedSet:
    """Return `published` without the roots of other sessions."""
    if bound_sessions(published) <= sessions:
        return published
    roots = (r for r in published.roots if r.session is None or r.session in sessions)
    return PublishedSet(published.revision, tuple(roots), published.focus)


def workspace_at_start(published: PublishedSet, start: SessionStart) -> frozenset[bytes]:
    """Return the paths of the roots in the workspace of a session with this start.

    If the session has no workspace, the result is empty.
    """
    if start.anchor is None:
        return frozenset()
    added = frozenset(root.path for root in published.roots if root.path in start.added)
    return added | _workspace(published, start.anchor, start.approvals)


def _selected_by_folder(published: PublishedSet, scope: Scope) -> frozenset[bytes]:
    """Return the paths of the roots that the working directory of `scope` selects."""
    anchor, folder = scope.start.anchor, scope.folder
    assert folder is not None, "narrows_by_folder is true"
    if anchor is None:
        # No project contained the folder at the start. Take the outermost root that contains it
        # now. With an inner one, removing that root would lead to a larger root.
        containing = [root.path for root in _roots_containing(published, folder)]
        return frozenset(containing[:1])
    added = frozenset(root.path for root in published.roots if root.path in scope.start.added)
    if scope.extent is ScopeExtent.ROOT:
        return added | frozenset(root.path for root in published.roots if root.path == anchor)
    return added | _workspace(published, anchor, scope.start.approvals)


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


def apply_focus(scope: Scope, focus: Focus, start: Focus) -> Scope:
    """Return the scope of a connection with `scope` that began when the focus was `start`.

    The focus does not matter for a connection that asked for another part of the set.
    """
    match scope.focus:
        case FocusUse.FOLLOW:
            tag = focus.tag
        case FocusUse.NARROW:
            tag = focus.tag_for(start) if scope.is_full else None
    return scope if tag is None else replace(scope, tags=scope.tags | {tag})


def root_containing(published: PublishedSet, path: bytes) -> PublishedRoot | None:
    """Return the innermost root that contains `path` (canonical), or None."""
    return next(reversed(_roots_containing(published, path)), None)


def _roots_containing(published: PublishedSet, path: bytes) -> list[PublishedRoot]:
    """Return the roots that contain `path`, the outermost first."""
    containing = [
        root for root in published.roots if is_folder(root) and contains(root.path, path)
    ]
    return sorted(containing, key=lambda root: len(root.path))


def is_folder(root: PublishedRoot) -> bool:
    """Return whether the root is a folder, so that its URI is a `file://` one."""
    return root.kind is not ProjectKind.URI


def listed_roots(published: PublishedSet, uris: UriFilter) -> tuple[PublishedRoot, ...]:
    """Return the roots that `roots/list` and `roots://approved` show."""
    return published.roots if uris is UriFilter.ANY else tuple(filter(is_folder, published.roots))


def describe_scope(scope: Scope) -> list[str]:
    """Return the words that request a scope; none if it excludes nothing."""
    words = [*sorted(scope.names), *(f"tag:{tag}" for tag in sorted(scope.tags))]
    if scope.narrows_by_folder:
        path = scope.start.anchor or scope.folder or b""
        word = "workspace" if scope.extent is ScopeExtent.WORKSPACE else "cwd"
        words.append(f"{word}:{text_of(path)}")
    if scope.focus is FocusUse.FOLLOW:
        words.append("focus")
    if scope.uris is UriFilter.ANY:
        words.append("any-uri")
    return words
