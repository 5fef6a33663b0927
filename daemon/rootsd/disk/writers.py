"""Tell whether other users can replace what lies in a folder.

A user who may write to a folder can replace everything below it. Two cases are safe: a sticky
folder in which the entry belongs to the user (as in /tmp), and a group that has the user as its
only member (as many distributions create).

But an access control list may let other users write. With such a list, the group bits of the mode
are a mask that limits what the list grants. So others may write although the folder's own group
has no other members. Sources: acl(5), posix_acl_xattr.h.

Standard library only, because the lean programs import this module.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import NamedTuple

_ACL_ATTRIBUTE = "system.posix_acl_access"
_ACL_HEADER = struct.Struct("<I")
_ACL_ENTRY = struct.Struct("<HHI")
_ACL_VERSION = 2
_ACL_USER, _ACL_GROUP = 0x02, 0x08
_ACL_WRITE = 0x02


class AclWriters(NamedTuple):
    """The ids of the users and groups that an access control list allows to write.

    The mask of the list may still take that right away.
    """

    users: frozenset[int] = frozenset()
    groups: frozenset[int] = frozenset()


NO_ACL_WRITERS = AclWriters()

if sys.platform == "linux":

    def acl_writers(folder: bytes) -> AclWriters:
        """Return the users and groups that the list of `folder` allows to write, if it has one."""
        try:
            acl = os.getxattr(folder, _ACL_ATTRIBUTE, follow_symlinks=False)
        except OSError:
            return NO_ACL_WRITERS
        return _parse_acl(acl)

else:

    def acl_writers(_folder: bytes) -> AclWriters:
        """Return no one, because rootsd reads access control lists on Linux only."""
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
_FULL_UID_MAP = ((0, 0, 4294967295),)


def trusted_owners(uid: int) -> frozenset[int]:
    """Return the users that may own the folders above a project: the user and root.

    In a user namespace that maps only some users, root's files show another owner: the id that
    root has there, or the overflow user. Source: user_namespaces(7).
    """
    owners = {0, uid}
    with suppress(OSError), open("/proc/self/uid_map", "rb") as file:
        rows = tuple(tuple(map(int, line.split())) for line in file)
        if rows != _FULL_UID_MAP:
            owners |= {_OVERFLOW_UID, *(inside for inside, outside, _ in rows if outside == 0)}
    return frozenset(owners)


@cache
def is_private_group(gid: int, uid: int) -> bool:
    """Return whether the local databases show no members of a group but the user and root."""
    try:
        members = set(grp.getgrgid(gid).gr_mem)
    except KeyError:
        return False
    accounts = pwd.getpwall()
    names = {account.pw_name for account in accounts if account.pw_uid in (0, uid)}
    others = any(account.pw_gid == gid and account.pw_uid not in (0, uid) for account in accounts)
    return members <= names and not others


class FolderWriters(NamedTuple):
    """Who counts as another user: everybody but `uid`, root, and the groups that are private."""

    uid: int
    trusted: frozenset[int]
    is_private: Callable[[int, int], bool]

    @classmethod
    def other_than(
        cls, uid: int, is_private: Callable[[int, int], bool] = is_private_group
    ) -> FolderWriters:
        """Return the rules for the user `uid`."""
        return cls(uid, trusted_owners(uid), is_private)

    def why_replaceable(
        self, path: bytes, found: os.stat_result, entry_owner: int | None
    ) -> str | None:
        """Return a sentence about who else can replace an entry of the folder, or None.

        `entry_owner` owns that entry; None if there is none yet.
        """
        if found.st_uid not in self.trusted:
            return f"{os.fsdecode(path)} belongs to another user"
        if found.st_mode & stat.S_ISVTX and entry_owner in self.trusted:
            return None
        if found.st_mode & stat.S_IWOTH:
            return f"everybody can write to {os.fsdecode(path)}"
        if found.st_mode & stat.S_IWGRP and not self.is_private(found.st_gid, self.uid):
            return f"a group can write to {os.fsdecode(path)}"
        if self.acl_lets_others_write(path, found):
            return f"an access control list lets others write to {os.fsdecode(path)}"
        return None

    def acl_lets_others_write(self, path: bytes, found: os.stat_result) -> bool:
        """Return whether an access control list lets others replace an entry of the folder.

        This reads the list each time, because mode, owner, and group do not show a change of it.
        """
        if not found.st_mode & stat.S_IWGRP or found.st_mode & stat.S_ISVTX:
            return False
        users, groups = acl_writers(path)
        strangers = users - {0, self.uid}
        return bool(strangers) or not all(self.is_private(gid, self.uid) for gid in groups)
