"""Find which files in a root a session created, changed, or deleted, and what git knows of them.

A file counts as changed if its ctime is later than the start, so also if it has the same content
again, or if somebody outside changed it. A path counts, not a file: what is moved away is deleted
there and created elsewhere.

Git tells which files it ignores. It reads the ignore files of the checkout, but no settings of
its repository, because those may be a program's.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from enum import Enum
from functools import cache
from typing import NamedTuple

from rootsd.core.record import Text
from rootsd.disk.reader import read_small
from rootsd.wall.git.file_names import INDEX, LATE, UNWATCHED, is_since, walk
from rootsd.wall.git.index import DamagedIndex, index_of_checkout, read_index
from rootsd.wall.git.system_git import ask_git

_MAX_LISTED, _MAX_LISTED_BYTES = 1000, 1 << 17  # of one root
_MAX_BYTES, _MAX_HEADER = 1 << 28, 1 << 18
_MAX_UNREAD, _MAX_CHECKOUTS = 8, 64
_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")
_TIMEOUT_S = 5.0
_OURS = ".rootsd-asks"  # a name that git ignores, since git fails if it ignores nothing


class Change(Enum):
    """What happened to a path."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"


class GitView(Enum):
    """What git says about a path."""

    TRACKED = "tracked"
    UNTRACKED = "untracked"
    IGNORED = "ignored"
    UNKNOWN = "unknown"
    """There is no checkout, or git did not answer."""


class TouchedFile(NamedTuple):
    """A path below a root, and what happened to it."""

    path: Text
    change: Change
    git: GitView = GitView.UNKNOWN


class ChangedRoot(NamedTuple):
    """The files of one root that a session created, changed, or deleted.

    `ignored` is the number of those that git ignores. The other numbers do not count these, and
    `files` has none of them, and not more than a limit. `unread` are folders that could not be
    listed. If not `is_certain`, files may be missing: programs may have been faster than the first
    listing, or somebody has set the clock back.
    """

    root: Text
    created: int = 0
    changed: int = 0
    deleted: int = 0
    ignored: int = 0
    files: tuple[TouchedFile, ...] = ()
    unread: tuple[Text, ...] = ()
    is_certain: bool = True

    @property
    def total(self) -> int:
        """The number of files that git does not ignore."""
        return self.created + self.changed + self.deleted


def root_of(listing: bytes) -> tuple[bytes, tuple[int, ...]]:
    """Return the root that a file lists, and its watches, if it is watched.

    The root of any other file is empty.
    """
    with suppress(OSError, ValueError), open(listing, "rb") as file:
        _, root, watches = file.read(_MAX_HEADER).split(b"\0\0")[0].split(b"\0")
        is_watched = watches != UNWATCHED.encode()
        return root, tuple(map(int, watches.split(b","))) if is_watched else ()
    return b"", ()


def find_changes(listing: bytes, root: bytes, folder: bytes) -> ChangedRoot:
    """Compare a root with the listing of it from the start. Raises OSError.

    It may have moved to `root` since. `folder` is one of ours, for git.
    """
    since_ns, before, is_certain = _read(listing)
    found, checkouts, unread = _compare(since_ns, before, root)
    views = _git_views(root, found, checkouts, listing + INDEX, folder) if found else {}
    counts = defaultdict[Change | GitView, int](int)
    files: list[TouchedFile] = []
    size = 0
    for path in sorted(found):
        view = views.get(path, GitView.UNKNOWN)
        counts[view if view is GitView.IGNORED else found[path]] += 1
        size += len(path)
        is_listed = len(files) < _MAX_LISTED and size < _MAX_LISTED_BYTES
        if is_listed and view is not GitView.IGNORED:
            files.append(TouchedFile(os.fsencode(path), found[path], view))
    return ChangedRoot(
        root, counts[Change.CREATED], counts[Change.CHANGED], counts[Change.DELETED],
        counts[GitView.IGNORED], tuple(files), tuple(map(os.fsencode, unread[:_MAX_UNREAD])),
        is_certain,
    )  # fmt: skip


def _compare(
    since_ns: int, before: dict[str, dict[str, int]], root: bytes
) -> tuple[dict[str, Change], list[str], list[str]]:
    """Return the paths that changed, the folders that are checkouts, and those not read."""
    found: dict[str, Change] = {}
    checkouts, unread = [], []
    for each in walk(root):
        if each.changed_ns is None:
            unread.append(each.path)
            continue
        if each.is_checkout:
            checkouts.append(each.path)
        above = f"{each.path}/" if each.path else ""
        earlier = before.pop(each.path, {})
        for file in each.files:
            with suppress(FileNotFoundError):
                changed_ns = file.stat(follow_symlinks=False).st_ctime_ns
                inode = earlier.pop(file.name, None)
                if inode is None:
                    found[above + file.name] = Change.CREATED
                elif is_since(changed_ns, since_ns) or inode != file.inode():
                    found[above + file.name] = Change.CHANGED
        found |= dict.fromkeys((above + name for name in earlier), Change.DELETED)
    for path, names in before.items():  # these are gone
        if not any(path == each or path.startswith(f"{each}/") for each in unread):
            found.update((f"{path}/{name}", Change.DELETED) for name in names)
    return found, checkouts, unread


def _read(listing: bytes) -> tuple[int, dict[str, dict[str, int]], bool]:
    """Return the start of a listing, the files of each folder, and whether no folder was late."""
    with open(listing, "rb") as file:
        first, *parts = os.fsdecode(file.read(_MAX_BYTES)).split("\0\0")
    folders = {}
    for part in parts:
        path, *entries = part.split("\0")
        pairs = (each.split("/") for each in entries)
        folders[path.removeprefix(LATE)] = {name: int(inode) for name, inode in pairs}
    is_certain = not any(part.startswith(LATE) for part in parts)
    return int(first.split("\0")[0]), folders, is_certain


def _git_views(
    root: bytes, paths: Iterable[str], checkouts: Collection[str], index: bytes, folder: bytes
) -> Mapping[str, GitView]:
    """Return what git says about paths in a root. `index` is what git tracked at the start."""

    @cache
    def checkout_of(folder: str) -> str | None:
        if folder in checkouts:
            return folder
        return checkout_of(os.path.dirname(folder)) if folder else None

    inside = defaultdict[str, list[str]](list)
    for path in paths:
        if (checkout := checkout_of(os.path.dirname(path))) is not None:
            inside[checkout].append(path[len(checkout) + 1 if checkout else 0 :])
    views: dict[str, GitView] = {}
    for checkout in sorted(inside)[:_MAX_CHECKOUTS]:
        place = os.path.join(root, os.fsencode(checkout)) if checkout else root
        tracked = {os.fsdecode(path) for path, _ in index_of_checkout(place).paths}
        if not checkout:
            with suppress(DamagedIndex):
                earlier = read_index(read_small(index, _MAX_BYTES) or b"")
                tracked.update(os.fsdecode(path) for path, _ in earlier)
        others = [path for path in inside[checkout] if path not in tracked]
        found = dict.fromkeys(inside[checkout], GitView.TRACKED)
        if (ignored := _ignored(place, others, folder)) is None:
            found |= dict.fromkeys(others, GitView.UNKNOWN)
        else:
            found |= dict.fromkeys(others, GitView.UNTRACKED)
            found |= dict.fromkeys(ignored, GitView.IGNORED)
        views.update((os.path.join(checkout, path), view) for path, view in found.items())
    return views


def _ignored(checkout: bytes, paths: list[str], folder: bytes) -> frozenset[str] | None:
    """Return which paths git ignores, or None if it does not answer.

    Whole folders come first: a folder of packages may have very many files.
    """
    above = {path: os.path.dirname(path) for path in paths}
    folders = _ask(checkout, {each for each in above.values() if each}, folder)
    if folders is None:
        return None
    others = _ask(checkout, {path for path in paths if above[path] not in folders}, folder)
    if others is None:
        return None
    return others.union(path for path in paths if above[path] in folders)


def _ask(checkout: bytes, paths: Iterable[str], folder: bytes) -> frozenset[str] | None:
    if not paths:
        return frozenset()
    own = folder + b"/git"
    for each in (b"/objects", b"/refs", b"/info"):
        os.makedirs(own + each, 0o700, exist_ok=True)
    for name, text in ((b"/HEAD", "ref: refs/heads/main\n"), (b"/info/exclude", f"/{_OURS}\n")):
        with open(own + name, "w", encoding="ascii") as file:
            file.write(text)
    answer = ask_git(
        (
            b"--git-dir=" + own, b"--work-tree=" + checkout, "check-ignore", "--no-index",
            "--stdin", "-z",
        ),
        {name: os.environ[name] for name in _VARIABLES if name in os.environ},
        os.fsencode("\0".join((_OURS, *paths))),
        _TIMEOUT_S,
    )  # fmt: skip
    return None if answer is None else frozenset(os.fsdecode(answer).split("\0")) - {"", _OURS}
