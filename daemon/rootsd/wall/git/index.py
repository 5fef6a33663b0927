"""Read an index of git: the paths that it tracks, and which of them are gitlinks.

A gitlink is a path at which another repository belongs.

This runs no git, because git runs what the settings of the repository name. Git looks only at the
four bits of a mode that tell the kind, and does not check the rest, so neither does this. An index
that is not as git writes it is read as far as possible, and with each size of a hash. Source:
gitformat-index(5), versions 2 to 4, with SHA-1 and SHA-256, and `read-cache.c` of git 2.39.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from typing import NamedTuple

from rootsd.disk.git_pointer import GIT, find_git_directory
from rootsd.disk.links import final_path
from rootsd.disk.reader import REF_CAP, read_small

_MAGIC = b"DIRC"
_KIND, _GITLINK = 0xF0, 0xE0  # in the second last byte of a mode
_KINDS = frozenset((0x40, 0x80, 0xA0, _GITLINK))  # a folder, a file, a link, a gitlink
_KIND_AT, _HASH_AT = 26, 40
_HASH_SIZES = (20, 32)
_EXTENDED, _COMPRESSED = 0x4000, 4
_FIRST_LETTERS, _REQUIRED_EXTENSIONS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", (b"link", b"sdir")
_MAX_BYTES, _MAX_PARTS = 64 << 20, 64
_EXTENSION_SIZE = 8  # without its content
_HEADER = struct.Struct(">4sII")
_FLAGS = struct.Struct(">H")


class DamagedIndex(ValueError):
    """The data is no index, or it is damaged."""


class IndexedPath(NamedTuple):
    """A path that git tracks, relative to the work tree."""

    path: bytes
    is_gitlink: bool


def read_index(data: bytes) -> list[IndexedPath]:
    """Return the entries of an index. Raises DamagedIndex.

    For an index that git did not write, paths that are none may be among them.
    """
    if len(data) < _HEADER.size or not data.startswith(_MAGIC):
        raise DamagedIndex("this is no index")
    found: list[IndexedPath] = []
    for size in _HASH_SIZES:
        part: list[IndexedPath] = []
        try:
            if _read_entries(data, size, part):
                return part
        except (DamagedIndex, ValueError, struct.error, IndexError):
            pass
        found += part
    if not found:
        raise DamagedIndex("the entries cannot be read")
    return found


class CheckoutIndex(NamedTuple):
    """What the index of a checkout has. `is_whole` is false if there is more than was read."""

    paths: list[IndexedPath]
    is_whole: bool = True

    @property
    def leads_out(self) -> bool:
        """Whether a path leads out of the checkout or into `.git`. Git never adds one.

        But it writes there: `git checkout .` does not check what an index says.
        """
        all_paths = b"/" + b"/\0/".join([path for path, _ in self.paths]) + b"/"
        return any(part in all_paths for part in (b"/../", b"/.git/", b"//", b"/./"))


def index_of_checkout(checkout: bytes) -> CheckoutIndex:
    """Return what the index of a checkout has; nothing if it has none."""
    own = own_directory(checkout)
    return CheckoutIndex([]) if own is None else index_in(own)


def index_in(own: bytes) -> CheckoutIndex:
    """Return what the index in a git directory has, also in the parts of `sharedindex` files."""
    found: list[IndexedPath] = []
    left = _MAX_BYTES
    for count, name in enumerate((b"index", *_shared_parts(own))):
        data = read_small(final_path(own + b"/" + name), left) or b""
        left -= len(data)
        with suppress(DamagedIndex):  # then git reads nothing from it either
            found += read_index(data)
        if not left or count == _MAX_PARTS:  # a program can make a million parts of one file
            return CheckoutIndex(found, is_whole=False)
    return CheckoutIndex(found)


def own_directory(checkout: bytes) -> bytes | None:
    """Return the git directory of a checkout, wherever it is."""
    path = checkout + b"/" + GIT
    if os.path.isdir(path) and not os.path.islink(path):
        return final_path(path)
    try:
        return find_git_directory(checkout)
    except OSError:
        return None


def common_directory_of(own: bytes) -> bytes:
    """Return where a git directory takes its settings from; see gitrepository-layout(5)."""
    name = (read_small(own + b"/commondir", REF_CAP) or b"").rstrip(b"\r\n")
    return final_path(os.path.join(own, name.split(b"\0")[0]))


def _shared_parts(own: bytes) -> list[bytes]:
    with suppress(OSError), os.scandir(own) as entries:
        return [each.name for each in entries if each.name.startswith(b"sharedindex.")]
    return []


def _read_entries(data: bytes, hash_size: int, found: list[IndexedPath]) -> bool:
    """Add the entries to `found`. Return whether all of them are as git writes them."""
    _, version, count = _HEADER.unpack_from(data)
    at, path, flags_at = _HEADER.size, b"", _HASH_AT + hash_size
    is_usual = True
    for _ in range(count):
        kind = data[at + _KIND_AT] & _KIND
        (flags,) = _FLAGS.unpack_from(data, at + flags_at)
        name = at + flags_at + (4 if flags & _EXTENDED else 2)
        if version == _COMPRESSED:
            dropped, name = _offset(data, name)
            end = data.index(b"\0", name)
            path = path[: len(path) - dropped] + data[name:end]
            at = end + 1
        else:
            end = data.index(b"\0", name)
            path = data[name:end]
            at += (end - at) // 8 * 8 + 8
        if not path:
            raise DamagedIndex("an entry has no path")
        is_usual = is_usual and kind in _KINDS
        found.append(IndexedPath(path, kind == _GITLINK))
    return is_usual and _ends_at(data, at, len(data) - hash_size)


def _ends_at(data: bytes, at: int, end: int) -> bool:
    """Return whether the entries can end at `at`: an extension or the end of the file follows."""
    if at > end - _EXTENSION_SIZE:
        return at <= end
    return data[at] in _FIRST_LETTERS or data[at : at + 4] in _REQUIRED_EXTENSIONS


def _offset(data: bytes, at: int) -> tuple[int, int]:
    """Return a number in the encoding of offsets in packs, and where it ends."""
    byte = data[at]
    number = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        number = ((number + 1) << 7) | (byte & 0x7F)
    return number, at + 1
