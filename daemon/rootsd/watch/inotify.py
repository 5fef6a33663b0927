"""Watch folders on Linux with one inotify instance.

`InotifyWatcher` watches a chosen set of folders through watchdog's InotifyFD, which reads the
events. watchdog's own observers watch every directory below a folder. Above some thousands of
directories they livelock, and at the limit of watches they leave folders out without a word.
Source: inotify(7).

`WatchRegistry` records which kernel watch serves which folder and purpose. A kernel watch belongs
to a folder, not to its path. A bind mount gives the folder a second path. After a rename, the
kernel returns the same watch for the new path while the old path is still registered. So one watch
may serve several paths and purposes. There are thousands of entries: each takes two dictionary
slots and a number, 120 bytes besides the path, which other objects hold anyway.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import logging
import os
import struct
import termios
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial

from watchdog.observers.inotify_c import (
    InotifyConstants,
    InotifyEvent,
    InotifyFD,
    Mask,
    WatchDescriptor,
    inotify_add_watch,
    inotify_rm_watch,
)

from rootsd.disk.markers import BUILT_IN_PROJECT_FILES, ProjectFiles, is_marker
from rootsd.watch.events import (
    EventResolver,
    FileEvent,
    FileEventKind,
    FileEvents,
    PostResolver,
    WatchOutcome,
    WatchPurpose,
    resolve_overflow,
)
from rootsd.watch.inotify_limits import InotifyLimit, read_inotify_limit

WatchKey = tuple[bytes, WatchPurpose]


@dataclass(slots=True, eq=False)
class _PurposeWatches:
    """The watches for one purpose. A watch with one path stores it without a tuple."""

    watches: dict[bytes, int] = field(default_factory=dict)
    folders: dict[int, bytes | tuple[bytes, ...]] = field(default_factory=dict)

    def folders_of(self, wd: int) -> tuple[bytes, ...]:
        folders = self.folders.get(wd, ())
        return (folders,) if isinstance(folders, bytes) else folders

    def set_folders(self, wd: int, folders: tuple[bytes, ...]) -> None:
        if folders:
            self.folders[wd] = folders[0] if len(folders) == 1 else folders
        else:
            self.folders.pop(wd, None)


class WatchRegistry:
    """The folders and purposes of each kernel watch, by its number `wd`.

    One thread changes it. Another may query purposes meanwhile.
    """

    def __init__(self) -> None:
        self._by_purpose = tuple((purpose, _PurposeWatches()) for purpose in WatchPurpose)
        self._of = dict(self._by_purpose)
        self._count = 0

    def __len__(self) -> int:
        """Return the number of kernel watches in use."""
        return self._count

    def purposes_of(self, wd: int) -> list[WatchPurpose]:
        """Return the purposes of a watch; empty if it is unknown."""
        return [purpose for purpose, watches in self._by_purpose if wd in watches.folders]

    def watches_for(self, purpose: WatchPurpose) -> AbstractSet[int]:
        """Return a live view of the watches for a purpose."""
        return self._of[purpose].folders.keys()

    def watch_of(self, folder: bytes, purpose: WatchPurpose) -> int | None:
        """Return the watch of a folder for a purpose, or None."""
        return self._of[purpose].watches.get(folder)

    def folders_of(self, wd: int, purpose: WatchPurpose) -> tuple[bytes, ...]:
        """Return the paths that the watch serves for a purpose, oldest first."""
        return self._of[purpose].folders_of(wd)

    def add(self, folder: bytes, purpose: WatchPurpose, wd: int) -> None:
        """Record the watch of a folder for a purpose that has none."""
        self._count += not self.purposes_of(wd)
        watches = self._of[purpose]
        watches.watches[folder] = wd
        watches.set_folders(wd, (*watches.folders_of(wd), folder))

    def remove(self, folder: bytes, purpose: WatchPurpose) -> None:
        """Remove one folder and purpose."""
        watches = self._of[purpose]
        wd = watches.watches.pop(folder)
        watches.set_folders(wd, tuple(path for path in watches.folders_of(wd) if path != folder))
        self._count -= not self.purposes_of(wd)

    def remove_all(self, wd: int) -> tuple[WatchKey, ...]:
        """Remove a watch and return the folders and purposes that it served."""
        ended = tuple(
            (path, purpose)
            for purpose, watches in self._by_purpose
            for path in watches.folders_of(wd)
        )
        for key in ended:
            self.remove(*key)
        return ended


log = logging.getLogger(__name__)

_C = InotifyConstants
_SELF = _C.IN_DELETE_SELF | _C.IN_MOVE_SELF
_ENTRY_ADDED = _C.IN_CREATE | _C.IN_MOVED_TO
_ENTRY_REMOVED = _C.IN_DELETE | _C.IN_MOVED_FROM
# Never IN_OPEN, IN_ACCESS, or IN_CLOSE_NOWRITE: each listing of a folder would cause more events.
_MASKS = {
    # IN_ATTRIB reports a chmod of a folder inside, which hides or shows everything below it.
    WatchPurpose.FRONTIER: _ENTRY_ADDED | _ENTRY_REMOVED | _SELF | _C.IN_ATTRIB,
    WatchPurpose.AT_WORK: _ENTRY_ADDED | _ENTRY_REMOVED | _C.IN_CLOSE_WRITE | _SELF,
    WatchPurpose.ROOT: _C.IN_ATTRIB | _SELF,
    WatchPurpose.ABOVE: _ENTRY_ADDED | _ENTRY_REMOVED | _SELF | _C.IN_ATTRIB,
    WatchPurpose.LINKS: _ENTRY_ADDED | _ENTRY_REMOVED | _SELF,
}
# IN_MASK_ADD, because two purposes of one folder share one mask in the kernel.
_ADD_FLAGS = _C.IN_ONLYDIR | _C.IN_DONT_FOLLOW | _C.IN_EXCL_UNLINK | _C.IN_MASK_ADD
_DEFAULT_LIMIT = 8192
_ADD_FAILED = WatchDescriptor(-1)
# Nearly always enough. A buffer for a full queue would take 15 us to allocate each time.
_BUFFER_SIZE = 1 << 16
# The kernel returns whole events only, so a buffer counts as full with this much room left.
_MAX_EVENT_BYTES = 16 + 256
# Two events as the kernel writes them, the second without its first word, the watch. Neither byte
# string can appear inside another event: after a NUL in a name there are only NULs, and no watch
# and no mask is 0.
_OVERFLOW = struct.pack("iIII", -1, _C.IN_Q_OVERFLOW, 0, 0)
_ENDED = struct.pack("III", _C.IN_IGNORED, 0, 0)
_WORD = 4
# FIONREAD fills in an int.
_SIZE = struct.Struct("i")
_NO_SIZE = bytes(_SIZE.size)

_RESULTS = {
    errno.ENOSPC: WatchOutcome.LIMIT,
    errno.EACCES: WatchOutcome.UNREADABLE,
    errno.EPERM: WatchOutcome.UNREADABLE,
    errno.ENOENT: WatchOutcome.GONE,
    errno.ENOTDIR: WatchOutcome.GONE,
    errno.ELOOP: WatchOutcome.GONE,
}


class _InotifyReader(InotifyFD):
    """watchdog's reader without its records, and with an early filter.

    Most events are of files that cannot matter, and the reader drops these at once. In a folder
    that is watched as AT_WORK, every file matters. watchdog's own records take 420 bytes for each
    watch.
    """

    def __init__(
        self,
        registry: WatchRegistry,
        resolvers_of: Callable[[InotifyEvent], Iterable[EventResolver]],
        post: PostResolver,
    ) -> None:
        """Post what `resolvers_of` returns for each event; the reading thread calls both."""
        super().__init__()
        self._registry = registry
        self._resolvers_of = resolvers_of
        self._post = post
        self._at_work = registry.watches_for(WatchPurpose.AT_WORK)
        self.files = BUILT_IN_PROJECT_FILES

    def add(self, folder: bytes, purpose: WatchPurpose) -> None:
        """Have the kernel watch the folder at `folder`. Raises OSError."""
        # Hold the lock, so that no event is handled before its watch is registered.
        with self._lock:
            wd = inotify_add_watch(self._inotify_fd, folder, Mask(_MASKS[purpose] | _ADD_FLAGS))
            if wd == _ADD_FAILED:
                raise OSError(ctypes.get_errno(), "cannot be watched")
            before = self._registry.watch_of(folder, purpose)
            if before == wd:
                return
            if before is not None:
                self._remove(folder, purpose, before)
            self._registry.add(folder, purpose, wd)

    def remove(self, folder: bytes, purpose: WatchPurpose) -> None:
        """Remove one purpose; the kernel watch ends with the last."""
        with self._lock:
            wd = self._registry.watch_of(folder, purpose)
            if wd is not None:
                self._remove(folder, purpose, wd)

    def _remove(self, folder: bytes, purpose: WatchPurpose, wd: int) -> None:
        self._registry.remove(folder, purpose)
        if not self._registry.purposes_of(wd):
            # The watch may have ended with its folder; the error is ignored.
            inotify_rm_watch(self._inotify_fd, WatchDescriptor(wd))

    def handle_event(self, event: InotifyEvent) -> None:
        """Post the resolvers of an event."""
        if event.is_queue_overflow:
            log.warning(
                "the kernel's queue of file events overflowed; rootsd scans everything again"
            )
            self._post(resolve_overflow)
            return
        with self._lock:
            resolvers = self._resolvers_of(event)
        for resolver in resolvers:
            self._post(resolver)

    def read_events(self, *, event_buffer_size: int = _BUFFER_SIZE) -> list[InotifyEvent]:
        """Return the next events of folders, markers, and folders watched as AT_WORK."""
        return [
            event
            for event in super().read_events(event_buffer_size=event_buffer_size)
            if not event.name
            or event.mask & _C.IN_ISDIR
            or event.wd in self._at_work
            or is_marker(event.name, self.files)
        ]

    def _read_event_buffer(self, event_buffer_size: int) -> bytes:
        found = super()._read_event_buffer(event_buffer_size)
        if len(found) > event_buffer_size - _MAX_EVENT_BYTES:
            found += self._rest()
        return _drop_before_overflow(found)

    def _rest(self) -> bytes:
        """Return what remains after a full buffer, so that the end of a full queue is seen too."""
        with self._lock:  # close() holds the same lock
            if self._closed:
                return b""
            (size,) = _SIZE.unpack(fcntl.ioctl(self._inotify_fd, termios.FIONREAD, _NO_SIZE))
            return os.read(self._inotify_fd, size) if size else b""


def _drop_before_overflow(found: bytes) -> bytes:
    """Return the buffer; before an overflow, keep only the ends of watches.

    After an overflow everything is checked again, whatever the events before it say. Parsing the
    16,384 events of a full queue would take 30 ms.
    """
    overflow = found.rfind(_OVERFLOW)
    if overflow < 0:
        return found
    kept, at = [], found.find(_ENDED, 0, overflow)
    while at >= 0:
        end = at + len(_ENDED)
        kept.append(found[at - _WORD : end])
        at = found.find(_ENDED, end, overflow)
    return b"".join((*kept, found[overflow:]))


class InotifyWatcher:
    """A `Watcher` on inotify.

    `budget` is the maximum number of watches, because editors need watches too. Raises OSError if
    the user has no inotify instances left (EMFILE).
    """

    def __init__(self, post: PostResolver, budget: int | None = None) -> None:
        self._registry = WatchRegistry()
        self._fd = _InotifyReader(self._registry, self._resolvers_of, post)
        self._budget = _default_budget() if budget is None else budget

    def start(self) -> None:
        """Start the reading thread. It reports every change since a folder was watched."""
        self._fd.start()

    def stop(self) -> None:
        """End the thread and close the instance."""
        self._fd.stop()
        if self._fd.is_alive():
            self._fd.join()

    def set_project_files(self, files: ProjectFiles) -> None:
        """Report these project files from the next event on."""
        self._fd.files = files

    def count(self) -> int:
        """Return the number of kernel watches."""
        return len(self._registry)

    def watch(self, folder: bytes, purpose: WatchPurpose) -> WatchOutcome:
        """Watch the folder at `folder`; a link is not followed."""
        is_full = len(self._registry) >= self._budget
        if is_full and self._registry.watch_of(folder, purpose) is None:
            return WatchOutcome.LIMIT
        try:
            self._fd.add(folder, purpose)
        except OSError as error:
            # ENOMEM, or EIO of a removed disk: the folder itself may still be readable.
            return _RESULTS.get(error.errno or 0, WatchOutcome.FAILED)
        return WatchOutcome.YES

    def unwatch(self, folder: bytes, purpose: WatchPurpose) -> None:
        """Remove one purpose; the kernel watch ends with the last."""
        self._fd.remove(folder, purpose)

    def resolve(self, purpose: WatchPurpose, event: InotifyEvent) -> FileEvents:
        """Return the event for each path of its folder; empty if it is no longer watched."""
        change, moved = _event_kind(event), bool(event.mask & _C.IN_MOVED_TO)
        return tuple(
            FileEvent(folder, event.name, change, purpose, moved)
            for folder in self._registry.folders_of(event.wd, purpose)
        )

    def resolve_end(self, wd: int) -> FileEvents:
        """Return the events of a watch that the kernel ended: its folder was deleted or unmounted.

        There is one for each purpose, because each needs a new watch.
        """
        return tuple(
            FileEvent(folder, b"", FileEventKind.ITSELF, purpose)
            for folder, purpose in self._registry.remove_all(wd)
        )

    def _resolvers_of(self, event: InotifyEvent) -> Iterable[EventResolver]:
        """Return the resolvers of an event that may matter; called in the reading thread."""
        purposes = self._registry.purposes_of(event.wd)
        if event.is_ignored:
            return (partial(self.resolve_end, event.wd),) if purposes else ()
        return [
            partial(self.resolve, purpose, event)
            for purpose in purposes
            if event.mask & _MASKS[purpose]
            and (not event.name or self._is_relevant(purpose, event))
        ]

    def _is_relevant(self, purpose: WatchPurpose, event: InotifyEvent) -> bool:
        """Return whether an event of an entry matters for this purpose."""
        is_folder = bool(event.mask & _C.IN_ISDIR)
        match purpose:
            case WatchPurpose.FRONTIER:
                return is_folder or is_marker(event.name, self._fd.files)
            case WatchPurpose.AT_WORK | WatchPurpose.LINKS:
                return True
            case WatchPurpose.ABOVE:
                return is_folder
            case WatchPurpose.ROOT:
                # IN_ATTRIB is also reported for entries of a watched folder.
                return False


def _default_budget() -> int:
    """Return a quarter of the user's limit."""
    return (read_inotify_limit(InotifyLimit.WATCHES) or _DEFAULT_LIMIT) // 4


def _event_kind(event: InotifyEvent) -> FileEventKind:
    if event.mask & _ENTRY_ADDED:
        return FileEventKind.CAME
    if event.mask & _ENTRY_REMOVED:
        return FileEventKind.LEFT
    return FileEventKind.ALTERED if event.name else FileEventKind.ITSELF
