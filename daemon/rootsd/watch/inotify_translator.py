"""Translate the records of inotify to events. Nothing here calls the system.

`watch_mask` returns the records that the kernel queues for a purpose. Fewer records leave room in
its queue. `InotifyTranslator` drops the records that cannot matter, and returns resolvers for the
rest.

The two records of a rename become two events, one for each folder. Either may come alone, because
the other folder need not be watched. Source: inotify(7).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from rootsd.disk.markers import BUILT_IN_PROJECT_FILES, is_marker
from rootsd.watch.events import (
    EventResolver,
    FileEvent,
    FileEventKind,
    FileEvents,
    WatchPurpose,
    resolve_overflow,
)
from rootsd.watch.inotify_records import (
    IN_ATTRIB,
    IN_CLOSE_WRITE,
    IN_CREATE,
    IN_DELETE,
    IN_DELETE_SELF,
    IN_DONT_FOLLOW,
    IN_EXCL_UNLINK,
    IN_ISDIR,
    IN_MASK_ADD,
    IN_MOVE_SELF,
    IN_MOVED_FROM,
    IN_MOVED_TO,
    IN_ONLYDIR,
    InotifyRecord,
)
from rootsd.watch.watch_registry import WatchRegistry

_SELF = IN_DELETE_SELF | IN_MOVE_SELF
_ENTRY_ADDED = IN_CREATE | IN_MOVED_TO
_ENTRY_REMOVED = IN_DELETE | IN_MOVED_FROM
# Never IN_OPEN, IN_ACCESS, or IN_CLOSE_NOWRITE: each listing of a folder would cause more events.
_MASKS = {
    # IN_ATTRIB reports a chmod of a folder inside, which hides or shows everything below it.
    WatchPurpose.FRONTIER: _ENTRY_ADDED | _ENTRY_REMOVED | _SELF | IN_ATTRIB,
    WatchPurpose.AT_WORK: _ENTRY_ADDED | _ENTRY_REMOVED | IN_CLOSE_WRITE | _SELF,
    WatchPurpose.ROOT: IN_ATTRIB | _SELF,
    WatchPurpose.ABOVE: _ENTRY_ADDED | _ENTRY_REMOVED | _SELF | IN_ATTRIB,
    WatchPurpose.LINKS: _ENTRY_ADDED | _ENTRY_REMOVED | _SELF,
}
# IN_MASK_ADD, because two purposes of one folder share one mask in the kernel.
_ADD_FLAGS = IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK | IN_MASK_ADD


def watch_mask(purpose: WatchPurpose) -> int:
    """Return the mask of inotify_add_watch(2) for a folder with this purpose."""
    return _MASKS[purpose] | _ADD_FLAGS


class InotifyTranslator:
    """Translates records to resolvers of events, by the watches in `registry`.

    The reading thread calls `translate`. The owner of the registry calls the resolvers.
    """

    def __init__(self, registry: WatchRegistry) -> None:
        self._registry = registry
        self._at_work = registry.watches_for(WatchPurpose.AT_WORK)
        self.files = BUILT_IN_PROJECT_FILES

    def translate(self, records: Iterable[InotifyRecord]) -> list[EventResolver]:
        """Return a resolver for each event, in order; `resolve_overflow` after an overflow.

        Most records are of files that cannot matter. In a folder that is watched as AT_WORK, every
        file matters.
        """
        files, at_work = self.files, self._at_work
        return [
            resolver
            for record in records
            if not record.name
            or record.mask & IN_ISDIR
            or record.wd in at_work
            or is_marker(record.name, files)
            for resolver in self._resolvers_of(record)
        ]

    def resolve(self, purpose: WatchPurpose, record: InotifyRecord) -> FileEvents:
        """Return the event for each path of its folder; empty if it is no longer watched."""
        change, moved = _event_kind(record), bool(record.mask & IN_MOVED_TO)
        return tuple(
            FileEvent(folder, record.name, change, purpose, moved)
            for folder in self._registry.folders_of(record.wd, purpose)
        )

    def resolve_end(self, wd: int) -> FileEvents:
        """Return the events of a watch that the kernel ended: its folder was deleted or unmounted.

        There is one for each purpose, because each needs a new watch.
        """
        return tuple(
            FileEvent(folder, b"", FileEventKind.ITSELF, purpose)
            for folder, purpose in self._registry.remove_all(wd)
        )

    def _resolvers_of(self, record: InotifyRecord) -> Iterable[EventResolver]:
        if record.is_overflow:
            return (resolve_overflow,)
        purposes = self._registry.purposes_of(record.wd)
        if record.is_end:
            return (partial(self.resolve_end, record.wd),) if purposes else ()
        return [
            partial(self.resolve, purpose, record)
            for purpose in purposes
            if record.mask & _MASKS[purpose]
            and (not record.name or self._is_relevant(purpose, record))
        ]

    def _is_relevant(self, purpose: WatchPurpose, record: InotifyRecord) -> bool:
        """Return whether a record of an entry matters for this purpose."""
        match purpose:
            case WatchPurpose.FRONTIER:
                return record.is_folder or is_marker(record.name, self.files)
            case WatchPurpose.AT_WORK | WatchPurpose.LINKS:
                return True
            case WatchPurpose.ABOVE:
                return record.is_folder
            case WatchPurpose.ROOT:
                # IN_ATTRIB is also reported for entries of a watched folder.
                return False


def _event_kind(record: InotifyRecord) -> FileEventKind:
    if record.mask & _ENTRY_ADDED:
        return FileEventKind.CAME
    if record.mask & _ENTRY_REMOVED:
        return FileEventKind.LEFT
    return FileEventKind.ALTERED if record.name else FileEventKind.ITSELF
