"""Keep the names of all files in a root from before programs saw it.

A child of the warden lists them, so that the start of a wall does not wait. Only names and inode
numbers are kept: whether a file has changed since, its ctime tells at the end. A program can
choose neither. Git directories are left out, and so is what is mounted in the root.

A listing is a file of parts, with two NULs between them. The first part is the time of the start,
the path of the root, and the numbers of the watches of its folders, if all are watched. Each other
part is a folder: its path, and then its files.

The child also has inotify watch the folders, if they are not too many. If nothing happened there,
the end need not look at a single file. A write through a second name elsewhere would escape this,
but programs cannot make such a name where they can also write.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rootsd.core.paths import contains
from rootsd.disk.git_pointer import GIT
from rootsd.wall.git.index import own_directory
from rootsd.wall.git.name_watch import ANY_CHANGE, WallWatch
from rootsd.wall.git.wall_folders import CHANGES, names_in
from rootsd.wall.system_calls import close_from, closing, open_below, open_path

if TYPE_CHECKING:
    from rootsd.wall.git.file_changes import ChangedRoot
    from rootsd.wall.git.left_behind import SessionEnd

INDEX = b".index"
"""Added to the name of a listing: a copy of what git tracked then."""
UNWATCHED = "-"
LATE = "/"
"""In front of the path of a folder that has changed since the start, or could not be listed."""
_NAMES, _INCOMPLETE = CHANGES + b"/names/", b".new"
_CLOCK_OF_CTIME = 5  # CLOCK_REALTIME_COARSE, which may be a few ms behind
_MAX_DELAY_MS = 100  # of a root that comes later: a revoke would wait, too
_MAX_WAIT_MS = 500  # only a root with some 100,000 files takes longer than the rest of a start
_MAX_STEP_NS, _S = 10_000_000, 1_000_000_000
_KILLED = sys.maxsize
_PART_OF_WATCHES, _MAX_WATCHES = 64, 1 << 14  # other programs of this user need some, too
_MAX_ENTRIES = 1_000_000
_MAX_INDEX_BYTES = 64 << 20
_GIT = os.fsdecode(GIT)


class ListedFolder(NamedTuple):
    """A folder in a root as it is now: its files, and whether git has a checkout there.

    `path` is relative to the root, and empty for the root. The `files` can be asked for more until
    the next folder. `changed_ns` is the ctime of the folder. It is None if not all is known.
    """

    path: str
    files: Sequence[os.DirEntry[str]]
    changed_ns: int | None = None
    is_checkout: bool = False


class RootListings:
    """The listings of the roots of one session. `folder` is that of its wall.

    After a kill, there is no `watch`, and they are those on the disk. Children do all that may
    take long, because a revoke must not wait for it.
    """

    def __init__(self, folder: bytes, watch: WallWatch | None) -> None:
        self._folder = folder
        self._watch = watch
        self._roots: set[bytes] = set()
        self._unlisted: set[bytes] = set()  # by a complete listing, as far as is known
        self._children: list[int] = []
        self._awaited = 0
        self._last = _KILLED  # the number of the newest listing; a child has that of its start
        self._is_late = True
        self._clock_ns = 0

    def begin(self, roots: Iterable[bytes]) -> None:
        """Fork a child that lists roots. A root inside another one is listed with that."""
        if self._last == _KILLED:
            self._forget()  # those of a session that was killed
            self._is_late, self._last = False, 0
            self._clock_ns = _clock_since_boot()
        self._roots.update(roots)
        wanted = [each for each in roots if not _is_git_directory(each) and not self._inner(each)]
        self._unlisted.update(wanted)
        if wanted:
            self._last += 1
            place = self._folder + _NAMES + b"%d-" % self._last
            since_ns = time.clock_gettime_ns(_CLOCK_OF_CTIME)
            self._awaited = self._fork(partial(_list_all, wanted, place, since_ns, self._watch))

    def wait(self) -> None:
        """Wait a moment for the child of `begin`."""
        if self._awaited:
            limit_ms = _MAX_WAIT_MS if self._last == 1 else _MAX_DELAY_MS
            self._is_late |= not _has_ended(self._awaited, limit_ms)
            self._awaited = 0

    def end_early(self, root: bytes, place: bytes | None) -> None:
        """Look for the changes in a root that programs no longer see, and keep them."""
        self._roots.discard(root)
        if self._watch is not None:
            self._watch.attend()
        self._fork(partial(self._keep_changes, root, place))
        self._unlisted.discard(root)
        if inner := [each for each in self._roots if contains(root, each)]:
            self._is_late = True  # programs see these already
            self.begin(inner)

    def _keep_changes(self, root: bytes, place: bytes | None) -> None:
        from rootsd.wall.git.session_record import JournalEntry, append  # noqa: PLC0415 - no start

        for child in self._children:
            _has_ended(child, None)
        for changed in self._changes({root: place}):
            append(self._folder, JournalEntry(root=changed))

    def conclude(
        self, places: Mapping[bytes, bytes | None], runs: Iterable[bytes], end: SessionEnd
    ) -> list[str]:
        """Make the record of the session. Return sentences for people. Raises OSError.

        `places` are the roots, and where they are now. `runs` are files that run by themselves.
        """
        from rootsd.wall.git.session_record import conclude_record  # noqa: PLC0415 - no start

        self._reap(0)
        if self._watch is not None:
            self._watch.attend()
        try:
            return conclude_record(self._folder, self._changes(places), runs, end)
        finally:
            self._forget()

    def _changes(self, places: Mapping[bytes, bytes | None]) -> Iterator[ChangedRoot]:
        from rootsd.wall.git.file_changes import ChangedRoot, find_changes, root_of  # noqa: PLC0415 - no start

        # If it was set back, files that changed since may have an earlier ctime.
        is_clock_right = self._clock_ns - _clock_since_boot() < _MAX_STEP_NS
        for name in names_in(self._folder + _NAMES):
            file = self._folder + _NAMES + name
            root, watches = root_of(file)
            is_newer = int(name.partition(b"-")[0]) > self._last
            if root not in places or is_newer or file.endswith(_INCOMPLETE):
                continue
            if watches and self._is_quiet(watches):
                self._unlisted.discard(root)
                yield ChangedRoot(root)
            else:
                with suppress(OSError):
                    changed = find_changes(file, places[root] or root, self._folder + CHANGES)
                    self._unlisted.discard(root)
                    is_certain = is_clock_right and (changed.is_certain or not self._is_late)
                    yield changed._replace(is_certain=is_certain)
            for each in (file, file + INDEX):
                with suppress(OSError):
                    os.unlink(each)
        for root in sorted(
            self._unlisted & places.keys()
        ):  # the disk was full, or the root is gone
            yield ChangedRoot(root, unread=(b".",))

    def _is_quiet(self, watches: Iterable[int]) -> bool:
        """Return whether nothing happened in any of the watched folders since the start."""
        return self._watch is not None and not self._is_late and self._watch.is_quiet(watches)

    def _inner(self, root: bytes) -> bool:
        return any(each != root and contains(each, root) for each in self._roots)

    def _fork(self, work: Callable[[], None]) -> int:
        """Do something in a child, with no descriptor but the watch. Return 0 if that fails."""
        self._reap(os.WNOHANG)
        with suppress(OSError):
            if child := os.fork():
                self._children.append(child)
                return child
            try:
                kept = -1 if self._watch is None else self._watch.fd
                os.closerange(0, max(kept, 0))
                close_from(kept + 1)
                work()
            finally:
                os._exit(0)
        return 0

    def _reap(self, options: int) -> None:
        self._children = [each for each in self._children if not os.waitpid(each, options)[0]]

    def _forget(self) -> None:
        for name in names_in(self._folder + _NAMES):
            with suppress(OSError):
                os.unlink(self._folder + _NAMES + name)


def _has_ended(child: int, timeout_ms: int | None) -> bool:
    """Wait for the end of a process that this one, or its parent, has started."""
    poll = select.poll()
    with closing(os.pidfd_open(child)) as ended:
        poll.register(ended, select.POLLIN)
        return bool(poll.poll(timeout_ms))


def _clock_since_boot() -> int:
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _list_all(
    roots: Iterable[bytes], place: bytes, since_ns: int, watch: WallWatch | None
) -> None:
    """List roots into files that begin with `place`."""
    os.makedirs(os.path.dirname(place), 0o700, exist_ok=True)
    left, watches = 0, list[int]()
    if watch is not None and watch.fd >= 0:
        with open("/proc/sys/fs/inotify/max_user_watches", encoding="ascii") as file:
            left = min(int(file.read()) // _PART_OF_WATCHES, _MAX_WATCHES)
    for number, root in enumerate(roots):
        parts = []
        watches.clear()

        def add(folder: int) -> None:
            nonlocal left
            if left > 0 and watch is not None:
                left -= 1
                watches.append(watch.add(folder, ANY_CHANGE))
                if watches[-1] < 0:
                    left = 0

        with suppress(OSError):
            for folder in walk(root, add):
                is_late = folder.changed_ns is None or is_since(folder.changed_ns, since_ns)
                files = (f"{each.name}/{each.inode()}" for each in folder.files)
                parts.append("\0".join((LATE * is_late + folder.path, *files)))
            watched = ",".join(map(str, watches)) if left > 0 else UNWATCHED
            header = f"{since_ns}\0{os.fsdecode(root)}\0{watched}"
            _write(root, place + b"%d" % number, "\0\0".join((header, *parts)))


def is_since(changed_ns: int, since_ns: int) -> bool:
    """Return whether a ctime is not before the start. Some file systems have 1 or 2 s only."""
    return changed_ns >= since_ns or (changed_ns % _S == 0 and changed_ns > since_ns - 2 * _S)


def _is_git_directory(path: bytes) -> bool:
    return b"/" + GIT + b"/" in path + b"/"


def walk(root: bytes, visit: Callable[[int], None] | None = None) -> Iterator[ListedFolder]:
    """Yield the folders of a root. Raises OSError.

    `visit` is called with each open folder before it is listed.
    """
    with closing(open_path(root, os.O_DIRECTORY)) as top:
        device = os.fstat(top).st_dev
        waiting, count = [""], 0
        while waiting:
            path = waiting.pop()
            try:
                if count > _MAX_ENTRIES:
                    raise OSError  # noqa: TRY301 - as if it could not be read
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
                with (
                    closing(open_below(top, os.fsencode(path) or b".", os.O_DIRECTORY)) as below,
                    closing(os.open(f"/proc/self/fd/{below}", flags)) as folder,
                ):
                    if os.fstat(folder).st_dev != device:
                        continue
                    if visit is not None:
                        visit(folder)
                    with os.scandir(folder) as entries:
                        found = {each.name: each for each in entries}
                    changed_ns = os.fstat(folder).st_ctime_ns  # after it was listed
                    is_checkout = found.pop(_GIT, None) is not None
                    files: list[os.DirEntry[str]] = []
                    inner: list[os.DirEntry[str]] = []
                    for each in found.values():
                        (inner if each.is_dir(follow_symlinks=False) else files).append(each)
                    count += len(found)
                    waiting += (f"{path}/{e.name}" if path else e.name for e in inner)
                    yield ListedFolder(path, files, changed_ns, is_checkout)
            except FileNotFoundError:
                continue
            except OSError:
                yield ListedFolder(path, ())


def _write(root: bytes, file: bytes, text: str) -> None:
    """Write the listing of a root, which appears when it is complete, and what git tracks now."""
    with open(file + _INCOMPLETE, "wb") as new:
        new.write(os.fsencode(text))
    if (own := own_directory(root)) is not None:
        with suppress(OSError), open(own + b"/index", "rb") as index:
            content = index.read(_MAX_INDEX_BYTES)
            with open(file + INDEX, "wb") as copy:
                copy.write(content)
    os.rename(file + _INCOMPLETE, file)
