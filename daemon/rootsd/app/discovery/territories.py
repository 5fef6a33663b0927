"""The trees of all parents together."""

from __future__ import annotations

from collections.abc import Mapping

from rootsd.app.discovery.linked import is_skipped
from rootsd.app.discovery.territory import Territory
from rootsd.core.parents import Parent
from rootsd.core.paths import contains


class Territories(dict[bytes, Territory]):
    """Each tree by its parent's path."""

    def drop_others(self, wanted: Mapping[bytes, Parent]) -> None:
        """Drop the trees of all but these parents, and of those that are to be another way."""
        for path in [path for path, each in self.items() if wanted.get(path) != each.parent]:
            self.pop(path).abandon()

    def behind(self) -> list[Territory]:
        """The trees of which something waits for `catch_up`."""
        return [territory for territory in self.values() if territory.is_behind()]

    def parent_of(self, path: bytes) -> bytes | None:
        """The innermost parent that holds `path`."""
        return max((parent for parent in self if contains(parent, path)), key=len, default=None)

    def are_below(self, folder: bytes) -> bool:
        """Whether a parent is `folder` or lies below it."""
        return any(contains(folder, parent) for parent in self)

    def look_at(self, path: bytes) -> None:
        """Look at one folder in the trees that have it, whatever its stamp says."""
        for territory in self.values():
            territory.look_at(path)

    def hold(self, path: bytes) -> bool:
        """Whether the folder at `path` is a project of one of the trees."""
        return any(territory.has_project(path) for territory in self.values())

    def miss(self, path: bytes) -> bool:
        """Whether `path` lies below a parent that does not skip it, and no tree holds it."""
        holder = self.get(self.parent_of(path) or b"")
        if holder is None or self.hold(path):
            return False
        return not is_skipped(path, holder.parent)
