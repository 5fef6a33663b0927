"""Turn the scope that an MCP session or a warden asks for into a `Scope`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from rootsd.core.labels import text_of_label
from rootsd.core.paths import bytes_of, text_of
from rootsd.core.scope import FocusUse, Scope, ScopeExtent, SessionStart, UriFilter
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
        start = SessionStart(anchor, hello.start.approvals)
    return replace(scope, folder=found, extent=extent, start=start)


def resume_state(scope: Scope) -> ResumeState | None:
    """Return the start of a session, to send to its peer; None for a scope without a folder."""
    if scope.folder is None:
        return None
    anchor = scope.start.anchor
    return ResumeState(None if anchor is None else text_of(anchor), scope.start.approvals)


def parse_absolute(field: str, path: str) -> bytes:
    """Return the bytes of an absolute path. Raises ValueError with the name of the `field`."""
    if not path.startswith("/") or "\0" in path:
        raise ValueError(f"{field} must be an absolute path")
    return bytes_of(path)
