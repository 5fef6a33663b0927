"""Check that other users cannot replace a project folder or one above it.

A user who may write to an ancestor of a project can swap everything below it. Two cases are
allowed: a sticky folder in which the entry is ours (as in /tmp), and a group whose only member is
the user (as many distributions create). An access control list may still name other users.

With an access control list, the group bits of the mode are its mask: they limit what the list
grants. The folder's own group may then have no other members although others can write. Sources:
acl(5), posix_acl_xattr.h.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from rootsd.core.model import LapseReason
from rootsd.core.paths import RefusedPlaces, ancestors

_ACL_ATTRIBUTE = "system.posix_acl_access"
_ACL_HEADER = struct.Struct("<I")
_ACL_ENTRY = struct.Struct("<HHI")
_ACL_VERSION = 2
_ACL_USER, _ACL_GROUP = 0x02, 0x08
_ACL_WRITE = 0x02


class AclWriters(NamedTuple):
    """The ids of the users and groups that an access control list lets write, up to its mask."""

    users: frozenset[int] = frozenset()
    groups: frozenset[int] = frozenset()


NO_ACL_WRITERS = AclWriters()

if sys.platform == "linux":

    def acl_writers(folder: bytes) -> AclWriters:
        """Return whom the list of `folder` lets write. Few folders have a list."""
        try:
            acl = os.getxattr(folder, _ACL_ATTRIBUTE, follow_symlinks=False)
        except OSError:
            return NO_ACL_WRITERS
        return _parse_acl(acl)

else:

    def acl_writers(_folder: bytes) -> AclWriters:
        """Return nobody: rootsd reads access control lists on Linux only."""
        return NO_ACL_WRITERS


def _parse_acl(acl: bytes) -> AclWriters:
    if (
        len(acl) % _ACL_ENTRY.size != _ACL_HEADER.size
        or _ACL_HEADER.unpack_from(acl)[0] != _ACL_VERSION
    ):
        return NO_ACL_WRITERS
    entries = list(_ACL_ENTRY.iter_unpack(acl[_ACL_HEADER.size :]))
    users, groups = (
        frozenset(who for tag, granted, who in entries if tag == kind and granted & _ACL_WRITE)
        for kind in (_ACL_USER, _ACL_GROUP)
    )
    return AclWriters(users, groups)


_OVERFLOW_UID = 65534
_FULL_UID_MAP = (b"0", b"0", b"4294967295")


# Compared by identity, because a bind mount gives a refused place another name.
REFUSED_IDENTITIES = tuple(
    b"/ /etc /usr /bin /sbin /lib /lib64 /boot /dev /proc /sys /run /var /home /root".split()
)
_NO_REFUSED_PLACES = RefusedPlaces(home=b"/")


@dataclass(frozen=True, slots=True)
class Hazard:
    """The reason why a folder may not be published; `sentence` is for people."""

    reason: LapseReason
    sentence: str


def trusted_owners(uid: int) -> frozenset[int]:
    """Return the users whose folders may lie above a project: the user and root.

    In a user namespace that maps only some users, files of root appear as files of the overflow
    user.
    """
    try:
        with open("/proc/self/uid_map", "rb") as file:
            partial = tuple(file.read().split()) != _FULL_UID_MAP
    except OSError:
        partial = False
    return frozenset((0, uid, _OVERFLOW_UID) if partial else (0, uid))


@cache
def is_private_group(gid: int, uid: int) -> bool:
    """Return whether a group has no members but the user and root, by the local databases."""
    try:
        members = set(grp.getgrgid(gid).gr_mem)
    except KeyError:
        return False
    accounts = pwd.getpwall()
    names = {account.pw_name for account in accounts if account.pw_uid in (0, uid)}
    others = any(account.pw_gid == gid and account.pw_uid not in (0, uid) for account in accounts)
    return members <= names and not others


class _RefusedIdentities(NamedTuple):
    """Refused places by device and inode: those refused with everything below, and all."""

    trees: Mapping[tuple[int, int], bytes]
    places: Mapping[tuple[int, int], bytes]


class FolderSafety:
    """Checks projects and the folders above them by identity, owner, and mode.

    It keeps nothing of what it sees. A place in `places` is refused under any name; `core.paths`
    handles its own name, because it knows the exceptions. The refused places are identified again
    whenever `places` or `mounted` returns a new object, because a mount gives a folder a second
    name. If `answers` is False for a place, that place is left out until its mount responds.

    One thread at a time may use it.
    """

    def __init__(
        self,
        uid: int,
        is_ours: Callable[[int, int], bool] = is_private_group,
        places: Callable[[], RefusedPlaces] = lambda: _NO_REFUSED_PLACES,
        mounted: Callable[[], object] = lambda: None,
        answers: Callable[[bytes], bool] = lambda _path: True,
    ) -> None:
        self._uid = uid
        self._is_ours = is_ours
        self._places = places
        self._mounted = mounted
        self._answers = answers
        self._trusted = trusted_owners(uid)
        self._then: tuple[RefusedPlaces, object] | None = None
        self._known = _RefusedIdentities({}, {})

    def refresh_refused_places(self) -> object:
        """Identify the refused places by the current configuration and mounts.

        Call this before checking any folder. It returns the same object as long as no check would
        give another result.
        """
        places, mounted = self._places(), self._mounted()
        then = self._then
        if then is None or then[0] is not places or then[1] is not mounted:
            self._then = (places, mounted) if self._have_identified(places) else None
        return self._known

    def _have_identified(self, places: RefusedPlaces) -> bool:
        """Identify the places on mounts that respond; return False if one did not respond."""
        trees, others = (
            places.refused_trees(),
            (*REFUSED_IDENTITIES, places.home, *places.refused_ancestors()),
        )
        unresponsive = {place for place in (*trees, *others) if not self._answers(place)}
        # A link gives a folder no second name here, because the walk follows no links.
        as_trees = _by_identity(
            place for place in trees if place not in unresponsive and not os.path.islink(place)
        )
        alone = _by_identity(place for place in others if place not in unresponsive)
        if (known := _RefusedIdentities(as_trees, {**as_trees, **alone})) != self._known:
            self._known = known
        return not unresponsive

    def of_itself(self, path: bytes, found: os.stat_result) -> Hazard | None:
        """Return the hazard of a project's own folder, whatever lies above it."""
        place = self._known.places.get((found.st_dev, found.st_ino), path)
        if place != path:
            return Hazard(LapseReason.REFUSED_PLACE, _alias_sentence(place))
        if found.st_uid != self._uid:
            return Hazard(LapseReason.EXPOSED, "it belongs to another user")
        return None

    def hazard(self, path: bytes, safe: set[bytes] | None = None) -> Hazard | None:
        """Return why the folder at `path` may not be published, or None.

        `safe` are ancestors checked a moment ago; they are not checked again, and new ones are
        added. Raises OSError if the folder is absent.
        """
        self.refresh_refused_places()
        entry = os.lstat(path)
        if (hazard := self.of_itself(path, entry)) is not None:
            return hazard
        judged = []
        for above in ancestors(path):
            if safe is not None and above in safe:
                break
            found = os.lstat(above)
            if (hazard := self.of_ancestor(above, found, entry.st_uid)) is not None:
                return hazard
            judged.append(above)
            entry = found
        if safe is not None:
            safe.update(judged)
        return None

    def of_ancestor(self, path: bytes, found: os.stat_result, entry_owner: int) -> Hazard | None:
        """Return the hazard of one ancestor; `entry_owner` owns the next folder on the path."""
        if not stat.S_ISDIR(found.st_mode):
            return Hazard(LapseReason.RETARGETED, f"{os.fsdecode(path)} is a link")
        tree = self._known.trees.get((found.st_dev, found.st_ino), path)
        if tree != path:
            return Hazard(LapseReason.REFUSED_PLACE, _alias_sentence(tree, os.fsdecode(path)))
        if found.st_uid not in self._trusted:
            return Hazard(LapseReason.EXPOSED, f"{os.fsdecode(path)} belongs to another user")
        if found.st_mode & stat.S_ISVTX and entry_owner in self._trusted:
            return None
        if found.st_mode & stat.S_IWOTH:
            return Hazard(LapseReason.EXPOSED, f"everybody can write {os.fsdecode(path)}")
        if found.st_mode & stat.S_IWGRP and not self._is_ours(found.st_gid, self._uid):
            return Hazard(LapseReason.EXPOSED, f"a group can write {os.fsdecode(path)}")
        if self.is_listed_for_others(path, found):
            sentence = f"by its access control list others can write {os.fsdecode(path)}"
            return Hazard(LapseReason.EXPOSED, sentence)
        return None

    def is_listed_for_others(self, path: bytes, found: os.stat_result) -> bool:
        """Return whether an access control list lets others replace an entry of the folder.

        Mode, owner, and group do not show that, so the list is read each time.
        """
        if not found.st_mode & stat.S_IWGRP or found.st_mode & stat.S_ISVTX:
            return False
        users, groups = acl_writers(path)
        strangers = users - {0, self._uid}
        return bool(strangers) or not all(self._is_ours(gid, self._uid) for gid in groups)


def refused_place_alias(path: bytes, places: Iterable[bytes] = REFUSED_IDENTITIES) -> bytes | None:
    """Return the refused place that a folder is under another name, or None.

    A bind mount gives a folder a second name; so does another spelling on a case-insensitive
    volume. A check by name alone (`core.paths`) would miss both.
    """
    try:
        found = os.lstat(path)
    except OSError:
        return None
    place = _by_identity(place for place in places if place != path)
    return place.get((found.st_dev, found.st_ino))


def explain_alias(path: bytes, places: Iterable[bytes] = REFUSED_IDENTITIES) -> str | None:
    """Return a sentence that says which refused place a folder is, or None."""
    place = refused_place_alias(path, places)
    return None if place is None else _alias_sentence(place)


def _alias_sentence(place: bytes, what: str = "it") -> str:
    return f"{what} is {os.fsdecode(place)} under another name"


def _by_identity(places: Iterable[bytes]) -> Mapping[tuple[int, int], bytes]:
    found: dict[tuple[int, int], bytes] = {}
    for place in places:
        try:
            entry = os.stat(place)
        except OSError:
            continue
        found.setdefault((entry.st_dev, entry.st_ino), place)
    return found
