"""The nodes of a territory's tree."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from rootsd.core.model import ProjectKind
from rootsd.host.walk import Place, Stamp


class Role(Enum):
    """What a folder is to the tree."""

    FRONTIER = "frontier"
    LEAF = "leaf"
    UNREADABLE = "unreadable"


class Folder:
    """One folder of the tree; `zone` is that of the folders in it."""

    __slots__ = ("above", "kids", "place", "project", "role", "stamp", "zone")

    def __init__(self, place: Place, above: Folder | None) -> None:
        self.place = place
        self.above = above
        self.kids: dict[bytes, Folder] = {}
        self.role = Role.UNREADABLE
        self.project: ProjectKind | None = None
        self.zone = place.zone
        self.stamp: Stamp | None = None

    def all(self) -> Iterator[Folder]:
        """The folder and all below it; the tree may not change meanwhile."""
        stack = [self]
        while stack:
            folder = stack.pop()
            stack += folder.kids.values()
            yield folder
