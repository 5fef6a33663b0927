"""Names for projects: the folder's name, or the shortest suffix of the path that is unique.

Pure and independent of order: the same set of paths gives the same names. A name that an
approval froze is taken; proposals make way for it.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from rootsd.core.paths import text_of

_ID_ALPHABET = "abcdefghjkmnpqrstvwxyz0123456789"
_ID_LENGTH = 4
_MOST_LETTERS = 39


def propose(paths: Iterable[bytes], taken: Collection[str] = ()) -> Mapping[bytes, str]:
    """A unique name for each path: its last component, or as many more as tell it apart.

    Names in `taken` are never proposed. Where even the whole path is taken, a number is added.
    """
    names: dict[bytes, str] = {}
    clashing = {path: path.strip(b"/").split(b"/") for path in paths}
    exhausted: list[bytes] = []
    length = 1
    while clashing:
        groups: dict[str, list[bytes]] = defaultdict(list)
        for path, parts in clashing.items():
            groups[text_of(b"/".join(parts[-length:])) or "/"].append(path)
        longer: dict[bytes, list[bytes]] = {}
        for name, group in groups.items():
            if len(group) == 1 and name not in taken:
                names[group[0]] = name
                continue
            for path in group:
                if length < len(clashing[path]):
                    longer[path] = clashing[path]
                else:
                    exhausted.append(path)
        clashing = longer
        length += 1
    for path in sorted(exhausted):
        names[path] = _numbered(text_of(path.strip(b"/")), {*taken, *names.values()})
    return names


def _numbered(name: str, taken: Collection[str]) -> str:
    number = 2
    while f"{name}-{number}" in taken:
        number += 1
    return f"{name}-{number}"


def project_id(path: bytes, *taken: Collection[str]) -> str:
    """A short id for `path`, in none of `taken`; longer on a clash.

    It comes from the path's hash, so that it survives a lost store.
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
