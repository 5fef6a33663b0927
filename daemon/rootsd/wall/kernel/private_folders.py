"""Folders of a program's own where no private file system can be mounted.

The static engine cannot put an empty folder over the home folder. So the program gets another
home folder by its environment. It has links to the toolchains and settings that the program may
read, at their usual names, and copies of the files that the program keeps. What the program makes
there is removed at the end, but for its caches and kept files.

Only a program behind the wall writes below these folders. So nothing here follows a link.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress

from rootsd.core.mount_plan import ViewEntry, ViewEntryKind
from rootsd.core.paths import ancestors, contains
from rootsd.wall.git.private_worktrees import flat_name
from rootsd.wall.git.wall_folders import RUN_PREFIX
from rootsd.wall.kernel.own_storage import (
    CACHES,
    COPIES,
    remove_ended,
    remove_private,
)
from rootsd.wall.system_calls import closing, open_below, open_path

_LINKED = frozenset(
    {
        ViewEntryKind.STATE, ViewEntryKind.KEPT, ViewEntryKind.CACHE, ViewEntryKind.READ,
        ViewEntryKind.WRITE, ViewEntryKind.LINK, ViewEntryKind.TOOLS,
    }
)  # fmt: skip


class PrivateFolders:
    """The folders of one start of a program, below `folder`, which no other start uses."""

    def __init__(self, folder: bytes, home: bytes) -> None:
        """Make the folders, and remove those of an earlier start. Raises OSError."""
        self._folder = folder
        remove_private(folder)
        self._home = home
        self._run = tempfile.mkdtemp(prefix=RUN_PREFIX, dir=folder)
        for place in (COPIES, CACHES):
            os.makedirs(folder + place, 0o700, exist_ok=True)
        for name in (b"home", b"tmp", b"runtime"):
            os.mkdir(self._run + b"/" + name, 0o700)

    @property
    def writable(self) -> tuple[bytes, ...]:
        """The folders that the program may change."""
        return (self._run, self._folder + COPIES, self._folder + CACHES)

    @property
    def variables(self) -> dict[str, str]:
        """The variables that lead there."""
        run = os.fsdecode(self._run)
        return {
            "HOME": os.path.join(run, "home"),
            "TMPDIR": os.path.join(run, "tmp"),
            "XDG_RUNTIME_DIR": os.path.join(run, "runtime"),
        }

    def add(self, entries: Iterable[ViewEntry]) -> None:
        """Show what `entries` name below the home folder. Raises OSError."""
        linked: dict[bytes, ViewEntry] = {}
        ordered = sorted(entries, key=lambda each: each.path.count(b"/"))
        own = {each.path for each in ordered if each.kind is ViewEntryKind.CACHE}
        closed = own | {each.path for each in ordered if each.kind is ViewEntryKind.HIDDEN}
        for entry in ordered:
            above = next((linked[e] for e in ancestors(entry.path) if e in linked), None)
            if above is not None:
                if above.kind is ViewEntryKind.STATE and entry.kind is ViewEntryKind.READ:
                    _link_in_state(above, entry.path)
                continue  # a link there would be made in a folder outside, or of the program
            if entry.kind is ViewEntryKind.TOOLS and any(contains(entry.path, e) for e in own):
                for name in os.listdir(entry.path):  # the caches in it are the program's own
                    child = entry._replace(path=entry.path + b"/" + name)
                    if child.path not in closed and os.path.isdir(child.path):
                        linked[child.path] = child
                        self._show(child)
                continue
            if entry.kind in _LINKED:
                linked[entry.path] = entry
            self._show(entry)

    def _show(self, entry: ViewEntry) -> None:
        if entry.kind is ViewEntryKind.KEPT:
            self._link(entry.path, self._kept(entry.path))
        if entry.path == self._home or not contains(self._home, entry.path):
            return
        match entry.kind:
            case ViewEntryKind.STATE:
                self._link(entry.path, entry.target or self._cache(entry.path))
            case ViewEntryKind.CACHE:
                self._link(entry.path, self._cache(entry.path))
            case ViewEntryKind.LINK:
                self._link(entry.path, os.path.join(os.path.dirname(entry.path), entry.target))
            case ViewEntryKind.READ | ViewEntryKind.WRITE | ViewEntryKind.TOOLS:
                self._link(entry.path, entry.path)
            case ViewEntryKind.COPY:
                place = self._place(entry.path)
                with suppress(FileExistsError), open(place, "xb") as file:
                    file.write(entry.content)
            case _:
                pass

    def close(self) -> None:
        """Remove what is gone at the end."""
        remove_ended(self._folder)

    def _link(self, path: bytes, target: bytes) -> None:
        with suppress(FileExistsError):
            os.symlink(target, self._place(path))

    def _place(self, path: bytes) -> bytes:
        """Return where a path of the home folder is, after its parents."""
        place = self._run + b"/home" + path.removeprefix(self._home)
        os.makedirs(os.path.dirname(place), 0o700, exist_ok=True)
        return place

    def _cache(self, path: bytes) -> bytes:
        place = self._folder + CACHES + b"/" + flat_name(path)
        os.makedirs(place, 0o700, exist_ok=True)
        return place

    def _kept(self, path: bytes) -> bytes:
        """Return the program's copy of a file or folder, which is made once."""
        if not contains(self._home, path):
            shown = os.fsdecode(path)
            raise OSError(errno.EINVAL, f"{shown}: --static keeps only files in the home folder")
        place = self._folder + COPIES + b"/" + flat_name(path)
        if not os.path.lexists(place):
            # Not in a folder that a program of an earlier start might still change.
            with tempfile.TemporaryDirectory(prefix="run-", dir=os.fsdecode(self._folder)) as new:
                copy = os.path.join(new, "copy")
                if os.path.isdir(path):
                    shutil.copytree(os.fsdecode(path), copy, symlinks=True)
                else:
                    shutil.copyfile(os.fsdecode(path), copy, follow_symlinks=False)
                os.rename(os.fsencode(copy), place)
        return place


def _link_in_state(state: ViewEntry, path: bytes) -> None:
    """Put a link to the file or folder outside into the state of an agent, which loads it.

    An earlier program may have put anything there. What it made in place of the link is left, if
    it is a folder with something in it.
    """
    folder, name = os.path.split(path[len(state.path) + 1 :])
    with (
        suppress(OSError),
        closing(open_path(state.target, os.O_DIRECTORY)) as own,
        closing(open_below(own, folder or b".", os.O_DIRECTORY)) as place,
    ):
        with suppress(FileNotFoundError):
            try:
                os.unlink(name, dir_fd=place)
            except IsADirectoryError:
                os.rmdir(name, dir_fd=place)
        os.symlink(path, name, dir_fd=place)
