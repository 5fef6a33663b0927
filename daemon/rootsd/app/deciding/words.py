"""The names and tags that a person may give.

They reach every client, and a person types them again as a REF. So a word that cannot be typed, or
that already means something else as a REF, is refused.
"""

from __future__ import annotations

from rootsd.core.catalog import Catalog
from rootsd.core.labels import safe_label
from rootsd.core.paths import text_of
from rootsd.wire.request import BadRequest

_GLOB = frozenset("*?[")
_STARTS = {"/": "a path", "~": "a path", "-": "a flag", "tag:": "a tag"}
_REMEDY = "rootsd rename --help"


def check_word(word: str) -> None:
    """Raise BadRequest for a word that can be no name and no tag, of whatever project."""
    if safe_label(word) != word or word in (".", ".."):
        raise BadRequest(
            f"{safe_label(word)} is no name and no tag: up to 64 visible characters, no path"
        )
    for start, what in _STARTS.items():
        if word.startswith(start):
            raise BadRequest(f"{word} is no name and no tag: it would be read as {what}", _REMEDY)


def check_name(name: str, path: bytes, catalog: Catalog) -> None:
    """Raise BadRequest for a word that can be no name of the project at `path`.

    The end of its own path is always a name for it, as `acme/api` is for `/src/acme/api`.
    """
    check_word(name)
    _check_no_id(name, path, catalog)
    if f"/{text_of(path)}".endswith(f"/{name}"):
        return
    if "/" in name:
        raise BadRequest(
            f"{name} would be read as a path: a name with a slash is the end of the project's own",
            _REMEDY,
        )
    _check_no_glob(name)


def check_tag(tag: str, catalog: Catalog) -> None:
    """Raise BadRequest for a word that can be no tag."""
    check_word(tag)
    _check_no_id(tag, None, catalog)
    if "/" in tag:
        raise BadRequest(f"{tag} is no tag: it would be read as a path", "rootsd tag --help")
    _check_no_glob(tag)


def _check_no_id(word: str, path: bytes | None, catalog: Catalog) -> None:
    holder = catalog.ids.get(word)
    if holder is not None and holder != path:
        where = safe_label(holder, limit=None)
        raise BadRequest(f"{word} is the id of {where}", "rootsd ls")


def _check_no_glob(word: str) -> None:
    if not _GLOB.isdisjoint(word):
        raise BadRequest(f"{word} is no name and no tag: it would be read as a glob", _REMEDY)
