"""Keep the trees of all parents, and of the mounts inside them that discovery looks into."""

from __future__ import annotations

from collections.abc import Mapping

from rootsd.core.model import Parent
from rootsd.core.paths import contains
from rootsd.discovery.parent_tree import ParentTree
from rootsd.discovery.worktrees import is_skipped
from rootsd.disk.walk import WalkFolder


class ParentTrees(dict[bytes, ParentTree]):
    """The trees of all parents, by the paths of the parents."""

    def drop_others(self, wanted: Mapping[bytes, Parent]) -> None:
        """Drop the trees of parents that are not in `wanted`, or have other settings there."""
        for path, tree in list(self.items()):
            is_parent_now = tree.is_mount and path in wanted
            if is_parent_now or wanted.get(tree.origin.path) != tree.origin:
                self.pop(path).abandon()

    def configured(self) -> list[bytes]:
        """Return the paths of the parents, without those of mounts."""
        return [path for path, tree in self.items() if not tree.is_mount]

    def have_mounts(self) -> bool:
        """Return whether there is a mount to look into, or the tree of one."""
        return any(tree.is_mount or tree.rules.crossed for tree in self.values())

    def state(self) -> tuple[object, ...]:
        """Return a value that differs after each change that may affect `reachable_mounts`."""
        return tuple((id(tree), tree.changes, tree.rules.crossed) for tree in self.values())

    def reachable_mounts(self) -> dict[bytes, tuple[WalkFolder, ParentTree]]:
        """Return the mounts to look into, each with its place and the tree that reaches it."""
        return {
            path: (place, tree)
            for tree in self.values()
            for path in tree.rules.crossed
            if (place := tree.place_of_mount(path)) is not None
        }

    def with_deferred_work(self) -> list[ParentTree]:
        """Return the trees with deferred work."""
        return [tree for tree in self.values() if tree.has_deferred_work()]

    def parent_of(self, path: bytes) -> bytes | None:
        """Return the innermost parent that contains `path`."""
        return max((parent for parent in self if contains(parent, path)), key=len, default=None)

    def are_below(self, folder: bytes) -> bool:
        """Return whether any parent is at or below `folder`."""
        return any(contains(folder, parent) for parent in self)

    def relist(self, path: bytes) -> None:
        """List one folder in the trees that have it, even if its stamp is unchanged."""
        for tree in self.values():
            tree.relist(path)

    def hold(self, path: bytes) -> bool:
        """Return whether the folder at `path` is a project of one of the trees."""
        return any(tree.has_project(path) for tree in self.values())

    def lack(self, path: bytes) -> bool:
        """Return whether a parent contains `path` and does not skip it, but no tree holds it."""
        container = self.get(self.parent_of(path) or b"")
        if container is None or self.hold(path):
            return False
        return not is_skipped(path, container.parent)
