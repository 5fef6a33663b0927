"""Find the git directories in a root, and the worktrees that belong to them.

A root may be a checkout, a bare repository, or a folder with several of them. `find_repositories`
returns the outermost git directories: the one of the root, and those of nested repositories near
its top (`_MAX_FOLDERS`). `search_repositories` finds all others, in parts, since a tree may have a
million folders. `common_directories` adds those of submodules, which lie in them.

`find_worktrees` returns the worktrees of all of them that exist. Git writes the path of a worktree
into `worktrees/NAME/gitdir`, and the way back into the `.git` file of the worktree. A program that
can write the first file could name any folder. So a worktree counts only if its `.git` file leads
back. It also counts if its `.git` file leads nowhere, because its repository was moved.

Every file here may be hostile: reads are bounded, and links are not followed.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from itertools import islice

from rootsd.core.paths import contains
from rootsd.disk.git_pointer import GIT, find_git_directory, named_directory, read_git_pointer
from rootsd.disk.links import final_path
from rootsd.wall.git.entries import (
    NodeKind,
    entries_below,
    git_directories_below,
    is_git_directory,
    kind_below,
    link_target,
    names_below,
    read_below,
)
from rootsd.wall.system_calls import closing, open_below

WORKTREES = b"worktrees"
_MAX_REPOSITORIES = 1 << 14
_MAX_FOLDERS, _MAX_LOOKUPS = 64, 1024
_MAX_SEARCHED, _BREADTH_FIRST = 1_000_000, 4096
_MAX_WORKTREES = 4096
_MAX_ENTRIES = 1 << 16
_LARGE = b"node_modules"
_SKIPPED = frozenset((GIT, _LARGE))
_BARE = frozenset((b"HEAD", b"objects", WORKTREES))


def find_repositories(root: int, place: bytes) -> list[bytes]:
    """Return the outermost git directories in the folder open as `root`, relative to it.

    `place` is the path of that folder. A bare repository is `.`. The search for nested
    repositories is breadth first, and stops after `_MAX_FOLDERS`: a tree may have a million.
    """
    own = git_directory_of(root, place, b"")
    if own is None and is_git_directory(root):
        return [b"."]
    found = [] if own is None else [own]
    waiting, lookups = deque([b""]), 0
    folders = _MAX_FOLDERS
    while waiting and folders and lookups < _MAX_LOOKUPS:
        folder = waiting.popleft()
        folders -= 1
        for name, is_nested in _folders(root, folder):
            lookups += 1
            inner = folder + name + b"/"
            waiting.append(inner)
            nested = git_directory_of(root, place, inner) if is_nested else None
            if nested is not None and not any(
                contains(b"/" + each, b"/" + nested) for each in found
            ):
                found.append(nested)
    return found


def search_repositories(
    root: int, place: bytes, mounted: Container[bytes]
) -> Iterator[bytes | None]:
    """Yield the git directories of all nested repositories, and None after each folder.

    `root` is an open folder, and `place` its path. Links are not followed. What is `mounted` there
    is left out, since it may not answer, and so is what lies behind `_MAX_SEARCHED` folders. After
    the first folders, this goes in depth, which needs less memory. Large folders come last.
    """
    waiting, large = deque([b""]), list[bytes]()
    for count in range(_MAX_SEARCHED):
        if not waiting and not large:
            return
        if waiting:
            folder = waiting.popleft() if count < _BREADTH_FIRST else waiting.pop()
        else:
            folder = large.pop()
        if folder and place + b"/" + folder[:-1] in mounted:
            continue
        names, folders = _entries(root, folder)
        if names >= _BARE:
            yield folder[:-1] or b"."
            continue
        if GIT in names and (own := git_directory_of(root, place, folder)) is not None:
            yield own
        for name in folders - {GIT}:
            (large if name == _LARGE else waiting).append(folder + name + b"/")
        yield None


def _entries(root: int, folder: bytes) -> tuple[set[bytes], set[bytes]]:
    """Return the names in a folder, and those of folders among them."""
    with suppress(OSError), entries_below(root, folder) as entries:
        found = list(islice(entries, _MAX_ENTRIES))
        folders = {each.name for each in found if each.is_dir(follow_symlinks=False)}
        return {each.name for each in found}, folders
    return set(), set()


def git_directory_of(root: int, place: bytes, folder: bytes) -> bytes | None:
    """Return the git directory in the root that `folder` names, or None.

    `folder` ends with a slash, or is empty for the root itself. A `.git` may be the directory, a
    link to it, or a file that names it. One outside the root is not visible. Without a `.git`, a
    folder may be a bare repository, to which git turns in it.
    """
    path = folder + GIT
    match kind_below(root, path):
        case NodeKind.FOLDER:
            return path
        case NodeKind.LINK:
            target = link_target(root, path)
        case NodeKind.FILE:
            named = named_directory(read_below(root, path))
            target = None if named is None else _below(place, folder, named)
        case _:
            target = folder[:-1] if folder and _is_bare(root, folder) else None
    if target is None or kind_below(root, target) is not NodeKind.FOLDER:
        return None
    return target


def _is_bare(root: int, folder: bytes) -> bool:
    with suppress(OSError), closing(open_below(root, folder, os.O_DIRECTORY)) as fd:
        return is_git_directory(fd)
    return False


def common_directories(root: int, repositories: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the git directories, and those of the submodules in them, also of worktrees."""
    waiting = list(repositories)
    for _ in range(_MAX_REPOSITORIES):
        if not waiting:
            return
        common = waiting.pop()
        yield common
        waiting += git_directories_below(root, common + b"/modules")
        for name in names_below(root, common + b"/" + WORKTREES, _MAX_WORKTREES):
            inside = common + b"/%s/%s/modules" % (WORKTREES, name)
            waiting += git_directories_below(root, inside)


def find_worktrees(root: int, place: bytes, common: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield those of the `recorded_worktrees` that exist."""
    for folder, own in recorded_worktrees(root, place, common):
        if _leads_to(folder, place + b"/" + own):
            yield folder, own


def recorded_worktrees(root: int, place: bytes, common: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the folders of the worktrees of one git directory, as absolute paths.

    With each one comes the folder of git's record of it, relative to the root. `place` is the path
    of the root. The worktrees may be anywhere.
    """
    group = os.path.normpath(common + b"/" + WORKTREES)
    for name in names_below(root, group, _MAX_WORKTREES):
        own = group + b"/" + name
        if (folder := recorded_worktree(root, place, own)) is not None:
            yield folder, own


def recorded_worktree(root: int, place: bytes, own: bytes) -> bytes | None:
    """Return the folder of a worktree, as git's record `own` of it has it, or None."""
    text = read_below(root, own + b"/gitdir").strip()
    folder, name = os.path.split(os.path.normpath(os.path.join(place, own, text)))
    return folder if text and name == GIT and b"\0" not in text else None


def _leads_to(worktree: bytes, own: bytes) -> bool:
    """Return whether the `.git` file of a worktree leads to `own`, or to a folder that is gone."""
    with suppress(OSError, ValueError):
        folder = final_path(worktree)
        target = find_git_directory(folder)
        if target is not None:
            return target == final_path(own)
        named = read_git_pointer(folder)
        return (
            named is not None
            and os.path.basename(named) == os.path.basename(own)
            and not os.path.lexists(named)
        )
    return False


def _folders(root: int, folder: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield the names of the folders in a folder, not links, and whether git may stop in them."""
    with suppress(OSError), entries_below(root, folder) as entries:
        for each in sorted(entries, key=lambda entry: entry.name):
            if each.name not in _SKIPPED and each.is_dir(follow_symlinks=False):
                marks = (each.path + b"/" + GIT, each.path + b"/HEAD")
                yield each.name, any(map(os.path.lexists, marks))


def _below(place: bytes, folder: bytes, target: bytes) -> bytes | None:
    """Return where a path in `folder` leads, relative to the root; None if it leads outside."""
    path = os.path.normpath(os.path.join(place, folder, target))
    return path[len(place) + 1 :] if path.startswith(place + b"/") else None
