"""Store the folders of one parent as a tree of nodes.

A `FolderNode` is one folder with its stamp, role, and children. A `FolderTree` finds nodes by path
and counts projects. This module only stores data; `rootsd.discovery.parent_tree` compares it with
the disk. A user may have tens of thousands of folders, so nodes are small and `changed_folders` is
fast.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from types import MappingProxyType

from rootsd.core.model import ProjectKind, ScanCoverage
from rootsd.disk.markers import child
from rootsd.disk.snapshot import NO_STAMP, PACKED_STAMP, FolderTraits, TreeSnapshot
from rootsd.disk.walk import FolderStamp, ProposalFilter, ProposalScope, WalkFolder, read_stamp


class FolderRole(Enum):
    """The role of a folder in the tree. `rootsd.discovery.parent_tree` explains the roles."""

    FRONTIER = "frontier"
    LEAF = "leaf"
    UNREADABLE = "unreadable"


# Constants, because looking up the member of an enum takes as long as a function call.
_FRONTIER, _LEAF = FolderRole.FRONTIER, FolderRole.LEAF
_UNREADABLE = FolderRole.UNREADABLE

# All nodes without children share this object. Each empty dictionary would take 80 bytes.
_NO_CHILDREN: Mapping[bytes, FolderNode] = MappingProxyType({})


class FolderNode:
    """One folder of the tree.

    `container` is the node of the folder that this folder is in, or None for the top of the tree.
    `zone` says what discovery may propose below this folder.
    """

    __slots__ = ("children", "container", "packed", "place", "project", "role", "zone")

    def __init__(self, place: WalkFolder, container: FolderNode | None) -> None:
        self.place = place
        self.container = container
        self.children: Mapping[bytes, FolderNode] = _NO_CHILDREN
        self.role = _UNREADABLE
        self.project: ProjectKind | None = None
        self.zone: ProposalFilter = place.zone
        self.packed: bytes | None = None

    @property
    def stamp(self) -> FolderStamp | None:
        """The stamp from the last listing, or None if the folder must be listed again."""
        if self.packed is None:
            return None
        changed_ns, modified_ns, inode, device = PACKED_STAMP.unpack(self.packed)
        return changed_ns, modified_ns, inode, device

    @stamp.setter
    def stamp(self, stamp: FolderStamp | None) -> None:
        self.packed = None if stamp is None else PACKED_STAMP.pack(*stamp)

    def add_child(self, name: bytes, node: FolderNode) -> None:
        """Add a child of this name."""
        if isinstance(self.children, dict):
            self.children[name] = node
        else:
            self.children = {name: node}

    def remove_child(self, name: bytes) -> None:
        """Remove the child of this name, if there is one."""
        if isinstance(self.children, dict):
            self.children.pop(name, None)

    @classmethod
    def from_snapshot(cls, tree: TreeSnapshot, top: WalkFolder) -> list[FolderNode]:
        """Return the nodes of a snapshot, `top` first; none for an empty snapshot."""
        folders: list[FolderNode] = []
        for number, name, traits, stamp in tree.rows():
            if folders:
                container = folders[number]
                path = child(container.place.path, name)
                left = container.place.levels_left - 1
                place = WalkFolder(path, left, container.zone, skipped=traits.skipped)
                folder = cls(place, container)
                container.add_child(name, folder)
            else:
                folder = cls(top, None)
            folder.role = _FRONTIER if traits.frontier else _LEAF
            folder.project, folder.zone = traits.kind, traits.zone
            folder.packed = stamp if stamp != NO_STAMP else None
            folders.append(folder)
        return folders

    def to_snapshot(self, signature: bytes) -> TreeSnapshot:
        """Return a snapshot of this folder and everything below it."""
        tree = TreeSnapshot(signature)
        numbers: dict[bytes, int] = {}
        for folder in self.all():
            path = folder.place.path
            container = numbers[folder.container.place.path] if folder.container is not None else 0
            if folder.role is FolderRole.UNREADABLE and folder.container is not None:
                # The snapshot has no unreadable folders. Listing the folder around it again finds
                # it, whether it is readable by then or not.
                tree.invalidate(container)
                continue
            # The snapshot does not store the members of a workspace. The next run reads the
            # workspace's files again.
            zone = (
                folder.zone
                if isinstance(folder.zone, ProposalScope)
                else ProposalScope.REPOSITORIES
            )
            stamp = folder.packed if zone is folder.zone else None
            is_frontier = folder.role is FolderRole.FRONTIER
            traits = FolderTraits(folder.project, zone, is_frontier, folder.place.skipped)
            numbers[path] = tree.add(container, os.path.basename(path), traits, stamp)
        return tree

    def all(self) -> Iterator[FolderNode]:
        """Yield this folder and everything below it. Do not change the tree until this ends."""
        stack = [self]
        while stack:
            folder = stack.pop()
            stack += folder.children.values()
            yield folder


def changed_folders(folders: Iterable[FolderNode]) -> list[FolderNode]:
    """Return the folders whose stamps changed or cannot be read, in order.

    At a start, in a sweep, and after a queue overflow, discovery spends most of its time here. So
    the loop does little more than one lstat for each folder.
    """
    others: list[FolderNode] = []
    lstat, pack = os.lstat, PACKED_STAMP.pack
    for folder in folders:
        stamp = folder.packed
        if stamp is not None:
            try:
                found = lstat(folder.place.path)
            except OSError:
                pass
            else:
                # A folder with the same inode and ctime is the same folder.
                seen = pack(found.st_ctime_ns, found.st_mtime_ns, found.st_ino, found.st_dev)
                if seen == stamp:
                    continue
        others.append(folder)
    return others


def leaf_stamp(path: bytes, before: int) -> FolderStamp | None:
    """Return the stamp of a repository's top folder, or None if it changed since `before`.

    The result is also None if the folder is out of reach. `before` is in nanoseconds.
    """
    try:
        stamp = read_stamp(path)
    except OSError:
        return None
    return stamp if stamp is not None and stamp[0] < before else None


class FolderTree:
    """The nodes of one parent, found by path."""

    def __init__(self) -> None:
        self.top: FolderNode | None = None
        self._folders: dict[bytes, FolderNode] = {}
        self._hidden: set[bytes] = set()
        # A counter, because it is read after each batch of events. Counting 5,000 folders takes
        # 0.7 ms.
        self._projects = 0

    def __contains__(self, path: bytes) -> bool:
        """Whether there is a node for `path`."""
        return path in self._folders

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self._folders)

    @property
    def coverage(self) -> ScanCoverage:
        """How much of the tree can be read."""
        if self.top is None or self.top.role is FolderRole.UNREADABLE:
            return ScanCoverage.NONE
        return ScanCoverage.PARTIAL if self._hidden else ScanCoverage.FULL

    def get(self, path: bytes) -> FolderNode | None:
        """Return the node for `path`, or None."""
        return self._folders.get(path)

    def has(self, folder: FolderNode) -> bool:
        """Return whether the tree still has this node itself, not a later node for its path."""
        return self._folders.get(folder.place.path) is folder

    def folders(self) -> list[FolderNode]:
        """Return a list of all nodes. The tree may change while the caller uses the list."""
        return list(self._folders.values())

    def count_projects(self) -> int:
        """Return the number of projects."""
        return self._projects

    def has_project(self, path: bytes) -> bool:
        """Return whether the folder at `path` is a project."""
        folder = self._folders.get(path)
        return folder is not None and folder.project is not None

    def add(self, place: WalkFolder, fallback: FolderNode | None) -> FolderNode:
        """Add a node to its container, or to `fallback` if the tree has no such container."""
        inside, _, name = place.path.rpartition(b"/")
        container = self._folders.get(inside or b"/", fallback) if not place.top else None
        self._forget(place.path)
        folder = self._folders[place.path] = FolderNode(place, container)
        if container is not None:
            container.add_child(name, folder)
        else:
            self.top = folder
        return folder

    def container_of(self, path: bytes, fallback: FolderNode | None) -> FolderNode | None:
        """Return the container of the folder at `path`, or `fallback` if the tree has none."""
        return self._folders.get(os.path.dirname(path), fallback)

    def restore(self, snapshot: TreeSnapshot, top: WalkFolder) -> list[FolderNode]:
        """Fill an empty tree with the nodes of a snapshot, and return them, the top first."""
        restored = FolderNode.from_snapshot(snapshot, top)
        self._folders = {folder.place.path: folder for folder in restored}
        self._projects = sum(folder.project is not None for folder in self._folders.values())
        self.top = restored[0]
        return restored

    def remove(self, folder: FolderNode) -> list[FolderNode]:
        """Remove a node and everything below it, and return the removed nodes."""
        if folder.container is not None:
            folder.container.remove_child(os.path.basename(folder.place.path))
        if folder is self.top:
            self.top = None
        gone = list(folder.all())
        for each in gone:
            path = each.place.path
            self._forget(path)
            self._hidden.discard(path)
        return gone

    def set_project(self, folder: FolderNode, kind: ProjectKind | None) -> None:
        """Set the kind of project that a readable folder is, or None for no project."""
        self._set_kind(folder, kind)
        self._hidden.discard(folder.place.path)

    def hide(self, folder: FolderNode) -> None:
        """Mark a folder as unreadable."""
        self._set_kind(folder, None)
        folder.role, folder.stamp = FolderRole.UNREADABLE, None
        self._hidden.add(folder.place.path)

    def _set_kind(self, folder: FolderNode, kind: ProjectKind | None) -> None:
        """Set the project kind of a node. The tree may no longer have the node."""
        if self.has(folder):
            self._projects += (kind is not None) - (folder.project is not None)
        folder.project = kind

    def _forget(self, path: bytes) -> None:
        """Remove the node for `path` from the index."""
        folder = self._folders.pop(path, None)
        if folder is not None:
            self._projects -= folder.project is not None
