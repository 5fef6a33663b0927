"""Survey what the walk of a parent leaves out although it may hold projects.

Only `rootsd up`, `scan`, and `doctor` need this, so it is a walk of its own. It names each mount
and each folder that cannot be read. Of links, of folders that are skipped because of their names,
and of folders that lie too deep, it names those that are a repository or have one directly inside.
It looks into no mount, and it follows a link only if that returns in time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from itertools import islice

from msgspec import Struct

from rootsd.core.exclusion import Exclusion, ExclusionReason
from rootsd.core.model import Parent
from rootsd.core.paths import contains
from rootsd.disk.markers import WalkRules, child, has_git
from rootsd.disk.reader import list_names
from rootsd.disk.walk import FolderListing, ProposalScope, Walker, WalkFolder

_MAX_SECONDS = 1.0
_MAX_FOUND = 50
# The entries of a skipped folder in which to look for a repository.
_MAX_LOOKS = 64
_MOUNTS = (ExclusionReason.MOUNT, ExclusionReason.REMOTE_MOUNT)


class FollowLinks(Struct, frozen=True):
    """How to follow links without hanging.

    `real_path` returns the canonical path of a path with links. `may_follow` tells whether a
    lookup returns in time. `parents` are all parents: what lies in one of them is no loss.
    """

    real_path: Callable[[bytes], bytes]
    may_follow: Callable[[bytes], bool]
    parents: tuple[bytes, ...]


def survey(parent: Parent, rules: WalkRules, links: FollowLinks) -> list[Exclusion]:
    """Return what the walk of a parent leaves out, at most 50 folders, in a second or so.

    Raises nothing.
    """
    return list(islice(_Survey(parent, rules, links).found(), _MAX_FOUND))


class _Survey:
    def __init__(self, parent: Parent, rules: WalkRules, links: FollowLinks) -> None:
        self._parent = parent
        self._rules = rules
        self._links = links
        self._walker = Walker(rules)
        self._until = time.monotonic() + _MAX_SECONDS

    def found(self) -> Iterator[Exclusion]:
        top = WalkFolder(self._parent.path, self._rules.depth, top=True)
        if not self._links.may_follow(top.path):
            return
        scan = self._walker.walk(top, cancelled=self._is_late)
        for path in scan.unreadable:
            yield Exclusion(ExclusionReason.UNREADABLE, path)
        for listing in scan.listings:
            if self._is_late():
                return
            if listing.frontier:
                yield from self._left_out_of(listing)

    def _is_late(self) -> bool:
        return time.monotonic() > self._until

    def _left_out_of(self, listing: FolderListing) -> Iterator[Exclusion]:
        place = listing.place
        try:
            with os.scandir(place.path) as entries:
                folders = [each for each in entries if each.is_symlink() or each.is_dir()]
        except OSError:
            return
        entered = {each.path for each in listing.below if not each.skipped}
        skipped = self._walker.skipped(place, list_names(place.path), listing.zone)
        for entry in sorted(folders, key=lambda each: each.name):
            if entry.path in entered:
                continue
            if entry.is_symlink():
                yield from self._link(entry.path)
            else:
                why = self._rules.why_skipped(place.path, entry.name, skipped)
                yield from self._folder(listing, entry.path, why)

    def _folder(
        self, listing: FolderListing, path: bytes, why: ExclusionReason | None
    ) -> Iterator[Exclusion]:
        if why in _MOUNTS and path not in self._rules.crossed:
            yield Exclusion(why, path, self._parent.path)
        elif why is None and listing.place.levels_left <= 0:
            if has_git(path):
                levels = len([name for name in path[len(self._parent.path) :].split(b"/") if name])
                yield Exclusion(ExclusionReason.DEPTH, path, self._parent.path, levels)
        elif (
            # In a project, these hold what the project depends on.
            listing.zone is ProposalScope.OPEN
            and why is not None
            and why.yields_to_a_repository
            and not has_git(path)
            and self._holds_one(path)
        ):
            yield Exclusion(why, path)

    def _link(self, path: bytes) -> Iterator[Exclusion]:
        real = self._links.real_path(path)
        # A link to a folder above a parent, such as `..`, leads back to it.
        is_seen = any(contains(at, real) or contains(real, at) for at in self._links.parents)
        if is_seen or not self._links.may_follow(real):
            return
        if has_git(real) or self._holds_one(real):
            yield Exclusion(ExclusionReason.LINK, path, real)

    def _holds_one(self, path: bytes) -> bool:
        """Return whether one of the first entries of a folder is a git checkout."""
        try:
            with os.scandir(path) as entries:
                inside = [child(path, each.name) for each in islice(entries, _MAX_LOOKS)]
        except OSError:
            return False
        return any(self._links.may_follow(each) and has_git(each) for each in inside)
