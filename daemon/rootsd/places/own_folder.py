"""Decide whether ROOTSD_DIR may name a folder, before any program uses it.

The folder holds decisions and settings, so nothing but a person may put it there. But a clone or
an archive can contain such a folder, and a file that tools load by themselves (`.envrc`, `.env`,
the variables of a server in `.mcp.json`) can set the variable. So the folder must not lie in a
project, and no other user may be able to replace it.

The answer does not depend on how the folder is named. A link in a project may lead anywhere, and
the project can redirect it. So every folder counts in which the system looks up a part of the
path, not only those that the text or the canonical path shows. The folders of the decisions and
of the sockets count, too.

A person may have approved a folder that nothing marks as a project. Only the daemon that the
person uses without ROOTSD_DIR knows that. If it runs, it is asked.

The lean programs import this module, so it uses only the standard library.
"""

from __future__ import annotations

import os
import stat

from rootsd.core.project_kind import GIT_BARE_NAMES, PROJECT_FILES, PROJECT_GLOBS, VCS_NAMES
from rootsd.disk.links import walk_links
from rootsd.net.root_question import root_with

TYPE_CHECKING = False  # to import typing would take a seventh of the time of `rootsd check`
if TYPE_CHECKING:
    from collections.abc import Iterable

_INNER = (b"state", b"data", b"run")
_ENDINGS = tuple(glob.removeprefix(b"*") for glob in PROJECT_GLOBS)
_NEVER_PROJECTS = (b"/", b"/tmp")
_SHALLOW = 2  # components, as in /var/tmp
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def why_unusable(folder: bytes, sockets: Iterable[bytes], home: bytes) -> str | None:
    """Return why ROOTSD_DIR must not be the absolute path `folder`, as a clause, or None.

    `sockets` are the MCP sockets of the daemon that the user has without ROOTSD_DIR. `home` is the
    home folder in the password database, or empty.
    """
    passed = traversed_folders(folder)
    for inner in _INNER:
        if os.path.islink(os.path.join(folder, inner)):
            passed.update(traversed_folders(os.path.join(folder, inner)))
    return (
        _why_project(passed, home)
        or _why_exposed(passed, None if os.path.isdir(folder) else os.getuid())
        or _why_approved(passed, sockets)
    )


def traversed_folders(path: bytes) -> dict[bytes, None]:
    """Return the folders in which the system looks up a part of `path`, and the last one.

    The paths have no links and no `..`. A part that does not exist has no folder.
    """
    passed: dict[bytes, None] = {b"/": None}
    try:
        for part, target in walk_links(path):
            if target is None:
                if not stat.S_ISDIR(os.lstat(part).st_mode):
                    break
                passed.setdefault(part)
    except OSError:  # the rest does not exist yet, or cannot be reached: its use will say so
        return passed
    return passed


def _why_project(folders: dict[bytes, None], home: bytes) -> str | None:
    for folder in folders:
        if folder not in _NEVER_PROJECTS and _is_project(folder) and not _is_usual(folder, home):
            return f"is in the project {_shown(folder)}, whose files could make decisions for you"
    return None


def _is_usual(folder: bytes, home: bytes) -> bool:
    """Return whether `folder` is no project even with markers: dotfiles in the home folder, /tmp.

    What lies deeper in such a place may be a project that somebody cloned there.
    """
    from rootsd.core.paths import RefusedPlaces, contains  # noqa: PLC0415 - slow, rarely needed

    home = home or b"/"
    if contains(folder, home):
        return True
    is_shallow = folder.count(b"/") <= _SHALLOW or os.path.dirname(folder) == home
    return is_shallow and RefusedPlaces(home).why_no_root(folder) is not None


def _is_project(folder: bytes) -> bool:
    try:
        names = set(os.listdir(folder))
    except OSError:  # a folder that may be entered but not listed
        names = {name for name in VCS_NAMES if os.path.lexists(os.path.join(folder, name))}
    return (
        not names.isdisjoint(VCS_NAMES)
        or names >= GIT_BARE_NAMES
        or not names.isdisjoint(PROJECT_FILES)
        or any(name.endswith(_ENDINGS) for name in names)
    )


def _why_exposed(folders: dict[bytes, None], next_owner: int | None) -> str | None:
    """Return who else could replace one of the folders, or None.

    `next_owner` will own the first part that does not exist; it is None if all parts exist.
    """
    found = {folder: os.lstat(folder) for folder in folders}
    for folder, entry in reversed(found.items()):  # the innermost one says most
        owners: set[int | None] = {
            other.st_uid for path, other in found.items() if _is_in(path, folder)
        }
        # If ROOTSD_DIR exists, it must be private, and a sticky bit is not enough.
        if sentence := _why_replaceable(folder, entry, owners or {next_owner}):
            return f"is not safe: {sentence}"
    return None


def _why_replaceable(folder: bytes, entry: os.stat_result, owners: set[int | None]) -> str | None:
    """Return who else could replace what these users own in the folder, or None."""
    uid = os.getuid()
    is_closed = not entry.st_mode & _OTHERS_WRITE or (
        entry.st_mode & stat.S_ISVTX and owners <= {0, uid}
    )
    if is_closed and entry.st_uid in (0, uid):
        return None
    from rootsd.disk.writers import FolderWriters  # noqa: PLC0415 - slow, and rarely needed

    writers = FolderWriters.other_than(uid)
    reasons = (writers.why_replaceable(folder, entry, owner) for owner in owners)
    return next(filter(None, reasons), None)


def _why_approved(folders: dict[bytes, None], sockets: Iterable[bytes]) -> str | None:
    """Return which approved root has one of the folders, or None if no daemon says so."""
    innermost = [path for path in folders if not any(_is_in(other, path) for other in folders)]
    for path in innermost:
        if (root := root_with(path, sockets)) is not None:
            return (
                f"is in the approved root {_shown(os.fsencode(root))}, which agents may write to"
            )
    return None


def _is_in(path: bytes, folder: bytes) -> bool:
    return path != folder and os.path.dirname(path) == folder


def _shown(path: bytes) -> str:
    from rootsd.core.labels import safe_label  # noqa: PLC0415 - only needed for messages

    return safe_label(path, limit=None)
