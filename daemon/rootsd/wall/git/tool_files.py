"""Find the files in a work tree that tools outside run or obey, and which of them git tracks.

These are the settings of editors, agents, direnv, and so on (`TOOL_FILES`), and what the
repository's own settings name, such as the folder of `core.hooksPath`.

Git must be able to write the *tracked* ones. Programs inside and outside share one index, so if
`git switch` could not replace such a file, it would exit with 0 and leave the old content. So
programs inside can change them, and a session reports what it changed. The *untracked* ones are
read-only, because git does not write them. The report has all of them: a program can write the
index, too.

Everything here may be hostile: no link is followed out of the root, reads are bounded, and git
does not run.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import islice

from rootsd.agents import project_files
from rootsd.core.paths import contains
from rootsd.disk.git_pointer import GIT
from rootsd.disk.git_settings import read_settings
from rootsd.wall.git.entries import NodeKind, kind_below, link_target, names_below, read_below
from rootsd.wall.git.index import index_of_checkout
from rootsd.wall.git.name_watch import ANY_NAME
from rootsd.wall.system_calls import closing, open_below

TOOL_FILES = (
    project_files("OBEYS")
    + b"""
    .idea .envrc .husky .githooks .devcontainer .devcontainer.json
    .mise.toml mise.toml .tool-versions .pre-commit-config.yaml .lefthook.yml lefthook.yml
    .gitmodules .exrc .nvimrc .nvim.lua .vimrc .dir-locals.el
    .hg/hgrc .hg/hgrc-not-shared .hg/sharedpath .sl/config .jj/repo/config.toml .jj/config.toml
    .bzr/branch/branch.conf _darcs/prefs/defaults
""".split()
)
# Git runs hooks from this folder, and reads these files as settings.
_SETTINGS_WITH_PATHS = frozenset(("hookspath", "path", "attributesfile"))
_MAX_FILES, _MAX_DEPTH = 1024, 8
_MAX_HASHED_BYTES = 1 << 22


def tool_names(root: int) -> list[bytes]:
    """Return the files and folders in an open root that tools run or obey, if they exist.

    For a link, what it leads to in the root is one of them, too.
    """
    found = dict.fromkeys((*TOOL_FILES, *_named_by_settings(root)))
    for name in [*found]:
        found.update(dict.fromkeys(_targets(root, name)))
    return [*found]


def tool_files_that_git_tracks(root: int, place: bytes) -> frozenset[bytes]:
    """Return the tool files in an open root that git tracks, relative to it.

    `place` is the path of the root. Without an index that git can read, there are none.
    """
    names = tool_names(root)
    paths = (entry.path for entry in index_of_checkout(place))
    return frozenset(path for path in paths if any(contains(name, path) for name in names))


def untracked_parts(root: int, name: bytes, tracked: Collection[bytes]) -> Iterator[bytes]:
    """Yield the parts of a tool file or folder that git does not write: all, or what is in it."""
    if name in tracked:
        return
    if not any(path.startswith(name + b"/") for path in tracked):
        yield name
    else:
        for child in names_below(root, name):
            yield from untracked_parts(root, name + b"/" + child, tracked)


def fingerprints(root: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield each tool file that exists in an open root, and a text that stands for its content."""
    found = (path for name in tool_names(root) for path in _files_at(root, name))
    for path in dict.fromkeys(islice(found, _MAX_FILES)):
        with suppress(OSError):
            yield path, fingerprint(root, path)


def fingerprint(root: int, path: bytes) -> bytes:
    """Return a text that changes with the content and the mode of a file, or the target of a link.

    Raises OSError if the file is gone.
    """
    with closing(open_below(root, path, os.O_NOFOLLOW)) as found:
        status = os.fstat(found)
        if stat.S_ISLNK(status.st_mode):
            return b"link " + os.readlink(b"", dir_fd=found)
        with open(b"/proc/self/fd/%d" % found, "rb") as file:
            digest = hashlib.blake2b(file.read(_MAX_HASHED_BYTES), digest_size=16)
    kind = b"program" if status.st_mode & 0o111 else b"file"
    return b"%s %d %s" % (kind, status.st_size, digest.hexdigest().encode())


def tool_folders(root: int) -> dict[bytes, set[bytes]]:
    """Return the folders in an open root that have tool files, or may get some, by path.

    Each has the names in it that matter; ANY_NAME stands for all.
    """
    found: dict[bytes, set[bytes]] = {}
    for name in tool_names(root):
        above, last = os.path.split(name)
        if not above or kind_below(root, above) is NodeKind.FOLDER:
            found.setdefault(above or b".", set()).add(last)
        for folder in _folders_at(root, name):
            found.setdefault(folder, set()).add(ANY_NAME)
    return found


def _folders_at(root: int, name: bytes, depth: int = _MAX_DEPTH) -> Iterator[bytes]:
    if depth and kind_below(root, name) is NodeKind.FOLDER:
        yield name
        for child in names_below(root, name):
            yield from _folders_at(root, name + b"/" + child, depth - 1)


def digest_of(fingerprint: bytes) -> bytes:
    """Return the digest in a fingerprint; nothing for that of a link."""
    words = fingerprint.split(b" ")
    return words[-1] if words[0] != b"link" else b""


def _targets(root: int, name: bytes) -> Iterator[bytes]:
    """Yield what the links at `name` lead to, one after the other."""
    for _ in range(_MAX_DEPTH):
        if kind_below(root, name) is not NodeKind.LINK:
            return
        target = link_target(root, name)
        if target is None:
            return
        yield target
        name = target


def _files_at(root: int, name: bytes, depth: int = _MAX_DEPTH) -> Iterator[bytes]:
    """Yield a file, the files in a folder, and the files to which a link leads in the root."""
    inside: Iterable[bytes] = ()
    match kind_below(root, name):
        case NodeKind.FILE:
            yield name
        case NodeKind.LINK:
            yield name
            target = link_target(root, name)
            inside = () if target is None else (target,)
        case NodeKind.FOLDER:
            inside = (name + b"/" + child for child in names_below(root, name))
        case NodeKind.OTHER | None:
            pass
    if depth:
        for each in inside:
            yield from _files_at(root, each, depth - 1)


def _named_by_settings(root: int) -> Iterator[bytes]:
    """Yield the files and folders in the root that the repository's settings name."""
    for file in (b"config", b"config.worktree"):
        for key, value in read_settings(read_below(root, GIT + b"/" + file).replace(b"\0", b"")):
            words = value.lstrip(b"!").split()
            if not words:
                continue
            names_path = key.rpartition(".")[2] in _SETTINGS_WITH_PATHS
            path = value if names_path else words[0]
            for each in (path, os.path.join(GIT, path)):
                inside = os.path.normpath(each)
                if inside.startswith((b"/", b"..")) or inside in (b".", GIT):
                    continue
                if names_path or _is_program(root, inside):
                    yield inside


def _is_program(root: int, path: bytes) -> bool:
    with suppress(OSError), closing(open_below(root, path)) as fd:
        mode = os.fstat(fd).st_mode
        return stat.S_ISREG(mode) and bool(mode & 0o111)
    return False
