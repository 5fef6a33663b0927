"""Merge the events of one batch, so that many events about one entry cost as much as one event."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct, field

from rootsd.disk.markers import child, is_repository_marker
from rootsd.watch.events import EventOverflow, FileEvent, FileEventKind, WatchPurpose


class EventBatch(Struct):
    """The events of one batch, merged and sorted by the part that handles them.

    For each folder and name, `entries` has two flags: whether the entry was removed, and whether
    an existing folder was renamed to this name and is still there. `tops` has the folders in which
    a marker of a repository came or went, or the list of a workspace's members changed, and
    whether the last marker went. `moved_here` is whether a folder came from somewhere else.
    """

    progress: list[FileEvent] = field(default_factory=list)
    overflow: bool = False
    moved_here: bool = False
    links: dict[bytes, None] = field(default_factory=dict)
    folders: dict[bytes, None] = field(default_factory=dict)
    tops: dict[bytes, bool] = field(default_factory=dict)
    entries: dict[tuple[bytes, bytes], tuple[bool, bool]] = field(default_factory=dict)

    @property
    def may_bring_mounts(self) -> bool:
        """Whether a folder may have come from an unknown place, and mounts with it."""
        return self.overflow or self.moved_here

    def departed(self) -> set[bytes]:
        """Return the folders that may have moved away, and mounts with them."""
        removed = (child(*entry) for entry, (removed, _) in self.entries.items() if removed)
        return {*self.folders, *removed}

    @classmethod
    def of(
        cls,
        events: Iterable[FileEvent | EventOverflow],
        leads_to_a_parent: Callable[[bytes], bool],
    ) -> EventBatch:
        """Merge `events`. Drop events above the parents that do not concern a parent."""
        batch = cls()
        for event in events:
            if isinstance(event, EventOverflow):
                batch.overflow = True
            elif event.purpose is not WatchPurpose.ABOVE or leads_to_a_parent(
                child(event.folder, event.name) if event.name else event.folder
            ):
                batch._add(event)
        return batch

    def _add(self, event: FileEvent) -> None:
        match event.purpose:
            case WatchPurpose.PROGRESS:
                self.progress.append(event)
            case WatchPurpose.LINKS:
                self.links[event.folder] = None
            case WatchPurpose.FRONTIER if event.kind is not FileEventKind.SELF:
                removed, moved = self.entries.get((event.folder, event.name), (False, False))
                is_removal = event.kind is FileEventKind.REMOVED
                stayed = moved and not is_removal
                flags = (removed or is_removal, stayed or event.moved)
                self.entries[event.folder, event.name] = flags
                self.moved_here |= event.moved
            case WatchPurpose.ROOT | WatchPurpose.MARKERS if is_repository_marker(event.name):
                self.tops[event.folder] = event.kind is FileEventKind.REMOVED
            case WatchPurpose.MEMBERS if event.name:
                self.tops.setdefault(event.folder, False)
            case WatchPurpose.MARKERS | WatchPurpose.MEMBERS:
                pass  # the folder around it reports this, too
            case _:
                self.folders[event.folder] = None
                self.moved_here |= event.moved
