"""Find the files in a work tree that tools outside run or obey, and which of them git tracks.

These are the settings of editors, agents, direnv, and so on (`TOOL_FILES`), and what git's
settings and hooks name, such as the folder of `core.hooksPath` (see `named_files`).

Git must be able to write the *tracked* ones. Programs inside and outside share one index, so if
`git switch` could not replace such a file, it would exit with 0 and leave the old content. So
programs inside can change them, and a session reports what it changed. The *untracked* ones are
read-only, because git does not write them. The report has all of them: a program can write the
index, too.

Everything here may be hostile: no link is followed out of the root, and reads are bounded.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

from rootsd.agents import project_files
from rootsd.core.paths import contains
from rootsd.disk.git_pointer import GIT
from rootsd.wall.git.entries import (
    NodeKind,
    folders_above,
    is_closed,
    kind_below,
    link_target,
    listed_below,
    reach,
    read_regular,
)
from rootsd.wall.git.index import index_of_checkout
from rootsd.wall.git.name_watch import ANY_NAME
from rootsd.wall.git.named_files import HOOK_NAMES, NamedFiles, is_inside, named_by_git
from rootsd.wall.system_calls import closing, open_below

TOOL_FILES = (
    project_files("OBEYS")
    + b"""
    .idea .envrc .husky .githooks .devcontainer .devcontainer.json
    .mise.toml mise.toml .mise.local.toml mise.local.toml .mise/config.toml .config/mise.toml
    .tool-versions .pre-commit-config.yaml .overcommit.yml .lefthook.yml lefthook.yml
    .lefthook.yaml lefthook.yaml .lefthook.toml lefthook.toml .lefthook.json lefthook.json
    .gitmodules .lfsconfig .exrc .nvimrc .nvim.lua .vimrc .dir-locals.el
    .hg/hgrc .hg/hgrc-not-shared .hg/sharedpath .sl/config .jj/repo/config.toml .jj/config.toml
    .bzr/branch/branch.conf _darcs/prefs/defaults
""".split()
)
RUN_BY_HOOKS = b"""
    .husky .githooks .pre-commit-config.yaml .overcommit.yml .lefthook.yml lefthook.yml
    .lefthook.yaml lefthook.yaml .lefthook.toml lefthook.toml .lefthook.json lefthook.json
""".split()
"""Those of them that are hooks of git, or that common hooks run."""
_MAX_ENTRIES, _MAX_FILES = 1024, 4096  # at each name; of all names
_MAX_LINKS = 8
_MAX_PATH_BYTES = 2048
_MAX_HASHED_BYTES = 1 << 18
_UNREAD = b"unread "


def tool_names(root: int, place: bytes, named: NamedFiles | None = None) -> list[bytes]:
    """Return the files and folders in an open root that tools run or obey, if they exist.

    `place` is the path of the root, and `named` what git names; by default, git is asked. A link,
    also one on the way to such a name, is one of them itself, and so is what it leads to in the
    root.
    """
    named = named_by_git(place) if named is None else named
    found = dict.fromkeys(with_links(root, (*TOOL_FILES, *in_root(place, named.paths))))
    # A whole root cannot be protected, so the hooks in it are, if it is a folder of hooks.
    hooks = [folder for folder in (place, place + b"/" + GIT) if folder in named.paths]
    words = (*named.words, *(folder + b"/" + name for folder in hooks for name in HOOK_NAMES))
    for name in in_root(place, words):
        way = [*_on_the_way(root, name)]
        if kind_below(root, way[-1]) is not NodeKind.FOLDER:
            found.update(dict.fromkeys(way))
    return [*found]


def tool_files_that_git_tracks(
    place: bytes, names: Collection[bytes], named: NamedFiles
) -> frozenset[bytes]:
    """Return the files among `names`, those of `tool_names`, that git tracks.

    `place` is the path of the root. Without an index that git can read, there are none.
    """
    tops = {name.partition(b"/")[0] for name in names}
    paths = (
        os.path.join(checkout, entry.path)[len(place) + 1 :]
        for checkout in (place, *(each for each in named.checkouts if is_inside(place, each)))
        for entry in index_of_checkout(checkout).paths
    )
    inside = (path for path in paths if path.partition(b"/")[0] in tops)
    return frozenset(path for path in inside if any(contains(name, path) for name in names))


def tracked_folders(names: Collection[bytes], tracked: Iterable[bytes]) -> frozenset[bytes]:
    """Return the folders of tool files in which git tracks a file."""
    above = {folder for path in tracked for folder in folders_above(path)}
    return frozenset(each for each in above if any(contains(name, each) for name in names))


def untracked_parts(
    root: int, names: Iterable[bytes], tracked: Collection[bytes]
) -> Iterator[bytes]:
    """Yield the parts of tool files and folders that git does not write: all, or what is in it."""
    folders = {above for path in tracked for above in folders_above(path)}
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        if name in tracked:
            continue
        inside = listed_below(root, name, _MAX_ENTRIES) if name in folders else None
        if inside is None or len(name) > _MAX_PATH_BYTES:
            yield name
        else:
            waiting += [name + b"/" + child for child in inside]


def fingerprints(
    root: int, place: bytes, named: NamedFiles | None = None
) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield each tool file that exists in an open root, and a text that stands for its content.

    For a file or folder at which this did not look, or not at all that is in it, yield None, and
    for `.git` if git did not tell what it names. `named` is as for `tool_names`.
    """
    named = named_by_git(place) if named is None else named
    if not named.is_complete:
        yield GIT, None
    # Folders last: a program can fill them with files until the limit.
    yield from fingerprints_at(
        root,
        sorted(
            tool_names(root, place, named),
            key=lambda name: kind_below(root, name) is NodeKind.FOLDER,
        ),
    )


def fingerprints_at(root: int, names: Iterable[bytes]) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield the files at these names, and in folders there, as `fingerprints` does."""
    for path, kind in entries_at_all(root, names):
        if kind is None:
            yield path, None
            continue
        with suppress(OSError):
            yield path, fingerprint(root, path)


def entries_at_all(root: int, names: Iterable[bytes]) -> Iterator[tuple[bytes, NodeKind | None]]:
    """Yield the files and links at these names, and in folders there, with their kinds.

    The kind is None at what was left out.
    """
    seen = set[bytes]()
    for name in names:
        for path, kind in _entries_at(root, name):
            if path in seen or kind is NodeKind.FOLDER:
                continue
            seen.add(path)
            if len(seen) > _MAX_FILES:
                yield name, None
                break
            yield path, kind


def in_root(place: bytes, paths: Iterable[bytes]) -> Iterator[bytes]:
    """Yield those of the absolute paths that lie in a root, relative to it."""
    return (path[len(place) + 1 :] for path in paths if is_inside(place, path))


def with_links(root: int, names: Iterable[bytes]) -> Iterator[bytes]:
    """Yield these names in an open root, and the links on the way to each of them."""
    return (each for name in names for each in _on_the_way(root, name))


def fingerprint(root: int, path: bytes) -> bytes:
    """Return a text that changes with the content and the mode of a file, or the target of a link.

    For a file that is large or cannot be read, it changes also if only its times change. Raises
    OSError if there is no file or link.
    """
    with closing(open_below(root, path, os.O_NOFOLLOW)) as found:
        status = os.fstat(found)
        if stat.S_ISLNK(status.st_mode):
            return b"link " + os.readlink(b"", dir_fd=found)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        kind = b"program" if status.st_mode & 0o111 else b"file"
        if status.st_size <= _MAX_HASHED_BYTES:
            with suppress(OSError):
                content = digest(read_regular(found, _MAX_HASHED_BYTES))
                return b"%s %d %s" % (kind, status.st_size, content)
    mark = (status.st_size, status.st_ino, status.st_ctime_ns)
    return _UNREAD + b"%s %d %d %d" % (kind, *mark)


def tool_folders(
    root: int, place: bytes, named: NamedFiles | None = None
) -> dict[bytes, set[bytes]]:
    """Return the folders in an open root that have tool files, or may get some, by path.

    Each has the names in it that matter; ANY_NAME stands for all. `named` is as for `tool_names`.
    """
    found: dict[bytes, set[bytes]] = {}
    for name in tool_names(root, place, named):
        above, last = os.path.split(name)
        if not above or kind_below(root, above) is NodeKind.FOLDER:
            found.setdefault(above or b".", set()).add(last)
        for folder, kind in _entries_at(root, name):
            if kind is NodeKind.FOLDER:
                found.setdefault(folder, set()).add(ANY_NAME)
    return found


def digest(content: bytes) -> bytes:
    """Return the digest of a content, in a fingerprint."""
    import hashlib  # noqa: PLC0415 - it loads OpenSSL, and most roots have few such files

    return hashlib.blake2b(content, digest_size=16).hexdigest().encode()


def is_unread(fingerprint: bytes) -> bool:
    """Return whether a fingerprint is that of a file whose content is not known."""
    return fingerprint.startswith(_UNREAD)


def digest_of(fingerprint: bytes) -> bytes:
    """Return the digest in a fingerprint; nothing for that of a link or a file not read."""
    words = fingerprint.split(b" ")
    return words[-1] if words[0] in (b"file", b"program") else b""


def _on_the_way(root: int, name: bytes) -> Iterator[bytes]:
    """Yield the links on the way to `name`, one after the other, and where they end."""
    for _ in range(_MAX_LINKS):
        reached, kind = reach(root, name)
        if kind is not NodeKind.LINK:
            break
        yield reached
        target = link_target(root, reached)
        if target is None:
            return
        name = os.path.normpath(target + name[len(reached) :])
    yield name


def _entries_at(root: int, name: bytes) -> Iterator[tuple[bytes, NodeKind | None]]:
    """Yield a file, a link, or a folder with all that is in it and to which links in it lead.

    The kind is None for a folder of which a part was left out: it has too much, lies too deep, or
    cannot be listed. A link may lead to the root itself, or to the git directory, which everything
    changes.
    """
    waiting, seen, left = deque([name]), {name}, _MAX_ENTRIES
    while waiting:
        path = waiting.popleft()
        kind = kind_below(root, path)
        inside: list[bytes] = []
        if kind is NodeKind.LINK:
            yield path, kind
            target = link_target(root, path)
            inside = [] if target is None else [target]
        elif kind is NodeKind.FILE:
            yield path, kind
        elif kind is NodeKind.FOLDER:
            is_left_out = path in (b".", GIT) or len(path) > _MAX_PATH_BYTES
            listed = None if is_left_out else listed_below(root, path, left + 1)
            if listed is None or len(listed) > left:
                yield path, None
            if listed is not None:
                yield path, kind
                inside = [path + b"/" + child for child in listed[:left]]
        elif kind is None and is_closed(root, path):
            yield os.path.dirname(path) or b".", None
        new = [each for each in inside if each not in seen]
        left = max(left - len(new), 0)
        seen.update(new)
        waiting += new
