"""The nodes of a territory's tree."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from types import MappingProxyType

from rootsd.core.model import ProjectKind
from rootsd.host.disk.index import NO_STAMP, KeptTree, Traits
from rootsd.host.disk.markers import child
from rootsd.host.disk.walk import Place, Proposed, Stamp, Zone, stamp_of


class Role(Enum):
    """What a folder is to the tree."""

    FRONTIER = "frontier"
    LEAF = "leaf"
    UNREADABLE = "unreadable"


# Of most folders: an empty dictionary of its own takes 80 bytes.
_NONE: Mapping[bytes, Folder] = MappingProxyType({})
# A stamp takes 80 bytes so, and 160 as a tuple of numbers. Moments may lie before 1970.
_PACKED = struct.Struct("=2q2Q")


class Folder:
    """One folder of the tree; `zone` is that of the folders in it."""

    __slots__ = ("above", "kids", "packed", "place", "project", "role", "zone")

    def __init__(self, place: Place, above: Folder | None) -> None:
        self.place = place
        self.above = above
        self.kids: Mapping[bytes, Folder] = _NONE
        self.role = Role.UNREADABLE
        self.project: ProjectKind | None = None
        self.zone: Proposed = place.zone
        self.packed: bytes | None = None

    @property
    def stamp(self) -> Stamp | None:
        """What the folder was when it was looked at; None where it has to be listed again."""
        if self.packed is None:
            return None
        changed_ns, modified_ns, inode, device = _PACKED.unpack(self.packed)
        return changed_ns, modified_ns, inode, device

    @stamp.setter
    def stamp(self, stamp: Stamp | None) -> None:
        self.packed = None if stamp is None else _PACKED.pack(*stamp)

    def adopt(self, name: bytes, kid: Folder) -> None:
        """Hold a folder of this name."""
        if isinstance(self.kids, dict):
            self.kids[name] = kid
        else:
            self.kids = {name: kid}

    def dismiss(self, name: bytes) -> None:
        """Hold none of this name any more."""
        if isinstance(self.kids, dict):
            self.kids.pop(name, None)

    @classmethod
    def planted(cls, tree: KeptTree, top: Place) -> list[Folder]:
        """The folders that a tree of an earlier life had, `top` first; none for an empty one."""
        folders: list[Folder] = []
        for holder, name, traits, stamp in tree.rows():
            if folders:
                above = folders[holder]
                around = above.place
                folder = cls(Place(child(around.path, name), around.left - 1, above.zone), above)
                above.adopt(name, folder)
            else:
                folder = cls(top, None)
            folder.role = Role.FRONTIER if traits.frontier else Role.LEAF
            folder.project, folder.zone = traits.kind, traits.zone
            folder.stamp = stamp if stamp != NO_STAMP else None
            folders.append(folder)
        return folders

    def kept(self, signature: bytes) -> KeptTree:
        """The folder and all below it, to be planted in a later life."""
        tree = KeptTree(signature)
        numbers: dict[bytes, int] = {}
        for folder in self.all():
            path = folder.place.path
            above = numbers[folder.above.place.path] if folder.above is not None else 0
            if folder.role is Role.UNREADABLE and folder.above is not None:
                # The one that holds it finds it again, or finds that it can be read.
                tree.doubt(above)
                continue
            # The members of a workspace are not kept: its files are read again.
            zone = folder.zone if isinstance(folder.zone, Zone) else Zone.REPOSITORIES
            stamp = folder.stamp if zone is folder.zone else None
            traits = Traits(folder.project, zone, folder.role is Role.FRONTIER)
            numbers[path] = tree.add(above, os.path.basename(path), traits, stamp)
        return tree

    def all(self) -> Iterator[Folder]:
        """The folder and all below it; the tree may not change meanwhile."""
        stack = [self]
        while stack:
            folder = stack.pop()
            stack += folder.kids.values()
            yield folder


def changed(folders: Iterable[Folder]) -> list[Folder]:
    """Those without the stamp that they had, or out of reach, in this order.

    A loop of its own, since a start, a sweep and what follows a queue overflow come to this: one
    lstat each, and as little as possible beside it.
    """
    others: list[Folder] = []
    lstat, pack = os.lstat, _PACKED.pack
    for folder in folders:
        stamp = folder.packed
        if stamp is not None:
            try:
                found = lstat(folder.place.path)
            except OSError:
                pass
            else:
                # What has the inode and the ctime of a folder is that folder.
                seen = pack(found.st_ctime_ns, found.st_mtime_ns, found.st_ino, found.st_dev)
                if seen == stamp:
                    continue
        others.append(folder)
    return others


def stamp_of_leaf(path: bytes, before: int) -> Stamp | None:
    """The stamp of a repository's root that was looked at after `before`; None if it changed since
    then, or is out of reach."""
    try:
        stamp = stamp_of(path)
    except OSError:
        return None
    return stamp if stamp is not None and stamp[0] < before else None
