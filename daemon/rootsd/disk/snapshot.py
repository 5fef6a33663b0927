"""Save and load snapshots of parent trees, so that a restart lists only what changed.

It is a memory and never the truth: each stamp is compared with the disk before its folder is
believed, and a file that is damaged, foreign, newer or too large counts for nothing. Layout, in
the byte order of the machine: the magic line, SHA-256 of the rest, then one tree after another:
head, path, signature, and one column for each property of its folders.
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
# Of no folder: nothing changed last in 1970.
NO_STAMP: FolderStamp = (0, 0, 0, 0)
_NO_PARENT = 0
_KINDS = (None, *ProjectKind)
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_FRONTIER, _REPOSITORIES, _KIND_SHIFT = 1, 2, 2
_SEPARATOR = b"/"


def credentials_key() -> bytes:
    """What settles, beside the rules, which folders a scan can list: our user and groups."""
    groups = sorted({os.getegid(), *os.getgroups()})
    return b" ".join(b"%d" % number for number in (os.geteuid(), *groups))


@dataclass(frozen=True, slots=True)
class FolderTraits:
    """What a folder was: `zone` is that of the folders in it."""

    kind: ProjectKind | None
    zone: ProposalScope
    frontier: bool

    def as_mark(self) -> int:
        """The traits as one byte."""
        zone = _REPOSITORIES if self.zone is ProposalScope.REPOSITORIES else 0
        return _NUMBERS[self.kind] << _KIND_SHIFT | zone | (_FRONTIER if self.frontier else 0)


# There are few, and many folders.
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
    """One parent's folders, each after the one that holds it; the first is the parent itself.

    `signature` is all that settles how the parent is walked: under another one the tree says
    nothing. A folder is told by the number of its holder and its name.
    """

    signature: bytes
    holders: array[int] = field(default_factory=lambda: array("Q"))
    names: list[bytes] = field(default_factory=list)
    marks: bytearray = field(default_factory=bytearray)
    stamps: array[int] = field(default_factory=lambda: array("Q"))

    def __len__(self) -> int:
        """How many folders there are."""
        return len(self.names)

    def add(
        self, holder: int, name: bytes, traits: FolderTraits, stamp: FolderStamp | None
    ) -> int:
        """Add a folder; its number. Without a stamp it will be listed again."""
        self.holders.append(holder)
        self.names.append(name)
        self.marks.append(traits.as_mark())
        self.stamps.extend(stamp or NO_STAMP)
        return len(self.names) - 1

    def doubt(self, number: int) -> None:
        """Have a folder listed again, whatever its stamp says."""
        self.stamps[4 * number : 4 * number + 4] = array("Q", NO_STAMP)

    def rows(self) -> Iterator[tuple[int, bytes, FolderTraits, FolderStamp]]:
        """Holder, name, traits and stamp of each folder; `NO_STAMP` where it is to be listed."""
        traits = map(TRAITS_BY_CODE.__getitem__, self.marks)
        stamps = zip(*[iter(self.stamps)] * 4, strict=True)
        return zip(self.holders, self.names, traits, stamps, strict=True)


def write_snapshots(file: Path, trees: Mapping[bytes, TreeSnapshot]) -> None:
    """Put `trees`, by the parent's path, in the place of what `file` held, at once or not at all.

    Raises OSError. It need not outlast a crash of the machine: what is torn is not believed.
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
    """The trees that `file` holds, by the parent's path; none if it cannot be relied on."""
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
    """Raise ValueError unless each folder comes after its holder, and every mark is known."""
    ordered = all(holder < number for number, holder in enumerate(tree.holders) if number)
    if len(tree) != count or not ordered or tree.holders[0] != _NO_PARENT:
        raise ValueError("the folders are no tree")
    if not TRAITS_BY_CODE.keys() >= set(tree.marks):
        raise ValueError("a folder is of no known kind")
