"""Translate inotify records into events. This module makes no system calls.

`watch_mask` returns the mask for a purpose. A narrow mask keeps the kernel's queue short.
`InotifyTranslator` drops the records that cannot matter and returns resolvers for the rest.

The two records of a rename become two events, one for each folder. If only one of the folders is
watched, there is only one event. Source: inotify(7).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from rootsd.disk.markers import (
    BUILT_IN_PROJECT_FILES,
    WORKSPACE_FILES,
    is_marker,
    is_repository_marker,
)
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
# Never IN_OPEN, IN_ACCESS, or IN_CLOSE_NOWRITE: listing a folder would itself cause events.
_MASKS = {
    # IN_ATTRIB reports a chmod of a folder inside. It can make everything below unreadable.
    WatchPurpose.FRONTIER: _ENTRY_ADDED | _ENTRY_REMOVED | _SELF | IN_ATTRIB,
    WatchPurpose.PROGRESS: _ENTRY_ADDED | _ENTRY_REMOVED | IN_CLOSE_WRITE | _SELF,
    WatchPurpose.ROOT: _ENTRY_ADDED | _ENTRY_REMOVED | IN_CLOSE_WRITE | _SELF | IN_ATTRIB,
    WatchPurpose.PARENT: IN_ATTRIB | _SELF,
    WatchPurpose.ABOVE: _ENTRY_ADDED | _ENTRY_REMOVED | _SELF | IN_ATTRIB,
    WatchPurpose.LINKS: _ENTRY_ADDED | _ENTRY_REMOVED | IN_CLOSE_WRITE | _SELF,
    # The folder around it reports that it is removed or moved.
    WatchPurpose.MARKERS: _ENTRY_ADDED | _ENTRY_REMOVED | IN_CLOSE_WRITE,
    # A watch for `FRONTIER` reports everything else.
    WatchPurpose.MEMBERS: IN_CLOSE_WRITE,
}
# git writes the link in a worktree's entry in place when a worktree moves.
_WORKTREE_LINK = b"gitdir"
# git writes this file of a worktree in place when its repository moves.
_GIT_FILE = b".git"
# IN_MASK_ADD, because two purposes of one folder share one kernel watch and its mask.
_ADD_FLAGS = IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK | IN_MASK_ADD


def watch_mask(purpose: WatchPurpose) -> int:
    """Return the mask for inotify_add_watch(2) for a folder with this purpose."""
    return _MASKS[purpose] | _ADD_FLAGS


class InotifyTranslator:
    """Translates records into resolvers of events, with the watches in `registry`.

    The reading thread calls `translate`. The owner of the registry calls the resolvers.
    """

    def __init__(self, registry: WatchRegistry) -> None:
        self._registry = registry
        self._progress_watches = registry.watches_for(WatchPurpose.PROGRESS)
        self.files = BUILT_IN_PROJECT_FILES

    def translate(self, records: Iterable[InotifyRecord]) -> list[EventResolver]:
        """Return a resolver for each event, in order, and `resolve_overflow` for an overflow.

        The first filter is cheap, because most records are about files that do not matter. In a
        progress folder, every file matters.
        """
        files, progress_watches = self.files, self._progress_watches
        return [
            resolver
            for record in records
            if not record.name
            or record.mask & IN_ISDIR
            or record.wd in progress_watches
            or record.name == _WORKTREE_LINK
            or record.name.startswith(b".")
            or is_marker(record.name, files)
            for resolver in self._resolvers_of(record)
        ]

    def resolve(self, purpose: WatchPurpose, record: InotifyRecord) -> FileEvents:
        """Return an event for each path of the record's folder; none if it is not watched now."""
        change, moved = _event_kind(record), bool(record.mask & IN_MOVED_TO)
        return tuple(
            FileEvent(folder, record.name, change, purpose, moved)
            for folder in self._registry.folders_of(record.wd, purpose)
        )

    def resolve_end(self, wd: int) -> FileEvents:
        """Return the events for the end of a watch whose folder was deleted or unmounted.

        There is one event for each purpose, because each purpose needs a new watch.
        """
        return tuple(
            FileEvent(folder, b"", FileEventKind.SELF, purpose)
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
        """Return whether a record about an entry matters for this purpose."""
        match purpose:
            case WatchPurpose.FRONTIER:
                return record.is_folder or is_marker(record.name, self.files)
            case WatchPurpose.PROGRESS:
                return True
            case WatchPurpose.LINKS:
                written = bool(record.mask & IN_CLOSE_WRITE)
                return not written or record.name == _WORKTREE_LINK
            case WatchPurpose.ABOVE:
                return record.is_folder
            case WatchPurpose.PARENT:
                return False
            case WatchPurpose.MEMBERS:
                written = bool(record.mask & IN_CLOSE_WRITE)
                return written and record.name in WORKSPACE_FILES
            case WatchPurpose.ROOT if record.name.startswith(b"."):
                return bool(record.mask & (_ENTRY_ADDED | _ENTRY_REMOVED | IN_CLOSE_WRITE))
            case WatchPurpose.ROOT | WatchPurpose.MARKERS:
                # The kernel also reports IN_ATTRIB for entries of a watched folder.
                if record.mask & IN_CLOSE_WRITE:
                    return record.name == _GIT_FILE
                changed = bool(record.mask & (_ENTRY_ADDED | _ENTRY_REMOVED))
                return changed and is_repository_marker(record.name)


def _event_kind(record: InotifyRecord) -> FileEventKind:
    if record.mask & _ENTRY_ADDED:
        return FileEventKind.ADDED
    if record.mask & _ENTRY_REMOVED:
        return FileEventKind.REMOVED
    return FileEventKind.MODIFIED if record.name else FileEventKind.SELF
