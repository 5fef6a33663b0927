"""A batch of hints of what happened, sorted by what is to be looked at; many become one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rootsd.host.disk.markers import child
from rootsd.host.watch.events import Change, Happening, Overflow, Purpose


@dataclass(slots=True)
class Hints:
    """What a batch says, in the order in which it is to be followed up.

    `entries` tells for each folder and name whether it left, and whether a folder came by a rename
    and stayed.
    """

    at_work: list[Happening] = field(default_factory=list)
    overflow: bool = False
    links: dict[bytes, None] = field(default_factory=dict)
    folders: dict[bytes, None] = field(default_factory=dict)
    entries: dict[tuple[bytes, bytes], tuple[bool, bool]] = field(default_factory=dict)

    @property
    def of_moves(self) -> bool:
        """Whether a folder may have moved with all that is in it, or one above a parent."""
        told = self.overflow or bool(self.folders)
        return told or any(left or moved for left, moved in self.entries.values())

    @classmethod
    def of(
        cls, batch: Iterable[Happening | Overflow], leads_to_a_parent: Callable[[bytes], bool]
    ) -> Hints:
        """The hints of `batch`; of those above the parents only what leads to one, by its path."""
        hints = cls()
        for item in batch:
            if isinstance(item, Overflow):
                hints.overflow = True
            elif item.purpose is not Purpose.ABOVE or leads_to_a_parent(
                child(item.folder, item.name) if item.name else item.folder
            ):
                hints._add(item)
        return hints

    def _add(self, item: Happening) -> None:
        match item.purpose:
            case Purpose.AT_WORK:
                self.at_work.append(item)
            case Purpose.LINKS:
                self.links[item.folder] = None
            case Purpose.FRONTIER if item.change is not Change.ITSELF:
                left, moved = self.entries.get((item.folder, item.name), (False, False))
                went = item.change is Change.LEFT
                stayed = moved and not went
                self.entries[item.folder, item.name] = (left or went, stayed or item.moved)
            case _:
                self.folders[item.folder] = None
