"""A simulated disk whose power can be cut. Chance decides the fate of unsynced writes.

It is as strict as POSIX allows. Each 512-byte sector written since the last sync of its file keeps
any content that it had since then, or becomes garbage; so does the size of the file. A name
created, removed, or renamed in a folder since the last sync of that folder may be as before, so a
deleted file may come back. Only a sync puts anything in order.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path

SECTOR = 512
_GARBAGE_SHARE = 0.05


class Fate(Enum):
    """The fate of the unsynced writes in one file or folder."""

    LOST = auto()
    KEPT = auto()
    TOSSED = auto()  # each sector, size and name by itself
    SPOILED = auto()  # most is kept, some is garbage


@dataclass(slots=True)
class File:
    """A file: its durable content, its current content, and the writes between them."""

    durable: bytearray = field(default_factory=bytearray)
    now: bytearray = field(default_factory=bytearray)
    contents: dict[int, list[bytes]] = field(default_factory=dict)  # by sector number
    lengths: list[int] = field(default_factory=list)
    identity: int | None = None  # of the real file, if the store read it

    def write(self, offset: int, data: bytes) -> None:
        """Write as pwrite(2) does."""
        end = offset + len(data)
        if len(self.now) < end:
            self.resize(end)
        self.now[offset:end] = data
        for sector in range(offset // SECTOR, (end + SECTOR - 1) // SECTOR):
            start = sector * SECTOR
            self.contents.setdefault(sector, []).append(bytes(self.now[start : start + SECTOR]))

    def resize(self, length: int) -> None:
        """Resize as ftruncate(2) does."""
        if length < len(self.now):
            tail = self.now[length : (length + SECTOR - 1) // SECTOR * SECTOR]
            del self.now[length:]
            if tail:  # a cut part reads as zeros if the file grows again
                last = length // SECTOR
                rest = bytes(self.now[last * SECTOR :])
                self.contents.setdefault(last, []).append(rest)
        else:
            self.now.extend(bytes(length - len(self.now)))
        self.lengths.append(length)

    def sync(self) -> None:
        """Sync as fsync(2) does."""
        length = len(self.now)
        del self.durable[min([length, *self.lengths]) :]
        self.durable.extend(bytes(length - len(self.durable)))
        for sector in self.contents:
            start = sector * SECTOR
            piece = self.now[start : start + SECTOR]
            self.durable[start : start + len(piece)] = piece
        self.contents.clear()
        self.lengths.clear()

    def after_cut(self, fate: Fate, chance: random.Random) -> bytes:
        """Return the content after the power is back."""
        left = bytearray(self.durable)
        for sector, contents in self.contents.items():
            piece = _left_of(contents, fate, chance)
            if piece is not None:
                start = sector * SECTOR
                left.extend(bytes(max(0, start + SECTOR - len(left))))
                left[start : start + SECTOR] = piece.ljust(SECTOR, b"\0")
        length = _length_left(len(self.durable), self.lengths, fate, chance)
        del left[length:]
        left.extend(bytes(length - len(left)))
        return bytes(left)


def _left_of(contents: list[bytes], fate: Fate, chance: random.Random) -> bytes | None:
    """Return one of the contents that a sector had since its last sync, or None for the durable
    one.
    """
    match fate:
        case Fate.LOST:
            return None
        case Fate.KEPT:
            return contents[-1]
        case Fate.TOSSED:
            return chance.choice([None, *contents])
        case Fate.SPOILED:
            if chance.random() < _GARBAGE_SHARE:
                return chance.randbytes(SECTOR)
            return contents[-1] if chance.random() < 1 - 2 * _GARBAGE_SHARE else None


def _length_left(before: int, lengths: list[int], fate: Fate, chance: random.Random) -> int:
    match fate:
        case Fate.LOST:
            return before
        case Fate.KEPT:
            return lengths[-1] if lengths else before
        case Fate.TOSSED | Fate.SPOILED:
            return chance.choice([before, *lengths])


Naming = tuple[tuple[str, "File | Folder | None"], ...]  # names set, or removed by None, at once


@dataclass(slots=True)
class Folder:
    """A folder: its durable names, its current names, and the changes between them."""

    durable: dict[str, File | Folder] = field(default_factory=dict)
    now: dict[str, File | Folder] = field(default_factory=dict)
    namings: list[Naming] = field(default_factory=list)

    def name(self, *naming: tuple[str, File | Folder | None]) -> None:
        """Set or remove names, all at once."""
        _apply(self.now, naming)
        self.namings.append(naming)

    def sync(self) -> None:
        """Sync as fsync(2) does."""
        self.durable = dict(self.now)
        self.namings.clear()

    def after_cut(self, fate: Fate, chance: random.Random) -> dict[str, File | Folder]:
        """Return the names after the power is back."""
        left = dict(self.durable)
        for naming in self.namings:
            if fate is Fate.KEPT or (fate is not Fate.LOST and chance.random() < 1 / 2):
                _apply(left, naming)
        return left


def _apply(names: dict[str, File | Folder], naming: Naming) -> None:
    for name, node in naming:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def read_in(folder: Path, identities: Mapping[int, int]) -> Folder:
    """Return a simulated folder with the content of the real `folder`, all of it durable.

    `identities` are the simulated identities by real inode number, where they differ.
    """
    made = Folder()
    for path in folder.iterdir():
        if path.is_dir():
            made.now[path.name] = read_in(path, identities)
        else:
            content, real = path.read_bytes(), path.stat().st_ino
            made.now[path.name] = File(
                bytearray(content), bytearray(content), identity=identities.get(real, real)
            )
    made.sync()
    return made


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file, and its identity."""

    data: bytes
    identity: int | None


Found = Mapping[str, "Content | Found"]  # the content of a folder: files and folders


def now(folder: Folder) -> Found:
    """Return the content that a reader of the folder sees while the power is on."""
    return _left(folder, [Fate.KEPT], random.Random(0))  # noqa: S311 - nothing is left to it


def cut(folder: Folder, chance: random.Random) -> Found:
    """Return the content of the folder after a power cut now."""
    fates = [chance.choice(list(Fate))] if chance.random() < 1 / 2 else list(Fate)
    return _left(folder, fates, chance)


def _left(folder: Folder, fates: list[Fate], chance: random.Random) -> Found:
    left: dict[str, Content | Found] = {}
    for name, node in folder.after_cut(chance.choice(fates), chance).items():
        if isinstance(node, Folder):
            left[name] = _left(node, fates, chance)
        else:
            data = node.after_cut(chance.choice(fates), chance)
            left[name] = Content(data, node.identity)
    return left


def write_out(found: Found, place: Path) -> dict[int, int]:
    """Write `found` to the real folder `place`.

    Return the simulated identities of the files by their real inode numbers.
    """
    identities: dict[int, int] = {}
    place.mkdir(mode=0o700)
    for name, content in found.items():
        if isinstance(content, Content):
            (place / name).touch(mode=0o600)
            (place / name).write_bytes(content.data)
            if content.identity is not None:
                identities[(place / name).stat().st_ino] = content.identity
        else:
            identities |= write_out(content, place / name)
    return identities


def digest(found: Found) -> bytes:
    """Return a digest of `found`. Only equal contents have equal digests."""
    whole = hashlib.blake2b()
    for name, content in sorted(found.items()):
        if isinstance(content, Content):
            whole.update(f"{name}/file/{content.identity}/".encode())
            whole.update(hashlib.blake2b(content.data).digest())
        else:
            whole.update(f"{name}/folder/".encode() + digest(content))
    return whole.digest()
