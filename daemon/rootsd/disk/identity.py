"""Identify folders, to recognize a folder that has replaced another one.

An inode number alone is not enough, because file systems reuse numbers at once: ext4 did in 200 of
200 rounds of delete and create. The kernel's file handle includes the generation of the inode. On
a file system without handles, the identity has the birth time instead. If it has neither, or if
nothing says which file system it is, the identity is bound to the mount: `file_systems` decides.

Source: statx(2).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from enum import Enum
from functools import lru_cache

from rootsd.core.doctor import DoctorFinding, ok, warning
from rootsd.core.labels import safe_label
from rootsd.core.model import GitEntry, Identity
from rootsd.disk.file_systems import (
    FolderFacts,
    file_system_of,
    mount_binding,
    mounts_inside,
)
from rootsd.disk.git_pointer import find_git_directory
from rootsd.disk.hung_mounts import follow
from rootsd.disk.inode import file_handle, statx_facts
from rootsd.disk.reader import OpenFolder, open_folder


class PathAbsence(Enum):
    """Why a path cannot be reached."""

    GONE = "gone"
    UNREACHABLE = "unreachable"


@lru_cache(maxsize=64)
def _interned(filesystem: bytes) -> bytes:
    """Return the same object for equal ids, because thousands of identities store one."""
    return filesystem


def identify(path: bytes) -> Identity:
    """Return the identity of the directory at `path`, read through one descriptor.

    Raises the OSError of open(2): NotADirectoryError for a link, even to a directory. Raises
    TimeoutError if the `.git` leads to a mount that does not respond.
    """
    with OpenFolder(path) as folder:
        return identify_open_folder(folder)


def identify_open_folder(folder: OpenFolder, entry: GitEntry | None = None) -> Identity:
    """Return the identity of an open folder. `entry` is the type of `.git` if the caller knows it.

    Raises the same errors as `identify`.
    """
    if (failure := folder.failure) is not None:
        if isinstance(failure, OSError) and failure.errno == errno.ELOOP:
            message = "a link, not a folder"
            raise NotADirectoryError(errno.ENOTDIR, message, folder.path) from failure
        raise failure
    entry = entry or _git_entry(folder.fd)
    inside = mounts_inside(folder.path)
    if entry is not GitEntry.FILE:
        return _identify_fd(folder.fd, folder.path, entry, inside=inside)
    # Read the birth time before the target. If the file is replaced in between, the birth time is
    # that of the old file, and the next check notices the difference.
    born = folder.born_ns(b".git")
    target = _git_target(folder.fd, folder.path)
    return _identify_fd(folder.fd, folder.path, entry, target, born, inside)


def _identify_fd(
    fd: int,
    path: bytes,
    entry: GitEntry | None = None,
    target: Identity | None = None,
    git_born_ns: int | None = None,
    inside: tuple[bytes, ...] = (),
) -> Identity:
    found = os.fstat(fd)
    facts = statx_facts(fd, found)
    system = file_system_of(fd, found.st_dev, facts.mount_number)
    counts = system.facts
    handle = None if counts is FolderFacts.BIRTH else file_handle(fd)
    born_ns = None if counts is FolderFacts.HANDLE else facts.born_ns
    by_inode = counts is FolderFacts.ALL or (counts is FolderFacts.HANDLE_FIRST and handle is None)
    is_bound = not system.lasts or (handle is None and born_ns is None)
    return Identity(
        filesystem=_interned(system.id),
        inode=found.st_ino if by_inode else 0,
        handle=handle,
        born_ns=born_ns,
        owner=found.st_uid,
        git=entry,
        git_target=target,
        git_born_ns=None if counts is FolderFacts.HANDLE else git_born_ns,
        mount=mount_binding(path, found.st_dev, facts.mount_number) if is_bound else None,
        inside=inside,
    )


def _git_entry(fd: int) -> GitEntry:
    """Return the type of `.git`. Raises OSError without permission to search the folder."""
    try:
        mode = os.lstat(b".git", dir_fd=fd).st_mode
    except FileNotFoundError:
        return GitEntry.NONE
    return GitEntry.FOLDER if stat.S_ISDIR(mode) else GitEntry.FILE


def _git_target(fd: int, path: bytes) -> Identity | None:
    """Return the identity of the directory to which the `.git` of the open folder leads.

    Raises TimeoutError if a lookup there could hang.
    """
    try:
        target = find_git_directory(path, fd, follow)
    except TimeoutError:
        raise
    except OSError:
        return None
    if target is None:
        return None
    with OpenFolder(target) as leads_to:
        return None if leads_to.failure is not None else _identify_fd(leads_to.fd, target)


def file_system_id(path: bytes) -> bytes:
    """Return the id of the file system that holds the directory `path`. Raises OSError."""
    fd = open_folder(path)
    try:
        found = os.fstat(fd)
        return file_system_of(fd, found.st_dev, statx_facts(fd, found).mount_number).id
    finally:
        os.close(fd)


def classify_absence(
    path: bytes, within: bytes | None, filesystem: bytes | None
) -> PathAbsence | None:
    """Return why no directory is at `path`, or None if there is one. GONE is certain.

    `within` is the parent that contains the path. It is None for a folder outside of all parents;
    then the folder above must exist. `filesystem` is the id of the file system on which the
    project was last seen. If the nearest existing ancestor is on another file system, something
    was mounted or unmounted. Then an absent folder may only be hidden.
    """
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            return None
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError:
        return PathAbsence.UNREACHABLE
    anchor = within if within is not None and within != path else os.path.dirname(path)
    try:
        if not stat.S_ISDIR(os.lstat(anchor).st_mode):
            return PathAbsence.UNREACHABLE
        ancestor = _nearest_existing_ancestor(path)
        same = filesystem is None or file_system_id(ancestor) == filesystem
    except OSError:
        return PathAbsence.UNREACHABLE
    return PathAbsence.GONE if same else PathAbsence.UNREACHABLE


def _nearest_existing_ancestor(path: bytes) -> bytes:
    """Return the nearest ancestor that is a directory. Raises OSError if it is out of reach."""
    above = os.path.dirname(path)
    while above != os.path.dirname(above):
        try:
            if stat.S_ISDIR(os.lstat(above).st_mode):
                return above
        except (FileNotFoundError, NotADirectoryError):
            pass
        above = os.path.dirname(above)
    return above


def diagnose_identity(
    path: bytes, identify_folder: Callable[[bytes], Identity] = identify
) -> DoctorFinding:
    """Return a finding about how well the file system of `path` identifies folders."""
    shown = safe_label(path, limit=None)
    try:
        found = identify_folder(path)
    except OSError as failure:
        return warning("identity", f"{shown}: {failure.strerror}", f"ls -ld {shown}")
    if found.mount is not None:
        return ok("identity", f"{shown} is known by its mount: approvals end when it is unmounted")
    if found.handle is not None:
        return ok("identity", f"{shown} has file handles")
    if found.born_ns is not None:
        return ok("identity", f"{shown} has birth times, but no file handles")
    return warning(
        "identity",
        f"the file system of {shown} has neither file handles nor birth times: rootsd may not "
        "notice that an approved folder was replaced",
        f"findmnt --target {shown}",
    )
