"""Names for projects: the name of the folder, or the shortest unique suffix of the path.

No two names look the same. They differ in more than Unicode form, compatibility characters and
case (UAX #15, NFKC and full case folding), and they differ in the part that tables show. If the
whole paths of two projects look the same, each name ends with the id of its project: `café~r7k2`.

The functions are pure: the same set of paths gives the same names in any order. A name that an
approval froze is taken, and proposals avoid it.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from types import MappingProxyType

from rootsd.core.labels import LABEL_LIMIT, safe_label
from rootsd.core.paths import text_of

_ID_ALPHABET = "abcdefghjkmnpqrstvwxyz0123456789"
_ID_LENGTH = 4
_MOST_LETTERS = 39
ID_SEPARATOR = "~"


def comparison_key(name: str) -> str:
    """Return a key that is equal for all names that a reader cannot tell apart."""
    label = safe_label(name)
    if label.isascii():
        folded = label.lower()
        return name if folded == name else folded  # the same object takes no memory
    once = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", label).casefold())
    return unicodedata.normalize("NFKC", once.casefold())


def with_id(name: str, project_id: str, is_free: Callable[[str], bool]) -> str:
    """Return `name` with the id of its project at the end, and a comparison key that `is_free`.

    The name is cut so that a label shows the id.
    """
    end = ID_SEPARATOR + project_id
    while True:
        stem = name
        while len(safe_label(stem + end, limit=None)) > LABEL_LIMIT and stem:
            stem = stem[:-1]
        if is_free(comparison_key(stem + end)):
            return stem + end
        end += ID_SEPARATOR + project_id


def disambiguate(
    frozen: Iterable[tuple[bytes, str]], id_of: Callable[[bytes], str]
) -> Mapping[bytes, str]:
    """Return path -> name with an id, for the projects whose frozen names look the same.

    `frozen` has paths with their stored names. Version 0.1.0 compared names exactly, so it could
    store such names.
    """
    groups: dict[str, list[tuple[bytes, str]]] = defaultdict(list)
    for path, name in frozen:
        groups[comparison_key(name)].append((path, name))
    apart: dict[bytes, str] = {}
    looks = {*groups}
    for group in groups.values():
        for path, name in sorted(group) if len(group) > 1 else ():
            apart[path] = with_id(name, id_of(path), lambda look: look not in looks)
            looks.add(comparison_key(apart[path]))
    return apart


def propose_names(
    paths: Iterable[bytes],
    taken: Collection[str] = (),
    *,
    others: Iterable[bytes] = (),
    reserved: Mapping[str, bytes] = MappingProxyType({}),
    id_of: Callable[[bytes], str] | None = None,
) -> Mapping[bytes, str]:
    """Return a name for each path: its last component, with as many more as it needs to be unique.

    It also differs from the names of `others`, the projects that already have a name. So two
    projects get the same names whichever is approved first. No name looks like another or like one
    in `taken`. A name that looks like one in `reserved` goes only to the path that had it, since
    somebody may remember it. If even the whole path is taken, the last component gets the id of
    the project. `id_of` returns that id (by default its shortest id).
    """
    names: dict[bytes, str] = {}
    looks = {comparison_key(name) for name in taken}
    remembered: dict[str, bytes | None] = {}
    for name, path in reserved.items():
        look = comparison_key(name)
        remembered[look] = path if remembered.get(look, path) == path else None

    def is_free(look: str, path: bytes) -> bool:
        return look not in looks and remembered.get(look, path) == path

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
        for look, group in _by_suffix(clashing, length, wanted).items():
            first = group[0]
            if len(group) == 1 and is_free(look, first):
                names[first] = _suffix(clashing[first], length)
                looks.add(look)
                continue
            longer |= {path: clashing[path] for path in group if length < len(clashing[path])}
            exhausted += (path for path in group if path in wanted and path not in longer)
        clashing = longer
        length += 1
    for path in sorted(exhausted):
        last = _suffix(_parts(path), 1)
        names[path] = with_id(last, (id_of or project_id)(path), partial(is_free, path=path))
        looks.add(comparison_key(names[path]))
    return names


def _suffix(parts: list[bytes], length: int) -> str:
    return text_of(b"/".join(parts[-length:])) or "/"


def _by_suffix(
    clashing: Mapping[bytes, list[bytes]], length: int, wanted: Collection[bytes]
) -> Mapping[str, list[bytes]]:
    """Return the paths by the key of their last `length` components, without groups that have no
    `wanted` path.
    """
    groups: dict[str, list[bytes]] = defaultdict(list)
    for path, parts in clashing.items():
        groups[comparison_key(_suffix(parts, length))].append(path)
    return {name: group for name, group in groups.items() if any(p in wanted for p in group)}


def _parts(path: bytes) -> list[bytes]:
    """Return the parts of a name: the components of a path, or host and path of a URI
    as one part.
    """
    if path.startswith(b"/"):
        return path.strip(b"/").split(b"/")
    rest = path.partition(b"://")[2].partition(b"?")[0]
    authority, slash, below = rest.partition(b"/")
    return [(authority.rpartition(b"@")[2] + slash + below).strip(b"/")]


def project_id(path: bytes, *taken: Collection[str]) -> str:
    """Return a short id for `path` that is in none of `taken`; it is longer after a clash.

    It comes from the hash of the path, so that it is the same after the store was lost.
    """
    digest = int.from_bytes(hashlib.sha256(path).digest(), "big")
    candidate = ""
    while len(candidate) < _MOST_LETTERS:
        digest, index = divmod(digest, len(_ID_ALPHABET))
        candidate += _ID_ALPHABET[index]
        if len(candidate) < _ID_LENGTH or candidate.isdigit():
            continue
        if not any(candidate in ids for ids in taken):
            return candidate
    raise AssertionError("two paths share a SHA-256 prefix of 195 bits")
