"""Paginate lists of roots with cursors that stay valid while the list changes.

A cursor holds the last name of a page, and the next page begins after that name. So a root that
stays in the list is on exactly one page, even if the list changes between two pages. A root that
is on two pages or on none was added or removed in between, and a notification reports that.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Sequence

from mcp import MCPError
from msgspec import Struct

from rootsd.core.model import PublishedRoot
from rootsd.wire.jsonrpc import INVALID_PARAMS

PAGE_SIZE = 1000
"""More roots than most users have, because some clients read only the first page."""

# A cursor of another kind or of a later version must not be read as a name.
_CURSOR_PREFIX = b"after:"


class RootPage(Struct, frozen=True):
    """Some roots, and the cursor of the next page if there is one."""

    roots: Sequence[PublishedRoot]
    next_cursor: str | None


def page_at(roots: Sequence[PublishedRoot], cursor: str | None, size: int = PAGE_SIZE) -> RootPage:
    """Return the page at `cursor`, or the first one. Raises MCPError for an invalid cursor."""
    start = bisect_right(roots, _decode_cursor(cursor), key=_name_of) if cursor is not None else 0
    some = roots[start : start + size]
    return RootPage(some, _encode_cursor(some[-1]) if start + size < len(roots) else None)


def reject_cursor(cursor: str | None) -> None:
    """Raise MCPError if there is a cursor: a list that fits on one page never returns one."""
    if cursor is not None:
        raise _invalid_cursor()


def _name_of(root: PublishedRoot) -> str:
    return root.name


def _encode_cursor(last: PublishedRoot) -> str:
    name = last.name.encode("utf-8", "surrogatepass")  # names may hold any text
    return urlsafe_b64encode(_CURSOR_PREFIX + name).decode().rstrip("=")


def _decode_cursor(cursor: str) -> str:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        text = urlsafe_b64decode(padded)
        if text.startswith(_CURSOR_PREFIX):
            return text.removeprefix(_CURSOR_PREFIX).decode("utf-8", "surrogatepass")
    except ValueError as error:
        raise _invalid_cursor() from error
    raise _invalid_cursor()


def _invalid_cursor() -> MCPError:
    reason = "this list returned no such cursor; start again without one"
    return MCPError(INVALID_PARAMS, "invalid cursor", {"reason": reason})
