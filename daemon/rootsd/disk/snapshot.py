"""Save and load snapshots of parent trees, so that a restart lists only changed folders.

A snapshot is a cache. Discovery compares each stamp with the disk before it trusts a folder.
`read_snapshots` ignores a file that is damaged, from another machine or version, or too large.

The layout, in the byte order of the machine: a magic line, the SHA-256 of the rest, then the
trees. A tree has a head, a path, a signature, and one column for each property of its folders.
"""

from __future__ import annotations

import hashlib
import os
import struct
import sys
from array import array
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

from msgspec import Struct, field

from rootsd.core.model import ProjectKind
from rootsd.disk.reader import read_small
from rootsd.disk.walk import ProposalScope

MAX_SNAPSHOT_BYTES = 64 << 20

_MAGIC = b"rootsd index 2 %s\n" % sys.byteorder.encode()
_DIGEST_SIZE = hashlib.sha256().digest_size
_HEAD = struct.Struct("=4Q")
# A packed stamp takes 80 bytes; a tuple of numbers takes 160. Times can be before 1970.
PACKED_STAMP = struct.Struct("=2q2Q")
# No folder has this stamp, because none was last changed in 1970.
NO_STAMP = bytes(PACKED_STAMP.size)
_NO_PARENT = 0
_KINDS = (None, *ProjectKind)
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_FRONTIER, _REPOSITORIES, _SKIPPED, _KIND_SHIFT = 1, 2, 4, 3
_SEPARATOR = b"/"


def credentials_key() -> bytes:
    """Return the user and the groups of this process. They decide which folders it can list."""
    groups = sorted({os.getegid(), *os.getgroups()})
    return b" ".join(b"%d" % number for number in (os.geteuid(), *groups))


class FolderTraits(Struct, frozen=True):
    """The properties of a folder that a snapshot keeps, in one byte.

    `zone` says what discovery may propose inside it. A snapshot has no members of a workspace.
    `skipped` is that of `rootsd.disk.walk.WalkFolder`.
    """

    kind: ProjectKind | None
    zone: ProposalScope
    frontier: bool
    skipped: bool = False

    def as_code(self) -> int:
        """Return the traits as one byte."""
        code = _NUMBERS[self.kind] << _KIND_SHIFT
        if self.zone is ProposalScope.REPOSITORIES:
            code |= _REPOSITORIES
        if self.skipped:
            code |= _SKIPPED
        return code | _FRONTIER if self.frontier else code


# Shared objects, because many folders have the same few traits.
TRAITS_BY_CODE: Mapping[int, FolderTraits] = {
    traits.as_code(): traits
    for kind in _KINDS
    for zone in ProposalScope
    for frontier, skipped in product((False, True), repeat=2)
    for traits in (FolderTraits(kind, zone, frontier, skipped),)
}


class TreeSnapshot(Struct, eq=False):
    """The folders of one parent in columns. The first folder is the parent itself.

    Each folder has a name, and the number of its container, which comes before it. `signature`
    covers all settings for the walk of the parent; a tree with another signature is useless.
    """

    signature: bytes
    containers: array[int] = field(default_factory=lambda: array("Q"))
    names: list[bytes] = field(default_factory=list)
    codes: bytearray = field(default_factory=bytearray)
    stamps: bytearray = field(default_factory=bytearray)

    def __len__(self) -> int:
        """Return the number of folders."""
        return len(self.names)

    def add(self, container: int, name: bytes, traits: FolderTraits, stamp: bytes | None) -> int:
        """Add a folder with its packed stamp, and return its number.

        A folder without a stamp will be listed again.
        """
        self.containers.append(container)
        self.names.append(name)
        self.codes.append(traits.as_code())
        self.stamps += stamp or NO_STAMP
        return len(self.names) - 1

    def invalidate(self, number: int) -> None:
        """Drop the stamp of a folder, so that the folder will be listed again."""
        size = PACKED_STAMP.size
        self.stamps[size * number : size * (number + 1)] = NO_STAMP

    def rows(self) -> Iterator[tuple[int, bytes, FolderTraits, bytes]]:
        """Return the container, name, traits, and packed stamp of each folder.

        The stamp is `NO_STAMP` for a folder that must be listed again.
        """
        traits = map(TRAITS_BY_CODE.__getitem__, self.codes)
        size, packed = PACKED_STAMP.size, bytes(self.stamps)
        stamps = (packed[at : at + size] for at in range(0, len(packed), size))
        return zip(self.containers, self.names, traits, stamps, strict=True)


def write_snapshots(file: Path, trees: Mapping[bytes, TreeSnapshot]) -> None:
    """Replace the content of `file` with `trees`, by the path of the parent, atomically.

    This does not sync the disk: after a crash of the machine, a damaged file is ignored. Raises
    OSError.
    """
    body = b"".join(_encoded(path, tree) for path, tree in trees.items())
    if len(body) > MAX_SNAPSHOT_BYTES // 2:
        body = b""
    fresh = file.with_name(file.name + ".new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(fresh, flags, 0o600), "wb") as written:
        written.write(_MAGIC + hashlib.sha256(body).digest() + body)
    fresh.replace(file)


def read_snapshots(file: Path) -> dict[bytes, TreeSnapshot]:
    """Return the trees in `file` by the path of the parent; none if the file is not valid."""
    content = read_small(os.fsencode(file), MAX_SNAPSHOT_BYTES) or b""
    body = content[len(_MAGIC) + _DIGEST_SIZE :]
    if content[: -len(body) or None] != _MAGIC + hashlib.sha256(body).digest():
        return {}
    try:
        return dict(_decoded(memoryview(body)))
    except (ValueError, struct.error):
        return {}


def _encoded(path: bytes, tree: TreeSnapshot) -> bytes:
    names = _SEPARATOR.join(tree.names)
    head = _HEAD.pack(len(path), len(tree.signature), len(tree), len(names))
    columns = (tree.containers.tobytes(), bytes(tree.stamps), bytes(tree.codes), names)
    return b"".join((head, path, tree.signature, *columns))


def _decoded(body: memoryview) -> Iterator[tuple[bytes, TreeSnapshot]]:
    while body:
        path_size, signature_size, count, names_size = _HEAD.unpack_from(body)
        stamps_size = PACKED_STAMP.size * count
        sizes = (path_size, signature_size, 8 * count, stamps_size, count, names_size)
        parts, at = [], _HEAD.size
        for size in sizes:
            parts.append(bytes(body[at : at + size]))
            at += size
        if at > len(body):
            raise ValueError("the file ends too early")
        body = body[at:]
        path, signature, containers, stamps, codes, names = parts
        tree = TreeSnapshot(signature, array("Q", containers), names.split(_SEPARATOR))
        tree.stamps, tree.codes = bytearray(stamps), bytearray(codes)
        _check(tree, count)
        yield path, tree


def _check(tree: TreeSnapshot, count: int) -> None:
    """Raise ValueError unless each folder comes after its container and every code is known."""
    ordered = all(container < number for number, container in enumerate(tree.containers) if number)
    if len(tree) != count or not ordered or tree.containers[0] != _NO_PARENT:
        raise ValueError("the folders do not form a tree")
    if not TRAITS_BY_CODE.keys() >= set(tree.codes):
        raise ValueError("a folder has an unknown kind")
