"""Watch folders on Linux with one inotify instance.

`InotifyWatcher` watches individual folders. watchdog's observers would watch every directory below
a folder. With some thousands of directories they livelock, and at the limit of watches they
silently leave folders out.

The work is split into four modules. `inotify_reader` makes the system calls, `inotify_records`
decodes the records that they return, `watch_registry` knows the folder of each watch, and
`inotify_translator` turns records into events. Source: inotify(7).
"""

from __future__ import annotations

import errno
import logging
from threading import Lock

from rootsd.disk.markers import ProjectFiles
from rootsd.watch.events import PostResolver, WatchOutcome, WatchPurpose, resolve_overflow
from rootsd.watch.inotify_limits import InotifyLimit, read_inotify_limit
from rootsd.watch.inotify_reader import InotifyReader
from rootsd.watch.inotify_records import decode_records, drop_before_overflow
from rootsd.watch.inotify_translator import InotifyTranslator, watch_mask
from rootsd.watch.watch_registry import WatchRegistry

log = logging.getLogger(__name__)

_DEFAULT_LIMIT = 8192
_RESULTS = {
    errno.ENOSPC: WatchOutcome.LIMIT,
    errno.EACCES: WatchOutcome.UNREADABLE,
    errno.EPERM: WatchOutcome.UNREADABLE,
    errno.ENOENT: WatchOutcome.GONE,
    errno.ENOTDIR: WatchOutcome.GONE,
    errno.ELOOP: WatchOutcome.GONE,
}


class InotifyWatcher:
    """A `Watcher` on inotify.

    `budget` is the maximum number of watches. It leaves watches for editors and other programs.
    Raises OSError if the user has no inotify instances left (EMFILE).
    """

    def __init__(self, post: PostResolver, budget: int | None = None) -> None:
        self._post = post
        self._budget = _default_budget() if budget is None else budget
        self._registry = WatchRegistry()
        self._translator = InotifyTranslator(self._registry)
        # Held while a watch is added. Otherwise the reading thread could get the first records of
        # a watch before the registry knows the watch.
        self._lock = Lock()
        self._reader = InotifyReader(self._handle)

    def start(self) -> None:
        """Start the reading thread. It also reports changes since the first `watch`."""
        self._reader.start()

    def stop(self) -> None:
        """End the thread and close the instance."""
        self._reader.close()

    def set_project_files(self, files: ProjectFiles) -> None:
        """Also report files with these names from the next event on."""
        self._translator.files = files

    def count(self) -> int:
        """Return the number of kernel watches."""
        return len(self._registry)

    def watch(self, folder: bytes, purpose: WatchPurpose) -> WatchOutcome:
        """Watch a folder without following a link."""
        is_full = len(self._registry) >= self._budget
        is_new = self._registry.watch_of(folder, purpose) is None
        if is_full and is_new and not self._makes_room_for(purpose):
            return WatchOutcome.LIMIT
        try:
            self._add(folder, purpose)
        except OSError as error:
            # Other errors, such as ENOMEM, or EIO from a removed disk.
            return _RESULTS.get(error.errno or 0, WatchOutcome.FAILED)
        return WatchOutcome.WATCHED

    def unwatch(self, folder: bytes, purpose: WatchPurpose) -> None:
        """Stop watching for one purpose. The kernel watch ends with the last purpose."""
        with self._lock:
            wd = self._registry.watch_of(folder, purpose)
            if wd is not None:
                self._remove(folder, purpose, wd)

    def _makes_room_for(self, purpose: WatchPurpose) -> bool:
        """End the watch of a repository's markers, for a purpose that needs one more.

        Return whether there is room.
        """
        spare = self._registry.folder_for(WatchPurpose.MARKERS)
        if purpose is WatchPurpose.MARKERS or spare is None:
            return False
        self.unwatch(spare, WatchPurpose.MARKERS)
        return len(self._registry) < self._budget

    def _add(self, folder: bytes, purpose: WatchPurpose) -> None:
        with self._lock:
            wd = self._reader.add(folder, watch_mask(purpose))
            before = self._registry.watch_of(folder, purpose)
            if before == wd:
                return
            if before is not None:
                self._remove(folder, purpose, before)
            self._registry.add(folder, purpose, wd)

    def _remove(self, folder: bytes, purpose: WatchPurpose, wd: int) -> None:
        self._registry.remove(folder, purpose)
        if not self._registry.purposes_of(wd):
            self._reader.remove(wd)

    def _handle(self, found: bytes) -> None:
        """Post the events of a buffer. Runs in the reading thread."""
        records = decode_records(drop_before_overflow(found))
        with self._lock:
            resolvers = self._translator.translate(records)
        for resolver in resolvers:
            if resolver is resolve_overflow:
                log.warning(
                    "the kernel's queue of file events overflowed; rootsd scans everything again"
                )
            self._post(resolver)


def _default_budget() -> int:
    """Return a quarter of the user's limit."""
    return (read_inotify_limit(InotifyLimit.WATCHES) or _DEFAULT_LIMIT) // 4
