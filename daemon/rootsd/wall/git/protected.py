"""Find the files in a root that programs outside run or obey, and a root's shared git directory.

Git runs hooks and the commands in its configuration. direnv, editors, and agents run what a
project's settings name. A confined program that could write these files would run code outside at
the next `git status` or the next start of an editor. So they are read-only inside. Of git's
settings, programs get a copy; see `private_settings`.

`find_protected` returns the paths that exist. For each protected file, the folders above it are
*held*: mounted on themselves, so that they cannot be moved away together with the protection. A
link is held as a link, and the file to which it leads in the root is protected, too. So is what
git's settings and hooks name: the folder of hooks, included settings, and programs.

A worktree that lies in the root, where programs can write, is left out: its own `.git` file could
name another git directory anyway, and `git worktree remove` must be able to remove its entry.

Every file here may be hostile: reads are bounded, and links are not followed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from enum import Enum
from typing import NamedTuple

from rootsd.core.paths import contains
from rootsd.disk.git_pointer import GIT
from rootsd.disk.links import MAX_LINKS
from rootsd.wall.git.directories import recorded_worktree
from rootsd.wall.git.entries import (
    NodeKind,
    folders_above,
    git_directories_below,
    is_git_directory,
    kind_below,
    link_target,
    reach,
)
from rootsd.wall.git.tool_files import untracked_parts

SETTINGS = (b"config", b"config.worktree")
IN_A_GIT_DIRECTORY = b"""
    config config.worktree hooks commondir gitdir info/attributes objects/info/alternates
    info/grafts remotes branches
""".split()

_HOOKS = b"hooks"
_MAX_GIT_DIRECTORIES = 512


class Protection(Enum):
    """How a path in a root is protected."""

    READ_ONLY = "read-only"
    COPY = "a private copy"
    HELD = "held in its place"


_STRICT = (Protection.HELD, Protection.COPY, Protection.READ_ONLY)


class ProtectedPath(NamedTuple):
    """A path relative to a root, how it is protected, and what lies there."""

    path: bytes
    protection: Protection
    kind: NodeKind


class _OpenRoot(NamedTuple):
    """An open root, its path, and what `find_protected` takes to judge folders in it."""

    root: int
    path: bytes
    is_closed: Callable[[bytes], bool]


def find_protected(
    root: int,
    place: bytes,
    is_closed: Callable[[bytes], bool],
    tools: Iterable[bytes],
    writable: Collection[bytes] = frozenset(),
) -> list[ProtectedPath]:
    """Return the protected paths that exist in the folder open as `root`, outermost first.

    `place` is the path of that folder. `is_closed` tells whether a folder in it is one in which
    programs cannot write everywhere, because something else is mounted there. `tools` are the
    `tool_names`, and `writable` those of their files that stay writable all the same.
    """
    found: dict[bytes, ProtectedPath] = {}
    where = _OpenRoot(root, place, is_closed)
    match kind_below(root, GIT):
        case NodeKind.FOLDER:
            _add(found, root, GIT, Protection.HELD)
            _add_git_directory(found, where, GIT + b"/")
        case NodeKind.LINK:
            _add_entry(found, root, GIT, Protection.READ_ONLY)
            if (target := link_target(root, GIT)) is not None:
                _add(found, root, target, Protection.HELD)
                _add_git_directory(found, where, target + b"/")
        case NodeKind.FILE:
            _add(found, root, GIT, Protection.READ_ONLY)  # it leads to the git directory
        case _:
            if is_git_directory(root):
                _add_git_directory(found, where, b"")
    for path in untracked_parts(root, tools, writable):
        _add(found, root, path, Protection.READ_ONLY)
    return sorted(found.values(), key=lambda each: (each.path.count(b"/"), each.path))


def _add_git_directory(found: dict[bytes, ProtectedPath], where: _OpenRoot, prefix: bytes) -> None:
    """Add the files of a git directory, and of the submodules and worktrees in it."""
    root, waiting = where.root, [prefix]
    for _ in range(_MAX_GIT_DIRECTORIES):
        if not waiting:
            return
        prefix = waiting.pop()
        for name in IN_A_GIT_DIRECTORY:
            # Git may track what a link `hooks` leads to, so that belongs to the tool files.
            add = _add_entry if name == _HOOKS else _add
            protection = Protection.COPY if name in SETTINGS else Protection.READ_ONLY
            add(found, root, prefix + name, protection)
        waiting += [
            folder + b"/"
            for group in (b"modules", b"worktrees")
            for folder in git_directories_below(root, prefix + group)
            if group == b"modules" or not _is_open_worktree(where, folder)
        ]
    # Beyond the limit, nothing of the rest can be changed at all.
    for prefix in waiting:
        _add(found, root, prefix.rstrip(b"/"), Protection.READ_ONLY)


def _is_open_worktree(where: _OpenRoot, own: bytes) -> bool:
    """Return whether the worktree of `own`, a folder in `worktrees`, lies open in the root.

    A link on the way may lead out of the root.
    """
    path = recorded_worktree(where.root, where.path, own)
    if path is None or path == where.path or not contains(where.path, path):
        return False
    if where.is_closed(path):
        return False
    return reach(where.root, path[len(where.path) + 1 :])[1] is not NodeKind.LINK


def _add(
    found: dict[bytes, ProtectedPath], root: int, path: bytes, protection: Protection
) -> None:
    """Add a path if it exists, the links that lead there, and the folders above, to be held."""
    for _ in range(MAX_LINKS):
        reached, kind = reach(root, path)
        if kind is None:
            return
        if kind is not NodeKind.LINK:
            break
        _add_entry(found, root, reached, Protection.READ_ONLY)
        target = link_target(root, reached)
        if target is None:
            return
        path = os.path.normpath(target + path[len(reached) :])
        if protection is Protection.COPY:
            protection = Protection.READ_ONLY  # it is no file of this git directory
    if path != b".":
        _add_entry(found, root, path, protection)


def _add_entry(
    found: dict[bytes, ProtectedPath], root: int, path: bytes, protection: Protection
) -> None:
    kind = kind_below(root, path)
    if kind is None or kind is NodeKind.OTHER:
        return
    for above in folders_above(path):
        found.setdefault(above, ProtectedPath(above, Protection.HELD, NodeKind.FOLDER))
    if protection is Protection.COPY and kind is not NodeKind.FILE:
        protection = Protection.READ_ONLY
    known = found.get(path)
    if known is None or _STRICT.index(known.protection) < _STRICT.index(protection):
        found[path] = ProtectedPath(path, protection, kind)
