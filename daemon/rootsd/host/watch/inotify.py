"""Linux: watches a chosen set of folders on one inotify instance, through watchdog's InotifyFD.

watchdog's own observers watch every directory below a folder: above some thousands they livelock,
and at the limit of watches they leave folders out in silence. `InotifyFD.add_callback` is the part
of it that has neither fault. Source: inotify(7).
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import struct
import termios
from functools import partial

from watchdog.observers.inotify_c import (
    CallbackId,
    InotifyConstants,
    InotifyEvent,
    InotifyFD,
    Mask,
    WatchDescriptor,
)

from rootsd.host.disk.markers import BUILT_IN, ProjectFiles, is_marker
from rootsd.host.watch.events import (
    Change,
    Happening,
    News,
    Post,
    Purpose,
    Watched,
    overflowed,
)

_C = InotifyConstants
_SELF = _C.IN_DELETE_SELF | _C.IN_MOVE_SELF
_COME = _C.IN_CREATE | _C.IN_MOVED_TO
_LEAVE = _C.IN_DELETE | _C.IN_MOVED_FROM
# Never IN_OPEN, IN_ACCESS or IN_CLOSE_NOWRITE: listing a folder makes those, for ever.
_MASKS = {
    # IN_ATTRIB tells of a chmod of the folders in it, which hides or shows all below them.
    Purpose.FRONTIER: _COME | _LEAVE | _SELF | _C.IN_ATTRIB,
    Purpose.AT_WORK: _COME | _LEAVE | _C.IN_CLOSE_WRITE | _SELF,
    Purpose.ROOT: _C.IN_ATTRIB | _SELF,
    Purpose.ABOVE: _COME | _LEAVE | _SELF | _C.IN_ATTRIB,
    Purpose.LINKS: _COME | _LEAVE | _SELF,
}
# IN_MASK_ADD: one folder may be watched for two purposes, and the kernel keeps one mask for both.
_HOW = _C.IN_ONLYDIR | _C.IN_DONT_FOLLOW | _C.IN_EXCL_UNLINK | _C.IN_MASK_ADD
_LIMIT_FILE = "/proc/sys/fs/inotify/max_user_watches"
_USUAL_LIMIT = 8192
_REFUSED = WatchDescriptor(-1)
# More than is there nearly always. To make room for a full queue each time takes 15 us, this none.
_BUFFER_SIZE = 1 << 16
# The kernel hands over whole events only: so much room may be left where there are more.
_LONGEST_EVENT = 16 + 256
# As the kernel writes them, the second without its first word, the watch. Neither is found in the
# midst of anything else: what follows a NUL in a name are NULs, and no watch and no mask is 0.
_OVERFLOW = struct.pack("iIII", -1, _C.IN_Q_OVERFLOW, 0, 0)
_ENDED = struct.pack("III", _C.IN_IGNORED, 0, 0)
_WORD = 4
# What FIONREAD fills in: an int.
_SIZE = struct.Struct("i")
_NO_SIZE = bytes(_SIZE.size)

_RESULTS = {
    errno.ENOSPC: Watched.LIMIT,
    errno.EACCES: Watched.UNREADABLE,
    errno.EPERM: Watched.UNREADABLE,
    errno.ENOENT: Watched.GONE,
    errno.ENOTDIR: Watched.GONE,
    errno.ELOOP: Watched.GONE,
}


_Booking = tuple[bytes, Purpose]
_Registration = tuple[WatchDescriptor, CallbackId]


class _Reader(InotifyFD):
    """watchdog's reader, which drops at once what cannot matter: a storm of files in a folder.

    In a folder that is `at_work` every file matters. What comes between the kernel's watch and its
    entry there may be dropped, as what came before the watch.
    """

    def __init__(self) -> None:
        super().__init__()
        self.at_work: set[WatchDescriptor] = set()
        self.files = BUILT_IN

    def read_events(self, *, event_buffer_size: int = _BUFFER_SIZE) -> list[InotifyEvent]:
        """The next events, those of folders, markers and places at work."""
        return [
            event
            for event in super().read_events(event_buffer_size=event_buffer_size)
            if not event.name
            or event.mask & _C.IN_ISDIR
            or event.wd in self.at_work
            or is_marker(event.name, self.files)
        ]

    def _read_event_buffer(self, event_buffer_size: int) -> bytes:
        found = super()._read_event_buffer(event_buffer_size)
        if len(found) > event_buffer_size - _LONGEST_EVENT:
            found += self._rest()
        return _without_the_overtaken(found)

    def _rest(self) -> bytes:
        """What is there beyond a full buffer, so that the end of a full queue is seen with it."""
        with self._lock:  # under which it is closed
            if self._closed:
                return b""
            (size,) = _SIZE.unpack(fcntl.ioctl(self._inotify_fd, termios.FIONREAD, _NO_SIZE))
            return os.read(self._inotify_fd, size) if size else b""


def _without_the_overtaken(found: bytes) -> bytes:
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

    A watch belongs to the folder, not to its path: a bind mount gives it a second one, and after a
    rename the kernel gives the same descriptor for the new path while the old one is still booked.
    So each descriptor has bookings, and what happens is told of all their paths. `budget` is how
    many watches to take at most; editors need theirs too.
    """

    def __init__(self, post: Post, budget: int | None = None) -> None:
        self._fd = _Reader()
        self._budget = _own_share() if budget is None else budget
        self._ids = itertools.count(1)
        self._listeners = {purpose: _Listener(self, purpose, post) for purpose in Purpose}
        self._registered: dict[_Booking, _Registration] = {}
        # Tuples: most have one, and a dictionary would be ten times as large.
        self._bookings: dict[WatchDescriptor, tuple[_Booking, ...]] = {}

    def start(self) -> None:
        """Start the reading thread; what happened since a folder was watched is told then."""
        self._fd.start()

    def stop(self) -> None:
        """End the thread and close the instance."""
        self._fd.stop()
        if self._fd.is_alive():
            self._fd.join()

    def is_marker(self, name: bytes) -> bool:
        """Whether the coming or going of `name` has to be told."""
        return is_marker(name, self._fd.files)

    def heed(self, files: ProjectFiles) -> None:
        """As in `Watcher`; from the next event on."""
        self._fd.files = files

    def count(self) -> int:
        """How many inotify watches are held."""
        return len(self._bookings)

    def watch(self, folder: bytes, purpose: Purpose) -> Watched:
        """Watch what is at `folder` now, which must be a folder and no link."""
        booking = (folder, purpose)
        before = self._registered.get(booking)
        if before is None and len(self._bookings) >= self._budget:
            return Watched.LIMIT
        identifier = CallbackId(next(self._ids))
        mask = Mask(_MASKS[purpose] | _HOW)
        try:
            wd = self._fd.add_callback(folder, mask, self._listeners[purpose], identifier)
        except OSError as error:
            result = _RESULTS.get(error.errno or 0)
            if result is None:
                raise
            return result
        if wd == _REFUSED:
            # watchdog swallows EACCES and books a watch -1.
            self._fd.remove_callbacks([(_REFUSED, identifier)])
            return Watched.UNREADABLE
        if before is not None:
            # Only now: the kernel must not end a watch that goes on.
            self._release(booking, before)
        self._registered[booking] = wd, identifier
        if booking not in (its := self._bookings.get(wd, ())):
            self._bookings[wd] = (*its, booking)
        if purpose is Purpose.AT_WORK:
            self._fd.at_work.add(wd)
        return Watched.YES

    def unwatch(self, folder: bytes, purpose: Purpose) -> None:
        """Give one purpose up; the kernel's watch goes with the last."""
        booking = (folder, purpose)
        registration = self._registered.get(booking)
        if registration is not None:
            self._release(booking, registration)

    def resolve(self, purpose: Purpose, event: InotifyEvent) -> News:
        """The event in terms of paths; nothing if the folder is not watched any more."""
        change, moved = _change(event), bool(event.mask & _C.IN_MOVED_TO)
        return tuple(
            Happening(folder, event.name, change, purpose, moved)
            for folder, its in self._bookings.get(event.wd, ())
            if its is purpose
        )

    def resolve_end(self, wd: WatchDescriptor) -> News:
        """The kernel ended a watch: the folder was deleted or unmounted. Told for each purpose,
        since each has to be watched anew."""
        bookings = self._bookings.pop(wd, ())
        for booking in bookings:
            del self._registered[booking]
        self._note_work(wd)
        return tuple(
            Happening(folder, b"", Change.ITSELF, purpose) for folder, purpose in bookings
        )

    def _note_work(self, wd: WatchDescriptor) -> None:
        if all(purpose is not Purpose.AT_WORK for _, purpose in self._bookings.get(wd, ())):
            self._fd.at_work.discard(wd)

    def _release(self, booking: _Booking, registration: _Registration) -> None:
        del self._registered[booking]
        wd, _ = registration
        if others := tuple(each for each in self._bookings[wd] if each != booking):
            self._bookings[wd] = others
        else:
            del self._bookings[wd]
        self._note_work(wd)
        self._fd.remove_callbacks([registration])


def _own_share() -> int:
    """A quarter of what the system grants the user."""
    try:
        with open(_LIMIT_FILE, "rb") as file:
            return int(file.read()) // 4
    except (OSError, ValueError):
        return _USUAL_LIMIT // 4


def _change(event: InotifyEvent) -> Change:
    if event.mask & _COME:
        return Change.CAME
    if event.mask & _LEAVE:
        return Change.LEFT
    return Change.ALTERED if event.name else Change.ITSELF


class _Listener:
    """watchdog's WatchCallback for one purpose: hands over what matters, in the reading thread."""

    def __init__(self, watcher: InotifyWatcher, purpose: Purpose, post: Post) -> None:
        self._watcher = watcher
        self._purpose = purpose
        self._post = post
        self._mask = _MASKS[purpose]

    def on_event(self, event: InotifyEvent) -> None:
        """Hand it over if it may matter for this purpose."""
        mask = event.mask
        if not mask & self._mask:
            return
        if not event.name or self._tells(event.name, is_folder=bool(mask & _C.IN_ISDIR)):
            self._post(partial(self._watcher.resolve, self._purpose, event))

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        """The kernel gave the watch up."""
        self._post(partial(self._watcher.resolve_end, wd))

    def on_queue_overflow(self) -> None:
        """Called for each listener in use: once is enough, but which one is left is not known."""
        self._post(overflowed)

    def _tells(self, name: bytes, *, is_folder: bool) -> bool:
        match self._purpose:
            case Purpose.FRONTIER:
                return is_folder or self._watcher.is_marker(name)
            case Purpose.AT_WORK | Purpose.LINKS:
                return True
            case Purpose.ABOVE:
                return is_folder
            case Purpose.ROOT:
                # IN_ATTRIB is also told of the entries of a watched folder.
                return False
