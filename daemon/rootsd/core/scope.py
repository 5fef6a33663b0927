"""Which part of the published set one connection asked for. A scope can only take away."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto

from rootsd.core.model import ProjectKind, Published, Root
from rootsd.core.paths import contains


class Uris(Enum):
    """Which URIs a connection takes in `roots/list`: every revision of MCP says `file://` alone,
    and a client may ask for the others all the same."""

    FILE = auto()
    ANY = auto()


@dataclass(frozen=True, slots=True)
class Scope:
    """What a connection asked for: a root fits by its name, by one of its tags, or by being the
    innermost root that holds `folder`. Where none of the three is given, every root fits.

    `folder` is canonical. `uris` takes no root away from the set.
    """

    names: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    folder: bytes | None = None
    uris: Uris = Uris.FILE

    @property
    def takes_all(self) -> bool:
        """Whether nothing is taken away."""
        return not self.names and not self.tags and self.folder is None


EVERYTHING = Scope()


def narrow(published: Published, scope: Scope) -> Published:
    """The roots of `published` that fit `scope`, in their order and under the same revision."""
    if scope.takes_all:
        return published
    here = holding(published, scope.folder) if scope.folder is not None else None
    roots = tuple(
        root
        for root in published.roots
        if root is here or root.name in scope.names or not scope.tags.isdisjoint(root.tags)
    )
    return Published(published.revision, roots, published.focus)


def focused(scope: Scope, tag: str | None) -> Scope:
    """What a connection with `scope` sees where the focus is on `tag`. One that asked for a part
    of the set sees that part."""
    if tag is None or not scope.takes_all:
        return scope
    return replace(scope, tags=frozenset((tag,)))


def holding(published: Published, path: bytes) -> Root | None:
    """The innermost root that is `path` or holds it; `path` is canonical."""
    around = [root for root in published.roots if is_folder(root) and contains(root.path, path)]
    return max(around, key=lambda root: len(root.path), default=None)


def is_folder(root: Root) -> bool:
    """Whether the root is a folder, so that its URI is a `file://` one."""
    return root.kind is not ProjectKind.URI


def mcp_roots(published: Published, uris: Uris) -> tuple[Root, ...]:
    """The roots that `roots/list` and `roots://approved` show."""
    return published.roots if uris is Uris.ANY else tuple(filter(is_folder, published.roots))
