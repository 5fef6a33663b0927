"""Watch folders on Linux with one inotify instance.

Which folders are watched for which purposes, and by which watches of the kernel.

A watch belongs to the folder, not to its path: a bind mount gives it a second one, and after a
rename the kernel gives the same descriptor for the new path while the old one is still booked. So
a watch has bookings, mostly one. It is told by the kernel's number, `wd`. There are thousands:
each takes two places in dictionaries and a number, 120 bytes beside the path, which others hold.

Linux: watches a chosen set of folders on one inotify instance, through watchdog's InotifyFD.

watchdog's own observers watch every directory below a folder: above some thousands they livelock,
and at the limit of watches they leave folders out in silence. `InotifyFD`, which reads the events
for them, has neither fault. Source: inotify(7).
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
    """The bookings for one purpose; a watch with one path has it without a tuple around it."""

    watches: dict[bytes, int] = field(default_factory=dict)
    folders: dict[int, bytes | tuple[bytes, ...]] = field(default_factory=dict)

    def folders_of(self, wd: int) -> tuple[bytes, ...]:
        its = self.folders.get(wd, ())
        return (its,) if isinstance(its, bytes) else its

    def set_folders(self, wd: int, its: tuple[bytes, ...]) -> None:
        if its:
            self.folders[wd] = its[0] if len(its) == 1 else its
        else:
            self.folders.pop(wd, None)


class WatchRegistry:
    """The books. One thread changes them; another may ask for purposes meanwhile."""

    def __init__(self) -> None:
        self._books = tuple((purpose, _PurposeWatches()) for purpose in WatchPurpose)
        self._of = dict(self._books)
        self._count = 0

    def __len__(self) -> int:
        """How many watches of the kernel have bookings."""
        return self._count

    def purposes_of(self, wd: int) -> list[WatchPurpose]:
        """What the watch is booked for; nothing if it is not booked."""
        return [purpose for purpose, book in self._books if wd in book.folders]

    def watches_for(self, purpose: WatchPurpose) -> AbstractSet[int]:
        """The watches that are booked for it, at any time."""
        return self._of[purpose].folders.keys()

    def watch_of(self, folder: bytes, purpose: WatchPurpose) -> int | None:
        """The watch that is booked for it."""
        return self._of[purpose].watches.get(folder)

    def folders_of(self, wd: int, purpose: WatchPurpose) -> tuple[bytes, ...]:
        """The paths under which the watch is booked for this purpose, oldest first."""
        return self._of[purpose].folders_of(wd)

    def enter(self, folder: bytes, purpose: WatchPurpose, wd: int) -> None:
        """Book a watch for what has none."""
        self._count += not self.purposes_of(wd)
        book = self._of[purpose]
        book.watches[folder] = wd
        book.set_folders(wd, (*book.folders_of(wd), folder))

    def leave(self, folder: bytes, purpose: WatchPurpose) -> None:
        """End what was entered."""
        book = self._of[purpose]
        wd = book.watches.pop(folder)
        book.set_folders(wd, tuple(path for path in book.folders_of(wd) if path != folder))
        self._count -= not self.purposes_of(wd)

    def end(self, wd: int) -> tuple[WatchKey, ...]:
        """End all bookings of a watch; those that it had."""
        ended = tuple(
            (path, purpose) for purpose, book in self._books for path in book.folders_of(wd)
        )
        for booking in ended:
            self.leave(*booking)
        return ended


log = logging.getLogger(__name__)

_C = InotifyConstants
_SELF = _C.IN_DELETE_SELF | _C.IN_MOVE_SELF
_ENTRY_ADDED = _C.IN_CREATE | _C.IN_MOVED_TO
_ENTRY_REMOVED = _C.IN_DELETE | _C.IN_MOVED_FROM
# Never IN_OPEN, IN_ACCESS or IN_CLOSE_NOWRITE: listing a folder makes those, for ever.
_MASKS = {
    # IN_ATTRIB tells of a chmod of the folders in it, which hides or shows all below them.
    WatchPurpose.FRONTIER: _ENTRY_ADDED | _ENTRY_REMOVED | _SELF | _C.IN_ATTRIB,
    WatchPurpose.AT_WORK: _ENTRY_ADDED | _ENTRY_REMOVED | _C.IN_CLOSE_WRITE | _SELF,
    WatchPurpose.ROOT: _C.IN_ATTRIB | _SELF,
    WatchPurpose.ABOVE: _ENTRY_ADDED | _ENTRY_REMOVED | _SELF | _C.IN_ATTRIB,
    WatchPurpose.LINKS: _ENTRY_ADDED | _ENTRY_REMOVED | _SELF,
}
# IN_MASK_ADD: one folder may be watched for two purposes, and the kernel keeps one mask for both.
_ADD_FLAGS = _C.IN_ONLYDIR | _C.IN_DONT_FOLLOW | _C.IN_EXCL_UNLINK | _C.IN_MASK_ADD
_DEFAULT_LIMIT = 8192
_ADD_FAILED = WatchDescriptor(-1)
# More than is there nearly always. To make room for a full queue each time takes 15 us, this none.
_BUFFER_SIZE = 1 << 16
# The kernel hands over whole events only: so much room may be left where there are more.
_MAX_EVENT_BYTES = 16 + 256
# As the kernel writes them, the second without its first word, the watch. Neither is found in the
# midst of anything else: what follows a NUL in a name are NULs, and no watch and no mask is 0.
_OVERFLOW = struct.pack("iIII", -1, _C.IN_Q_OVERFLOW, 0, 0)
_ENDED = struct.pack("III", _C.IN_IGNORED, 0, 0)
_WORD = 4
# What FIONREAD fills in: an int.
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
    """watchdog's reader, which drops at once what cannot matter: a storm of files in a folder.

    In a folder that is `at_work` every file matters. The books are ours: watchdog's take 420 bytes
    for each watch.
    """

    def __init__(
        self,
        bookings: WatchRegistry,
        signals_of: Callable[[InotifyEvent], Iterable[EventResolver]],
        post: PostResolver,
    ) -> None:
        """`post` gets the `signals_of` each event; both are called in the reading thread."""
        super().__init__()
        self._bookings = bookings
        self._signals_of = signals_of
        self._post = post
        self._at_work = bookings.watches_for(WatchPurpose.AT_WORK)
        self.files = BUILT_IN_PROJECT_FILES

    def book(self, folder: bytes, purpose: WatchPurpose) -> None:
        """Have the kernel watch what is at `folder` now. Raises OSError."""
        # Under the lock, so that no event comes before its watch is in the books.
        with self._lock:
            wd = inotify_add_watch(self._inotify_fd, folder, Mask(_MASKS[purpose] | _ADD_FLAGS))
            if wd == _ADD_FAILED:
                raise OSError(ctypes.get_errno(), "cannot be watched")
            before = self._bookings.watch_of(folder, purpose)
            if before == wd:
                return
            if before is not None:
                self._leave(folder, purpose, before)
            self._bookings.enter(folder, purpose, wd)

    def unbook(self, folder: bytes, purpose: WatchPurpose) -> None:
        """Give one purpose up; the kernel's watch goes with the last."""
        with self._lock:
            wd = self._bookings.watch_of(folder, purpose)
            if wd is not None:
                self._leave(folder, purpose, wd)

    def _leave(self, folder: bytes, purpose: WatchPurpose, wd: int) -> None:
        self._bookings.leave(folder, purpose)
        if not self._bookings.purposes_of(wd):
            # It may be gone with its folder.
            inotify_rm_watch(self._inotify_fd, WatchDescriptor(wd))

    def handle_event(self, event: InotifyEvent) -> None:
        """Post what follows from an event."""
        if event.is_queue_overflow:
            log.warning("the kernel's queue of file events overflowed; all is looked at again")
            self._post(resolve_overflow)
            return
        with self._lock:
            signals = self._signals_of(event)
        for signal in signals:
            self._post(signal)

    def read_events(self, *, event_buffer_size: int = _BUFFER_SIZE) -> list[InotifyEvent]:
        """The next events, those of folders, markers and places at work."""
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
        """What is there beyond a full buffer, so that the end of a full queue is seen with it."""
        with self._lock:  # under which it is closed
            if self._closed:
                return b""
            (size,) = _SIZE.unpack(fcntl.ioctl(self._inotify_fd, termios.FIONREAD, _NO_SIZE))
            return os.read(self._inotify_fd, size) if size else b""


def _drop_before_overflow(found: bytes) -> bytes:
    """What was read, but of what came before an overflow only the ends of watches.

    After an overflow all is looked at, whatever was told of it; and to take the 16,384 events of a
    full queue apart takes 30 ms.
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
    """A `Watcher` on inotify. Raises OSError if the user's instances are used up (EMFILE).

    `budget` is how many watches to take at most; editors need theirs too.
    """

    def __init__(self, post: PostResolver, budget: int | None = None) -> None:
        self._bookings = WatchRegistry()
        self._fd = _InotifyReader(self._bookings, self._signals_of, post)
        self._budget = _default_budget() if budget is None else budget

    def start(self) -> None:
        """Start the reading thread; what happened since a folder was watched is told then."""
        self._fd.start()

    def stop(self) -> None:
        """End the thread and close the instance."""
        self._fd.stop()
        if self._fd.is_alive():
            self._fd.join()

    def heed(self, files: ProjectFiles) -> None:
        """As in `Watcher`; from the next event on."""
        self._fd.files = files

    def count(self) -> int:
        """How many inotify watches are held."""
        return len(self._bookings)

    def watch(self, folder: bytes, purpose: WatchPurpose) -> WatchOutcome:
        """Watch what is at `folder` now, which must be a folder and no link."""
        is_full = len(self._bookings) >= self._budget
        if is_full and self._bookings.watch_of(folder, purpose) is None:
            return WatchOutcome.LIMIT
        try:
            self._fd.book(folder, purpose)
        except OSError as error:
            # EIO and the like, of a disk that was pulled out, ENOMEM: the folder may well be read.
            return _RESULTS.get(error.errno or 0, WatchOutcome.FAILED)
        return WatchOutcome.YES

    def unwatch(self, folder: bytes, purpose: WatchPurpose) -> None:
        """Give one purpose up; the kernel's watch goes with the last."""
        self._fd.unbook(folder, purpose)

    def resolve(self, purpose: WatchPurpose, event: InotifyEvent) -> FileEvents:
        """The event in terms of paths; nothing if the folder is not watched any more."""
        change, moved = _event_kind(event), bool(event.mask & _C.IN_MOVED_TO)
        return tuple(
            FileEvent(folder, event.name, change, purpose, moved)
            for folder in self._bookings.folders_of(event.wd, purpose)
        )

    def resolve_end(self, wd: int) -> FileEvents:
        """The kernel ended a watch: the folder was deleted or unmounted. Told for each purpose,
        since each has to be watched anew."""
        return tuple(
            FileEvent(folder, b"", FileEventKind.ITSELF, purpose)
            for folder, purpose in self._bookings.end(wd)
        )

    def _signals_of(self, event: InotifyEvent) -> Iterable[EventResolver]:
        """What may matter of an event; in the reading thread."""
        purposes = self._bookings.purposes_of(event.wd)
        if event.is_ignored:
            return (partial(self.resolve_end, event.wd),) if purposes else ()
        return [
            partial(self.resolve, purpose, event)
            for purpose in purposes
            if event.mask & _MASKS[purpose] and (not event.name or self._tells(purpose, event))
        ]

    def _tells(self, purpose: WatchPurpose, event: InotifyEvent) -> bool:
        """Whether the fate of an entry is told for this purpose."""
        is_folder = bool(event.mask & _C.IN_ISDIR)
        match purpose:
            case WatchPurpose.FRONTIER:
                return is_folder or is_marker(event.name, self._fd.files)
            case WatchPurpose.AT_WORK | WatchPurpose.LINKS:
                return True
            case WatchPurpose.ABOVE:
                return is_folder
            case WatchPurpose.ROOT:
                # IN_ATTRIB is also told of the entries of a watched folder.
                return False


def _default_budget() -> int:
    """A quarter of what the system grants the user."""
    return (read_inotify_limit(InotifyLimit.WATCHES) or _DEFAULT_LIMIT) // 4


def _event_kind(event: InotifyEvent) -> FileEventKind:
    if event.mask & _ENTRY_ADDED:
        return FileEventKind.CAME
    if event.mask & _ENTRY_REMOVED:
        return FileEventKind.LEFT
    return FileEventKind.ALTERED if event.name else FileEventKind.ITSELF
