"""Notice that somebody makes or replaces a name in a folder, with inotify(7).

The tree of a wall covers files and denied folders in a root. Such a cover belongs to the file, not
to its name. If a process outside moves the file away and makes a new one, the new file has no
cover, and the list of mounts does not say so. So the warden watches the folders on the way to each
cover. It also watches for covers that have nothing to cover yet.

One watch serves all roots that want names in one folder, since the kernel has one watch for each
folder. Links are never followed: the caller opens the folders.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import IntFlag

_NON_BLOCKING, _CLOSE_AT_EXEC = 0o4000, 0o2000000
_OVERFLOW, _IGNORED = 0x4000, 0x8000
_EVENT = struct.Struct("iIII")
_BUFFER = 1 << 16

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


class NameWatch:
    """The names in folders that matter to roots. `changed` returns those with one of `events`."""

    def __init__(self, events: NameEvent = APPEARED) -> None:
        self._events_wanted = events
        self.fd: int = _libc.inotify_init1(_NON_BLOCKING | _CLOSE_AT_EXEC)
        """Readable if something has happened; -1 if the user has no instance of inotify left."""
        self._wanted: dict[int, dict[bytes, dict[bytes, bytes]]] = {}
        self._watches: defaultdict[bytes, set[int]] = defaultdict(set)

    def watch(self, root: bytes, folders: Iterable[tuple[int, dict[bytes, bytes]]]) -> bool:
        """Watch names in open folders for `root`, and nothing else for it from now on.

        The values of the names are what `changed` returns. Return False if a watch is missing. A
        folder that was watched before stays so all the time, so that no event is lost.
        """
        kept: set[int] = set()
        is_complete = True
        for folder, names in folders:
            number = self._add(folder)
            if number < 0:
                is_complete = False
                continue
            roots = self._wanted.setdefault(number, {})
            roots[root] = {**roots[root], **names} if number in kept else names
            kept.add(number)
        self._drop(root, self._watches[root] - kept)
        self._watches[root] = kept
        return is_complete

    def add(self, folder: int) -> bool:
        """Watch an open folder, but not any name in it. Return False if that is impossible.

        Then the descriptor tells that something happened, and nothing tells what.
        """
        return self._add(folder) >= 0

    def _add(self, folder: int) -> int:
        number: int = _libc.inotify_add_watch(
            self.fd, b"/proc/self/fd/%d" % folder, ctypes.c_uint32(self._events_wanted)
        )
        return number

    def forget(self, root: bytes) -> None:
        """Stop watching for `root`."""
        self._drop(root, self._watches.pop(root, set()))

    def _drop(self, root: bytes, numbers: Iterable[int]) -> None:
        for number in numbers:
            roots = self._wanted.get(number, {})
            roots.pop(root, None)
            if not roots:
                self._wanted.pop(number, None)
                _libc.inotify_rm_watch(self.fd, number)  # it fails if the folder is gone

    def changed(self) -> dict[bytes, set[bytes]] | None:
        """Return what `watch` was given for the names to which something happened, by root.

        None if nothing has happened in any watched folder. If events were lost, this is all that
        is watched.
        """
        events = list(self._events())
        if not events:
            return None
        found: defaultdict[bytes, set[bytes]] = defaultdict(set)
        for number, mask, name in events:
            if mask & _OVERFLOW:
                for roots in self._wanted.values():
                    for root, names in roots.items():
                        found[root].update(names.values())
            elif mask & _IGNORED:
                for root in self._wanted.pop(number, {}):
                    self._watches[root].discard(number)
            else:
                for root, names in self._wanted.get(number, {}).items():
                    found[root].update(names[each] for each in (name, ANY_NAME) if each in names)
        return {root: names for root, names in found.items() if names}

    def close(self) -> None:
        """Give the instance back. A user has few of them."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def _events(self) -> Iterator[tuple[int, int, bytes]]:
        try:
            data = os.read(self.fd, _BUFFER)
        except OSError:
            return
        at = 0
        while at < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size
            yield number, mask, data[at : at + length].rstrip(b"\0")
            at += length
