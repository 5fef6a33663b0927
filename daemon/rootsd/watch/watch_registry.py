"""Record which kernel watch serves which folder and purpose.

A kernel watch belongs to a folder, not to a path. A bind mount gives a folder a second path. After
a rename, the kernel returns the same watch for the new path while the registry still has the old
one. So one watch may serve several paths and purposes. Source: inotify(7).

There are thousands of entries, so each is small: two dictionary slots and a number, 120 bytes. The
path takes no more memory, because other objects hold it anyway.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from msgspec import Struct, field

from rootsd.watch.events import WatchPurpose

WatchKey = tuple[bytes, WatchPurpose]


class _PurposeWatches(Struct, eq=False):
    """The watches for one purpose. The only path of a watch is stored without a tuple."""

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

    One thread changes the registry. Another thread may query purposes at the same time.
    """

    def __init__(self) -> None:
        self._by_purpose = tuple((purpose, _PurposeWatches()) for purpose in WatchPurpose)
        self._of = dict(self._by_purpose)
        self._count = 0

    def __len__(self) -> int:
        """Return the number of kernel watches in use."""
        return self._count

    def purposes_of(self, wd: int) -> list[WatchPurpose]:
        """Return the purposes of a watch; none if it is unknown."""
        return [purpose for purpose, watches in self._by_purpose if wd in watches.folders]

    def watches_for(self, purpose: WatchPurpose) -> AbstractSet[int]:
        """Return a live view of the watches for a purpose."""
        return self._of[purpose].folders.keys()

    def watch_of(self, folder: bytes, purpose: WatchPurpose) -> int | None:
        """Return the watch that serves a folder for a purpose, or None."""
        return self._of[purpose].watches.get(folder)

    def folders_of(self, wd: int, purpose: WatchPurpose) -> tuple[bytes, ...]:
        """Return the paths that a watch serves for a purpose, oldest first."""
        return self._of[purpose].folders_of(wd)

    def folder_for(self, purpose: WatchPurpose) -> bytes | None:
        """Return any folder that is watched for a purpose, or None."""
        return next(iter(self._of[purpose].watches), None)

    def add(self, folder: bytes, purpose: WatchPurpose, wd: int) -> None:
        """Record `wd` as the watch of a folder for a purpose, for which it had none."""
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
