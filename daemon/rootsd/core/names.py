"""Names for projects: the name of the folder, or the shortest unique suffix of the path.

No two names look the same. They differ in more than Unicode form, compatibility characters, and
case (UAX #15, NFKC and full case folding), and they differ in the part that tables show. If even
the whole paths of two projects look the same, each name ends with the id of its project:
`café~r7k2`.

The same set of paths gives the same names, in any order. After the scan that found a project, its
name stays: what appears later gets a name that differs from all names that are or were in use.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from itertools import chain, count
from types import MappingProxyType
from typing import NewType

from rootsd.core.labels import LABEL_LIMIT, safe_label
from rootsd.core.paths import text_of

_ID_ALPHABET = "abcdefghjkmnpqrstvwxyz0123456789"
_ID_LENGTH = 4
_MAX_ID_LENGTH = 39
ID_SEPARATOR = "~"

# Never fold a key again: it may be longer than a label, and would be cut.
NameKey = NewType("NameKey", str)


def comparison_key(name: str) -> NameKey:
    """Return a key that is equal for all names that look the same to a reader."""
    label = safe_label(name)
    if label.isascii():
        folded = label.lower()
        # Sharing the object saves memory.
        return NameKey(name if folded == name else folded)
    once = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", label).casefold())
    return NameKey(unicodedata.normalize("NFKC", once.casefold()))


def with_id(name: str, project_id: str, is_free: Callable[[NameKey], bool]) -> str:
    """Return `name` with the id of its project at the end, and a comparison key that `is_free`.

    A long name is cut, so that its label includes the id. If that name is taken, too, a number
    follows.
    """
    end = ID_SEPARATOR + project_id
    numbered = (f"{end}{ID_SEPARATOR}{number}" for number in count(2))
    ended = (_with_end(name, each) for each in chain((end,), numbered))
    return next(each for each in ended if is_free(comparison_key(each)))


def _with_end(name: str, end: str) -> str:
    while len(safe_label(name + end, limit=None)) > LABEL_LIMIT and name:
        name = name[:-1]
    return name + end


def propose_names(
    paths: Iterable[bytes],
    taken: Collection[NameKey] = (),
    *,
    others: Iterable[bytes] = (),
    reserved: Mapping[str, bytes] = MappingProxyType({}),
    id_of: Callable[[bytes], str] | None = None,
) -> Mapping[bytes, str]:
    """Return a name for each path: as many of its last components as make the name unique.

    * `others`: the projects that already have a name. The new names also differ from the last
      components of these paths. So the names do not depend on which project is approved first.
    * `taken`: comparison keys of names that are in use. No new name looks like one of them.
    * `reserved`: names that projects gave up. Only the path that had a name gets one that looks
      like it, because people may remember the name.
    * `id_of`: returns the id of a project, by default its shortest id. If even the name with the
      whole path is taken, the result is the last component with this id.
    """
    names: dict[bytes, str] = {}
    keys = set(taken)
    remembered: dict[NameKey, bytes | None] = {}
    for name, path in reserved.items():
        key = comparison_key(name)
        remembered[key] = path if remembered.get(key, path) == path else None

    def is_free(key: NameKey, path: bytes) -> bool:
        return key not in keys and remembered.get(key, path) == path

    clashing = {path: _parts(path) for path in paths}
    wanted = frozenset(clashing)
    ends = {comparison_key(text_of(parts[-1])) for parts in clashing.values()}
    for path in others:
        if path not in wanted and comparison_key(text_of(path.rpartition(b"/")[2])) in ends:
            clashing[path] = _parts(path)
    exhausted: list[bytes] = []
    length = 1
    while clashing:
        longer: dict[bytes, list[bytes]] = {}
        for key, group in _by_suffix(clashing, length, wanted).items():
            first = group[0]
            if len(group) == 1 and is_free(key, first):
                names[first] = _suffix(clashing[first], length)
                keys.add(key)
                continue
            longer |= {path: clashing[path] for path in group if length < len(clashing[path])}
            exhausted += (path for path in group if path in wanted and path not in longer)
        clashing = longer
        length += 1
    for path in sorted(exhausted):
        last = _suffix(_parts(path), 1)
        names[path] = with_id(last, (id_of or project_id)(path), partial(is_free, path=path))
        keys.add(comparison_key(names[path]))
    return names


def _suffix(parts: list[bytes], length: int) -> str:
    return text_of(b"/".join(parts[-length:])) or "/"


def _by_suffix(
    clashing: Mapping[bytes, list[bytes]], length: int, wanted: Collection[bytes]
) -> Mapping[NameKey, list[bytes]]:
    """Return the paths, grouped by the comparison key of their last `length` components.

    This leaves out groups without a `wanted` path.
    """
    groups: dict[NameKey, list[bytes]] = defaultdict(list)
    for path, parts in clashing.items():
        groups[comparison_key(_suffix(parts, length))].append(path)
    return {name: group for name, group in groups.items() if any(p in wanted for p in group)}


def _parts(path: bytes) -> list[bytes]:
    """Return the components of a path, or the host and path of a URI as one component."""
    if path.startswith(b"/"):
        return path.strip(b"/").split(b"/")
    rest = path.partition(b"://")[2].partition(b"?")[0]
    authority, slash, below = rest.partition(b"/")
    return [(authority.rpartition(b"@")[2] + slash + below).strip(b"/")]


def project_id(path: bytes, *taken: Collection[str]) -> str:
    """Return a short id for `path` that is in none of `taken`. It is longer if shorter ones are.

    The id is derived from a hash of the path. So it is the same again if the store is lost.
    """
    digest = int.from_bytes(hashlib.sha256(path).digest(), "big")
    candidate = ""
    while len(candidate) < _MAX_ID_LENGTH:
        digest, index = divmod(digest, len(_ID_ALPHABET))
        candidate += _ID_ALPHABET[index]
        if len(candidate) < _ID_LENGTH or candidate.isdigit():
            continue
        if not any(candidate in ids for ids in taken):
            return candidate
    raise AssertionError("two paths share a SHA-256 prefix of 195 bits")
