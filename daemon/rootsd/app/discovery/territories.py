"""The trees of all parents together."""

from __future__ import annotations

from rootsd.app.discovery.territory import Territory
from rootsd.core.paths import contains


class Territories(dict[bytes, Territory]):
    """Each tree by its parent's path."""

    def parent_of(self, path: bytes) -> bytes | None:
        """The innermost parent that holds `path`."""
        return max((parent for parent in self if contains(parent, path)), key=len, default=None)

    def are_below(self, folder: bytes) -> bool:
        """Whether a parent is `folder` or lies below it."""
        return any(contains(folder, parent) for parent in self)

    def hold(self, path: bytes) -> bool:
        """Whether the folder at `path` is a project of one of the trees."""
        return any(territory.has_project(path) for territory in self.values())
