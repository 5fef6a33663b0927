"""Turn the scope that an MCP session or a warden asks for into a `Scope`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from rootsd.core.labels import text_of_label
from rootsd.core.model import PublishedSet
from rootsd.core.paths import bytes_of, text_of
from rootsd.core.scope import (
    FocusUse,
    Scope,
    ScopeExtent,
    SessionStart,
    UriFilter,
    root_containing,
)
from rootsd.wire.hello import Hello, ResumeState


async def resolve_scope(
    hello: Hello,
    canonical: Callable[[bytes], Awaitable[bytes]],
    session_start: Callable[[bytes], Awaitable[SessionStart]],
) -> Scope:
    """Return the scope that `hello` asks for.

    `canonical` makes a path canonical. `session_start` returns the start of a session that begins
    now in a canonical folder. Raises ValueError for a path that is not absolute.
    """
    requested = hello.scope
    uris = UriFilter.ANY if requested.any_uri else UriFilter.FILE
    focus = FocusUse.FOLLOW if requested.focus else FocusUse.NARROW
    # A person may have typed the label that rootsd shows for a name with escapes.
    names = frozenset(text_of_label(name) or name for name in requested.names)
    scope = Scope(names, frozenset(requested.tags), uris=uris, focus=focus)
    if requested.workspace is not None:
        folder, extent = (
            parse_absolute("workspace", requested.workspace),
            ScopeExtent.WORKSPACE,
        )
    elif requested.cwd is not None:
        folder, extent = parse_absolute("cwd", requested.cwd), ScopeExtent.ROOT
    else:
        return scope
    found = await canonical(folder)
    if hello.start is None:
        start = await session_start(found)
    else:
        text = hello.start.anchor
        anchor = None if text is None else parse_absolute("anchor", text)
        added = tuple(parse_absolute("added", path) for path in hello.start.added)
        start = SessionStart(anchor, hello.start.approvals, added)
    return replace(scope, folder=found, extent=extent, start=start)


class SessionMove(NamedTuple):
    """A session's scope and start after a move, or None if it stays. `outside` are those of its
    folders that are in no root.
    """

    scope: Scope | None
    outside: tuple[str, ...]
    start: SessionStart | None = None


async def move_scope(
    first: Scope,
    before: SessionStart,
    folders: Sequence[str],
    canonical: Callable[[bytes], Awaitable[bytes]],
    session_start: Callable[[bytes], Awaitable[SessionStart]],
    current: Callable[[], Awaitable[PublishedSet]],
) -> SessionMove:
    """Return the scope of a session that began with `first` and works in `folders` now.

    `before` is its start until now. A session that stays in its root keeps the approvals of that
    start, or it would lose the roots that were approved since.

    A move never widens: the working folder must be in a root of the set that `current` verifies.
    Without folders, the session is back where it began. A scope without a working directory stays
    as it is. For the other arguments, see `resolve_scope`.
    """
    if not folders:
        return SessionMove(first, ())
    found = [await canonical(parse_absolute("folder", folder)) for folder in folders]
    starts = [await session_start(folder) for folder in found]
    published = await current()
    # A worktree that nobody knows yet may lie in the root of another tree.
    containing = [root_containing(published, folder) for folder in found]
    roots = [
        root if root is not None and root.path == start.anchor else None
        for root, start in zip(containing, starts, strict=True)
    ]
    outside = tuple(text for text, root in zip(folders, roots, strict=True) if root is None)
    if roots[0] is None:
        return SessionMove(None, outside)
    added = tuple(dict.fromkeys(root.path for root in roots[1:] if root is not None))
    stays = roots[0].path == before.anchor
    approvals = before.approvals if stays else starts[0].approvals
    start = SessionStart(roots[0].path, approvals, added)
    scope = first if first.folder is None else replace(first, folder=found[0], start=start)
    return SessionMove(scope, outside, start)


def resume_state(scope: Scope) -> ResumeState | None:
    """Return the start of a session, to send to its peer; None for a scope without a folder."""
    if scope.folder is None:
        return None
    anchor = scope.start.anchor
    added = tuple(map(text_of, scope.start.added))
    return ResumeState(None if anchor is None else text_of(anchor), scope.start.approvals, added)


def parse_absolute(field: str, path: str) -> bytes:
    """Return the bytes of an absolute path. Raises ValueError with the name of the `field`."""
    if not path.startswith("/") or "\0" in path:
        raise ValueError(f"{field} must be an absolute path")
    return bytes_of(path)
