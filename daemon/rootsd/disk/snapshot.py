"""Save and load snapshots of parent trees, so that a restart lists only what changed.

A snapshot is a cache. Each stamp is compared with the disk before its folder is trusted, and a
file that is damaged, foreign, newer, or too large is ignored.

Layout, in the byte order of the machine: the magic line, the SHA-256 of the rest, then one tree
after another. A tree is its head, path, signature, and one column for each property of its
folders.
"""

from __future__ import annotations

import hashlib
import os
import struct
import sys
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rootsd.core.model import ProjectKind
from rootsd.disk.reader import read_small
from rootsd.disk.walk import FolderStamp, ProposalScope

MAX_SNAPSHOT_BYTES = 64 << 20

_MAGIC = b"rootsd index 1 %s\n" % sys.byteorder.encode()
_DIGEST_SIZE = hashlib.sha256().digest_size
_HEAD = struct.Struct("=4Q")
# No folder has this stamp: nothing changed last in 1970.
NO_STAMP: FolderStamp = (0, 0, 0, 0)
_NO_PARENT = 0
_KINDS = (None, *ProjectKind)
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_FRONTIER, _REPOSITORIES, _KIND_SHIFT = 1, 2, 2
_SEPARATOR = b"/"


def credentials_key() -> bytes:
    """Return the user and groups of this process, which decide what a scan can list."""
    groups = sorted({os.getegid(), *os.getgroups()})
    return b" ".join(b"%d" % number for number in (os.geteuid(), *groups))


@dataclass(frozen=True, slots=True)
class FolderTraits:
    """The properties of a folder; `zone` is the scope of the folders inside it."""

    kind: ProjectKind | None
    zone: ProposalScope
    frontier: bool

    def as_mark(self) -> int:
        """Return the traits as one byte."""
        zone = _REPOSITORIES if self.zone is ProposalScope.REPOSITORIES else 0
        return _NUMBERS[self.kind] << _KIND_SHIFT | zone | (_FRONTIER if self.frontier else 0)


# Shared objects, because many folders have the same few traits.
TRAITS_BY_CODE: Mapping[int, FolderTraits] = {
    traits.as_mark(): traits
    for kind in _KINDS
    for zone in ProposalScope
    for traits in (
        FolderTraits(kind, zone, frontier=False),
        FolderTraits(kind, zone, frontier=True),
    )
}


@dataclass(slots=True, eq=False)
class TreeSnapshot:
    """The folders of one parent, each after the folder that holds it. The first is the parent.

    `signature` covers everything that decides how the parent is walked. A tree with another
    signature is useless. A folder is the number of its holder and its name.
    """

    signature: bytes
    holders: array[int] = field(default_factory=lambda: array("Q"))
    names: list[bytes] = field(default_factory=list)
    marks: bytearray = field(default_factory=bytearray)
    stamps: array[int] = field(default_factory=lambda: array("Q"))

    def __len__(self) -> int:
        """Return the number of folders."""
        return len(self.names)

    def add(
        self, holder: int, name: bytes, traits: FolderTraits, stamp: FolderStamp | None
    ) -> int:
        """Add a folder and return its number. A folder without a stamp will be listed again."""
        self.holders.append(holder)
        self.names.append(name)
        self.marks.append(traits.as_mark())
        self.stamps.extend(stamp or NO_STAMP)
        return len(self.names) - 1

    def doubt(self, number: int) -> None:
        """Have a folder listed again, whatever its stamp says."""
        self.stamps[4 * number : 4 * number + 4] = array("Q", NO_STAMP)

    def rows(self) -> Iterator[tuple[int, bytes, FolderTraits, FolderStamp]]:
        """Return the holder, name, traits, and stamp of each folder.

        The stamp is `NO_STAMP` for a folder that must be listed again.
        """
        traits = map(TRAITS_BY_CODE.__getitem__, self.marks)
        stamps = zip(*[iter(self.stamps)] * 4, strict=True)
        return zip(self.holders, self.names, traits, stamps, strict=True)


def write_snapshots(file: Path, trees: Mapping[bytes, TreeSnapshot]) -> None:
    """Replace the content of `file` with `trees` by parent path, atomically.

    The content need not survive a crash of the machine: a torn file is ignored. Raises OSError.
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
    """Return the trees in `file` by parent path; none if the file is not valid."""
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
    columns = (tree.holders.tobytes(), tree.stamps.tobytes(), bytes(tree.marks), names)
    return b"".join((head, path, tree.signature, *columns))


def _decoded(body: memoryview) -> Iterator[tuple[bytes, TreeSnapshot]]:
    while body:
        path_size, signature_size, count, names_size = _HEAD.unpack_from(body)
        sizes = (path_size, signature_size, 8 * count, 32 * count, count, names_size)
        parts, at = [], _HEAD.size
        for size in sizes:
            parts.append(bytes(body[at : at + size]))
            at += size
        if at > len(body):
            raise ValueError("the file ends too early")
        body = body[at:]
        path, signature, holders, stamps, marks, names = parts
        tree = TreeSnapshot(signature, array("Q", holders), names.split(_SEPARATOR))
        tree.stamps, tree.marks = array("Q", stamps), bytearray(marks)
        _check(tree, count)
        yield path, tree


def _check(tree: TreeSnapshot, count: int) -> None:
    """Raise ValueError unless each folder comes after its holder and every mark is known."""
    ordered = all(holder < number for number, holder in enumerate(tree.holders) if number)
    if len(tree) != count or not ordered or tree.holders[0] != _NO_PARENT:
        raise ValueError("the folders do not form a tree")
    if not TRAITS_BY_CODE.keys() >= set(tree.marks):
        raise ValueError("a folder has an unknown kind")
