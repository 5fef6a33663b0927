"""Take what a session left in a git directory away, so that git outside meets it nowhere.

A link has its target in the report, and is made again from that. A file is moved to a place beside
the report. Nothing is read or followed: the file is hostile.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from rootsd.wall.git.entries import kind_below
from rootsd.wall.git.facts import Fact, FactKind, is_still_obeyed, read_link
from rootsd.wall.git.settings_file import is_new_submodule
from rootsd.wall.git.tool_files import fingerprint, is_unread
from rootsd.wall.system_calls import closing, open_path

_MAX_COPIED_BYTES = 64 << 20
_CHUNK = 1 << 20
_NOT_FOLLOWED = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def is_removable(fact: Fact) -> bool:
    """Return whether `take_away` can take what was found."""
    return fact.kind in (FactKind.LINK, FactKind.OBEYED)


def still_holds(fact: Fact) -> bool:
    """Return whether what was found is there now."""
    match fact.kind:
        case FactKind.LINK:
            return read_link(fact.path) == fact.value
        case FactKind.HARD_LINK:
            with suppress(OSError):
                return os.lstat(fact.path).st_nlink > 1
            return False
        case FactKind.TOOL_FILE:
            folder, name = os.path.split(fact.path)
            with suppress(OSError), closing(open_path(folder, os.O_DIRECTORY)) as above:
                # The content was not known then, so that of now says nothing.
                return fingerprint(above, name) == fact.value or is_unread(fact.value)
            return False
        case FactKind.SETTINGS | FactKind.NEW_SETTINGS:
            return bool(fact.value)
        case FactKind.OBEYED:  # git may have written only a part of the settings at first
            is_there = os.path.lexists(fact.path) and is_still_obeyed(fact.path)
            return is_there and not is_new_submodule(fact.path)
        case (
            FactKind.PROGRAMS
            | FactKind.UNREAD
            | FactKind.UNREAD_TOOLS
            | FactKind.FIFO
            | FactKind.REPLACED
            | FactKind.COMMANDS
            | FactKind.WORKTREE
        ):
            return os.path.lexists(fact.path)


def take_away(fact: Fact, place: bytes) -> bool:
    """Remove a link, or move a file to `place`. Return whether it is gone."""
    folder, name = os.path.split(fact.path)
    try:
        with closing(open_path(folder, os.O_DIRECTORY)) as above:
            if fact.kind is FactKind.LINK:
                if read_link(fact.path) != fact.value:
                    return False
                os.unlink(name, dir_fd=above)
            else:
                _move((name, above), (place, None))
    except OSError:
        return False
    return True


def put_back_fact(fact: Fact, place: bytes) -> bool:
    """Undo `take_away`. Return False if something else is there now, or the folder is gone.

    Raises OSError.
    """
    try:
        if fact.kind is FactKind.LINK:
            if read_link(fact.path) != fact.value:
                make_link(fact)
            return True
        folder, name = os.path.split(fact.path)
        with closing(open_path(folder, os.O_DIRECTORY)) as above:
            if kind_below(above, name) is not None:
                return False
            _move((place, None), (name, above))
    except (FileExistsError, FileNotFoundError, NotADirectoryError):
        return False
    return True


def make_link(fact: Fact) -> None:
    """Make a link that was found. Raises OSError."""
    folder, name = os.path.split(fact.path)
    with closing(open_path(folder, os.O_DIRECTORY)) as above:
        os.symlink(fact.value, name, dir_fd=above)


def _move(source: tuple[bytes, int | None], target: tuple[bytes, int | None]) -> None:
    """Move a file, also to another file system. Each place is a name and an open folder."""
    (old, old_folder), (new, new_folder) = source, target
    try:
        os.rename(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with closing(os.open(old, os.O_RDONLY | _NOT_FOLLOWED, dir_fd=old_folder)) as file:
            _copy(file, os.open(new, _NEW, 0o600, dir_fd=new_folder))
        os.unlink(old, dir_fd=old_folder)


def _copy(source: int, target: int) -> None:
    """Copy a regular file with its mode to another file system, and close `target`."""
    with closing(target):
        found = os.fstat(source)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_COPIED_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        while os.sendfile(target, source, None, _CHUNK):
            pass
        os.fchmod(target, stat.S_IMODE(found.st_mode) & 0o777)
