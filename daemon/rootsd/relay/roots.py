"""The roots as the relay has them from the daemon, and as a server is told of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from rootsd.core.paths import PathError, checked, is_utf8, text_of, to_uri


class Folder(NamedTuple):
    """A root, or a folder in one. `path` is canonical; `writable` is false where the user asks
    that nothing in it be changed."""

    path: bytes
    name: str
    writable: bool = True

    @property
    def text(self) -> str:
        """The path as programs take it."""
        return text_of(self.path)


def folders_of(result: object) -> tuple[Folder, ...]:
    """The folders in the daemon's answer to `roots/list`, in its order."""
    match result:
        case {"roots": list() as items}:
            found = (_folder_of(item) for item in items)
            return tuple(folder for folder in found if folder is not None)
        case _:
            return ()


def paths_of(result: object) -> tuple[bytes, ...]:
    """The folders in a client's answer to `roots/list`; what is no absolute path is left out."""
    match result:
        case {"roots": list() as items}:
            uris = (item.get("uri") for item in items if isinstance(item, dict))
            paths = (path_of(uri) for uri in uris if isinstance(uri, str))
            return tuple(path for path in paths if path is not None)
        case _:
            return ()


def path_of(uri: str) -> bytes | None:
    """The path of a `file://` URI on this machine (RFC 8089); None for all others."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    try:
        return checked(unquote_to_bytes(parts.path))
    except PathError:
        return None


def roots_result(folders: Iterable[Folder]) -> dict[str, Any]:
    """The answer to a server's `roots/list`."""
    return {"roots": [{"uri": to_uri(each.path), "name": each.name} for each in folders]}


def _folder_of(item: object) -> Folder | None:
    match item:
        case {"uri": str() as uri, "name": str() as name, **more}:
            path = path_of(uri)
            meta = more.get("_meta")
        case _:
            return None
    if path is None or not is_utf8(path):
        return None
    # Without a word about it, less: what is not known to be writable is not.
    access = meta.get("rootsd/access") if isinstance(meta, dict) else None
    return Folder(path, name, access == "read-write")
