"""Paginate lists of roots with cursors that stay valid while the list changes.

A cursor says after which name the next page begins. So a list may change between two pages: what
is in it all the while is on one page exactly, whatever comes and goes before or after it, and
whoever was on a page twice or on none came or went meanwhile, of which a notice tells.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from mcp import MCPError

from rootsd.core.model import PublishedRoot
from rootsd.wire.jsonrpc import INVALID_PARAMS

PAGE_SIZE = 1000
"""Roots on a page. Clients that do not turn pages exist, and few people have as many."""

# A cursor of another kind, or of a later version, must not be read as a name.
_CURSOR_PREFIX = b"after:"


@dataclass(frozen=True, slots=True)
class RootPage:
    """Some roots, and the cursor of the next page where there is one."""

    roots: Sequence[PublishedRoot]
    following: str | None


def page_at(roots: Sequence[PublishedRoot], cursor: str | None, size: int = PAGE_SIZE) -> RootPage:
    """The page at `cursor`, or the first. Raises MCPError where the cursor is none of ours."""
    start = bisect_right(roots, _decode_cursor(cursor), key=_name_of) if cursor is not None else 0
    some = roots[start : start + size]
    return RootPage(some, _encode_cursor(some[-1]) if start + size < len(roots) else None)


def reject_cursor(cursor: str | None) -> None:
    """For lists of one page: no cursor was ever given out. Raises MCPError where one comes."""
    if cursor is not None:
        raise _invalid_cursor()


def _name_of(root: PublishedRoot) -> str:
    return root.name


def _encode_cursor(last: PublishedRoot) -> str:
    name = last.name.encode("utf-8", "surrogatepass")  # any text at all, and back to the same
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
    reason = "the cursor comes from no page of this list; begin without one"
    return MCPError(INVALID_PARAMS, "invalid cursor", {"reason": reason})
