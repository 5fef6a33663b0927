"""Explain why a walk does not propose a folder.

The explanation repeats the walk, but only on the way to one folder, and with the same `Walker`. So
it cannot contradict what a walk does.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from rootsd.core.exclusion import Exclusion, ExclusionReason
from rootsd.core.model import Parent
from rootsd.disk.markers import WalkRules, child, repository_kind
from rootsd.disk.reader import list_names
from rootsd.disk.walk import FolderListing, ProposalScope, Walker, WalkFolder, is_cache

_MAX_TARGET = 4096
_BY_A_SETTING = (
    ExclusionReason.DEPTH,
    ExclusionReason.MOUNT,
    ExclusionReason.REMOTE_MOUNT,
    ExclusionReason.SKIP_SETTING,
)


def explain_absence(
    path: bytes, parent: Parent, rules: WalkRules, may_follow: Callable[[bytes], bool]
) -> Exclusion | None:
    """Return why the walk of a parent does not propose the folder at `path` in it, or None.

    `path` is absolute and at or below the parent. No link in it is followed. If it is a file, the
    result is about the folder that the file is in. `may_follow` tells whether a lookup returns in
    time. Raises nothing.
    """
    walker, place, around = Walker(rules), WalkFolder(parent.path, rules.depth, top=True), b""
    levels = len(_names_below(parent.path, path))
    why: ExclusionReason | None = None
    for name in _names_below(parent.path, path):
        listing = _list(walker, place, parent.path, may_follow)
        if isinstance(listing, Exclusion):
            return listing
        inside = child(place.path, name)
        if (entry := _entry_at(inside, may_follow)) is _FILE:
            break
        if isinstance(entry, Exclusion):
            return entry
        if listing.kind is not None:
            around = place.path
        stopped = _why_stopped(walker, rules, listing, name)
        entered = next((each for each in listing.below if each.path == inside), None)
        if entered is None and inside in rules.crossed and listing.frontier:
            names = list_names(place.path)
            entered = walker.place_of_mount(place, listing.zone, name, names)
            stopped = rules.why_name_skipped(name, walker.skipped(place, names, listing.zone))
        if entered is None:
            if place.skipped and listing.kind is None:
                return Exclusion(why or ExclusionReason.SKIPPED_NAME, place.path)
            if stopped is ExclusionReason.IN_PROJECT and not _has_marker(path, rules):
                return Exclusion(ExclusionReason.NO_MARKER, path, around)
            at = place.path if stopped is ExclusionReason.CACHE else inside
            other = parent.path if stopped in _BY_A_SETTING else around
            return Exclusion(stopped or ExclusionReason.NO_FOLDER, at, other, levels)
        place, why = entered, stopped
    listing = _list(walker, place, parent.path, may_follow)
    return _conclusion(rules, place, why, around, listing)


def explain_absence_outside(path: bytes, may_follow: Callable[[bytes], bool]) -> Exclusion:
    """Return why no parent proposes the folder at `path`, or the folder that the file is in.

    `path` is absolute and in no parent. The rest is as in `explain_absence`.
    """
    entry = _entry_at(path, may_follow)
    if entry is None or entry is _FILE:
        folder = path if entry is None else os.path.dirname(path)
        return Exclusion(ExclusionReason.OUTSIDE, folder)
    return entry


def _names_below(parent: bytes, path: bytes) -> list[bytes]:
    return [name for name in path[len(parent) :].split(b"/") if name]


def _list(
    walker: Walker, place: WalkFolder, parent: bytes, may_follow: Callable[[bytes], bool]
) -> FolderListing | Exclusion:
    if not may_follow(place.path):
        return Exclusion(ExclusionReason.UNRESPONSIVE, place.path)
    try:
        listing = walker.list_folder(place, is_watched=True)
    except (FileNotFoundError, NotADirectoryError):
        return Exclusion(ExclusionReason.NO_FOLDER, place.path)
    except OSError:
        return Exclusion(ExclusionReason.UNREADABLE, place.path)
    return listing or Exclusion(ExclusionReason.MOUNT, place.path, parent)


_FILE = Exclusion(ExclusionReason.NO_FOLDER, b"")


def _entry_at(path: bytes, may_follow: Callable[[bytes], bool]) -> Exclusion | None:
    """Return why the entry is no folder to enter: absent, a link, or `_FILE`."""
    if not may_follow(path):
        return Exclusion(ExclusionReason.UNRESPONSIVE, path)
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return Exclusion(ExclusionReason.LINK, path, os.readlink(path)[:_MAX_TARGET])
    except OSError as error:
        is_hidden = isinstance(error, PermissionError)
        return Exclusion(
            ExclusionReason.UNREADABLE if is_hidden else ExclusionReason.NO_FOLDER,
            os.path.dirname(path) if is_hidden else path,
        )
    return None if stat.S_ISDIR(mode) else _FILE


def _why_stopped(
    walker: Walker, rules: WalkRules, listing: FolderListing, name: bytes
) -> ExclusionReason | None:
    """Return the reason to leave out the folder `name`, even if it is a repository."""
    place = listing.place
    if place.skipped and listing.kind is None:
        return None
    if not listing.frontier:
        return ExclusionReason.IN_PROJECT
    names = list_names(place.path)
    if not place.top and is_cache(place.path, names):
        return ExclusionReason.CACHE
    if place.levels_left <= 0:
        return ExclusionReason.DEPTH
    return rules.why_skipped(place.path, name, walker.skipped(place, names, listing.zone))


def _conclusion(
    rules: WalkRules,
    place: WalkFolder,
    why: ExclusionReason | None,
    around: bytes,
    listing: FolderListing | Exclusion,
) -> Exclusion | None:
    """Return why `place`, which the walk enters, is no project, or None if it is one."""
    if isinstance(listing, Exclusion):
        return listing
    if listing.kind is not None:
        return None
    if place.skipped and why is not None:
        return Exclusion(why, place.path)
    names = list_names(place.path)
    if not place.top and is_cache(place.path, names):
        return Exclusion(ExclusionReason.CACHE, place.path)
    if around and place.zone is not ProposalScope.OPEN and rules.files.any_in(names):
        return Exclusion(ExclusionReason.IN_PROJECT, place.path, around)
    return Exclusion(ExclusionReason.NO_MARKER, place.path, around)


def _has_marker(path: bytes, rules: WalkRules) -> bool:
    names = list_names(path)
    return repository_kind(names) is not None or rules.files.any_in(names)
