"""Notice that somebody makes or replaces a name in a folder, with inotify(7).

The tree of a wall covers files and denied folders in a root. Such a cover belongs to the file, not
to its name. If a process outside moves the file away and makes a new one, the new file has no
cover, and the list of mounts does not say so. So the warden watches the folders on the way to each
cover. It also watches for covers that have nothing to cover yet.

A user has few instances of inotify, so a wall has only one, a `WallWatch`. Each part of the warden
has a view of it, a `NameWatch`. The kernel has one watch for each folder, which all views and
roots share. Links are never followed: the caller opens the folders.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
import termios
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import IntFlag

from rootsd.wall.system_calls import closing, open_below

_NON_BLOCKING, _CLOSE_AT_EXEC = 0o4000, 0o2000000
_OVERFLOW, _IGNORED, _KEEP_OTHERS = 0x4000, 0x8000, 0x20000000
_EVENT, _SIZE = struct.Struct("iIII"), struct.Struct("i")

_libc = ctypes.CDLL(None, use_errno=True)

ANY_NAME = b""
"""Stands for every name in a folder. No file has it."""


class NameEvent(IntFlag):
    """What happens to a name, with the values of inotify(7)."""

    MODIFIED = 0x2
    ATTRIBUTES = 0x4
    WRITTEN = 0x8
    MOVED_FROM = 0x40
    MOVED_TO = 0x80
    CREATED = 0x100
    DELETED = 0x200


APPEARED = NameEvent.CREATED | NameEvent.MOVED_TO
ANY_CHANGE = APPEARED | NameEvent(0x2 | 0x4 | 0x8 | 0x40 | 0x200)


class WallWatch:
    """The instance of inotify of one wall. Call `attend` when `fd` is readable."""

    def __init__(self) -> None:
        self.fd: int = _libc.inotify_init1(_NON_BLOCKING | _CLOSE_AT_EXEC)
        """Readable if something has happened; -1 if the user has no instance of inotify left."""
        self._views: list[NameWatch] = []
        self._eventful: set[int] = set()
        self._has_lost_events = False

    def view(self, events: NameEvent = APPEARED) -> NameWatch:
        """Return a new view, which hears of these events only."""
        self._views.append(view := NameWatch(self, events))
        return view

    def add(self, folder: int, events: NameEvent) -> int:
        """Watch an open folder, and return the number of the watch, or -1 if that is impossible.

        If no view wants the folder, the watch ends with its first event; see `is_quiet`.
        """
        number: int = _libc.inotify_add_watch(
            self.fd, b"/proc/self/fd/%d" % folder, ctypes.c_uint32(events | _KEEP_OTHERS)
        )
        return number

    def attend(self) -> None:
        """Tell the views what has happened."""
        for number, mask, name in self._events():
            if mask & _OVERFLOW:
                self._has_lost_events = True
                for view in self._views:
                    view.take_all()
                continue
            self._eventful.add(number)
            is_wanted = [view.take(number, mask, name) for view in self._views]
            if not any(is_wanted):  # or programs that write there would wake the warden each time
                _libc.inotify_rm_watch(self.fd, number)

    def is_quiet(self, numbers: Iterable[int]) -> bool:
        """Return whether `attend` has seen no event in the folders with these watches."""
        return not self._has_lost_events and self._eventful.isdisjoint(numbers)

    def close(self) -> None:
        """Give the instance back."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def _events(self) -> Iterator[tuple[int, int, bytes]]:
        if self.fd < 0:
            return
        (size,) = _SIZE.unpack(fcntl.ioctl(self.fd, termios.FIONREAD, bytes(_SIZE.size)))
        data = os.read(self.fd, size) if size else b""
        at = 0
        while at < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size
            yield number, mask, data[at : at + length].rstrip(b"\0")
            at += length


class NameWatch:
    """The names in folders that matter to roots. `changed` returns those with one of `events`."""

    def __init__(self, shared: WallWatch, events: NameEvent) -> None:
        self._shared = shared
        self._events = events
        self._wanted: dict[int, dict[bytes, Mapping[bytes, bytes]]] = {}
        self._watches: defaultdict[bytes, set[int]] = defaultdict(set)
        self._found: defaultdict[bytes, set[bytes]] | None = None
        self.unwatched: set[bytes] = set()
        """The roots in which a change is not noticed at once: no watch was left."""

    def watch(self, root: bytes, folders: Iterable[tuple[int, Mapping[bytes, bytes]]]) -> None:
        """Watch names in open folders for `root`, and nothing else for it from now on.

        The values of the names are what `changed` returns. A folder that was watched before stays
        so all the time, so that no event is lost.
        """
        kept: set[int] = set()
        self.unwatched.discard(root)
        for folder, names in folders:
            number = self._shared.add(folder, self._events)
            if number < 0:
                self.unwatched.add(root)
                continue
            roots = self._wanted.setdefault(number, {})
            roots[root] = {**roots[root], **names} if number in kept else names
            kept.add(number)
        self._drop(root, self._watches[root] - kept)
        self._watches[root] = kept

    def watch_below(
        self, root: bytes, top: int, folders: Mapping[bytes, Mapping[bytes, bytes]]
    ) -> None:
        """Do as `watch` for the names in folders below an open one.

        If one of them appears later, the folder above tells.
        """
        self.watch(root, _opened(top, folders))

    def forget(self, root: bytes) -> None:
        """Stop watching for `root`."""
        self._drop(root, self._watches.pop(root, set()))
        self.unwatched.discard(root)
        if self._found is not None:
            self._found.pop(root, None)

    def _drop(self, root: bytes, numbers: Iterable[int]) -> None:
        for number in numbers:
            roots = self._wanted.get(number, {})
            roots.pop(root, None)
            if not roots:
                self._wanted.pop(number, None)  # others may want the watch; see `WallWatch.attend`

    @property
    def has_news(self) -> bool:
        """Whether something has happened since the last `changed`."""
        return self._found is not None

    def changed(self) -> dict[bytes, set[bytes]] | None:
        """Return what `watch` was given for the names to which something happened, by root.

        None if nothing has happened in any watched folder since the last call. If events were
        lost, this is all that is watched.
        """
        found, self._found = self._found, None
        return None if found is None else {root: names for root, names in found.items() if names}

    def take(self, number: int, mask: int, name: bytes) -> bool:
        """Note an event, and return whether this view wants the watch with this number."""
        if number not in self._wanted:
            return False
        if mask & (self._events | _IGNORED):
            found = self._news()
            for root, names in self._wanted[number].items():
                found[root].update(names[each] for each in (name, ANY_NAME) if each in names)
        if mask & _IGNORED:
            for root in self._wanted.pop(number):
                self._watches[root].discard(number)
        return True

    def take_all(self) -> None:
        """Note that something may have happened to all names."""
        found = self._news()
        for roots in self._wanted.values():
            for root, names in roots.items():
                found[root].update(names.values())

    def _news(self) -> defaultdict[bytes, set[bytes]]:
        if self._found is None:
            self._found = defaultdict(set)
        return self._found


def _opened(
    top: int, folders: Mapping[bytes, Mapping[bytes, bytes]]
) -> Iterator[tuple[int, Mapping[bytes, bytes]]]:
    """Yield the folders that exist, each open until the next one."""
    for path, names in folders.items():
        with suppress(OSError), closing(open_below(top, path, os.O_DIRECTORY)) as folder:
            yield folder, names
