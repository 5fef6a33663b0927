"""Check which objects a git repository has, loose or packed.

Sources: gitrepository-layout(5), gitformat-pack(5) for the index of a pack, version 2.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable
from itertools import groupby
from operator import itemgetter

from rootsd.disk.reader import OpenFolder

_PACKS = b"objects/pack/"
# Enough for 2 million objects. A larger pack counts as having every object.
_PACK_INDEX_CAP = 64 << 20
_MAGIC = b"\xfftOc\x00\x00\x00\x02"
_TABLE = len(_MAGIC) + 256 * 4


def are_packs_complete(git: OpenFolder, id_size: int) -> bool:
    """Return whether each pack and its index are complete and belong together.

    The pack must end with the checksum that its index names. `git` is the folder with `objects`.
    """
    names = git.names_in(_PACKS)
    stems = {name.removesuffix(b".pack") for name in names if name.endswith(b".pack")}
    stems |= {name.removesuffix(b".idx") for name in names if name.endswith(b".idx")}
    for stem in stems:
        of_index = git.read_tail(_PACKS + stem + b".idx", 2 * id_size)
        of_pack = git.read_tail(_PACKS + stem + b".pack", id_size)
        if of_index is None or of_pack is None or of_index[:id_size] != of_pack:
            return False
    return True


def may_borrow_objects(git: OpenFolder) -> bool:
    """Return whether objects may be elsewhere: in another repository, or on a remote."""
    if git.exists(b"objects/info/alternates") or not git.is_folder(b"objects"):
        return True
    return any(name.endswith(b".promisor") for name in git.names_in(_PACKS))


def has_all_objects(git: OpenFolder, ids: Collection[bytes]) -> bool:
    """Return whether the repository has every object with these binary ids. Takes 2 us each."""
    with git.folder(b"objects") as objects:
        missing = set(ids) - _find_loose(objects, ids)
    for name in git.names_in(_PACKS):
        if not missing:
            break
        if name.endswith(b".idx"):
            missing -= _find_in_pack_index(
                git.read(_PACKS + name, _PACK_INDEX_CAP) or b"", missing
            )
    return not missing


def _find_loose(objects: OpenFolder, ids: Iterable[bytes]) -> set[bytes]:
    """Return those of `ids` that are loose objects, that is, files of their own.

    Each file is in a folder with the first byte of the id as its name.
    """
    found = set[bytes]()
    for first, its in groupby(sorted(ids), key=itemgetter(0)):
        name = b"%02x" % first
        with objects.folder(name) as folder:
            if isinstance(folder.failure, FileNotFoundError):
                continue
            # Without permission to list a folder, a lookup by path may still work.
            is_open = folder.failure is None
            base, prefix = (folder, b"") if is_open else (objects, name + b"/")
            found.update(each for each in its if base.exists(prefix + each[1:].hex().encode()))
    return found


def _find_in_pack_index(index: bytes, wanted: set[bytes]) -> set[bytes]:
    """Return those of `wanted` that the index of a pack lists."""
    if not index.startswith(_MAGIC) or len(index) < _TABLE:
        return set()
    counts = [int.from_bytes(index[at : at + 4], "big") for at in range(8, _TABLE, 4)]
    if len(index) == _PACK_INDEX_CAP:
        return set(wanted)
    size = len(next(iter(wanted)))
    if len(index) < _TABLE + counts[-1] * size or counts != sorted(counts):
        return set()

    def id_at(number: int) -> bytes:
        start = _TABLE + number * size
        return index[start : start + size]

    found = set()
    for each in wanted:
        low = counts[each[0] - 1] if each[0] else 0
        high = counts[each[0]]
        at = bisect_left(range(high), each, low, high, key=id_at)
        if at < high and id_at(at) == each:
            found.add(each)
    return found
