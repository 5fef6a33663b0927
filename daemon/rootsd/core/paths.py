"""Paths as bytes: containment by components, places that can never be roots, and `file://` URIs.

Everything here works on text. `rootsd.disk` makes paths canonical and compares the identities of
folders. Text alone does not see bind mounts and case-insensitive volumes.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

# A path is quoted byte by byte; `~` and the unreserved characters stay (RFC 3986 section 2.3).
_URI_SAFE = b"/-._~"
_AS_IT_IS = (string.ascii_letters + string.digits).encode() + _URI_SAFE

_SYSTEM_TREES = frozenset(
    b"/etc /usr /bin /sbin /lib /lib32 /lib64 /libx32 /boot /dev /proc /sys /run /var /root"
    b" /System /Library /Applications /private".split()
)
# Places below system trees that users own: removable media, home folders of image-based
# distributions, and temporary folders. The place itself stays refused. Folders below it are judged
# like any other.
_OPEN_BELOW = tuple(
    b"/run/media /var/home /var/tmp /var/folders /private/tmp /private/var/tmp"
    b" /private/var/folders".split()
)
_PLACES_THEMSELVES = frozenset(
    b"/ /tmp /mnt /media /opt /srv /home /Users /Volumes /run/media /var/home /var/tmp".split()
)
_PRIVATE_IN_HOME = frozenset(
    b".ssh .gnupg .aws .azure .kube .docker .config .local .cache .mozilla .password-store"
    b" .claude .codex .cursor Library".split()
)
# Agents put worktrees of real projects here, inside folders that are otherwise private.
_OPEN_IN_HOME = (b".codex/worktrees", b".cursor/worktrees", b".claude/worktrees")


class PathError(ValueError):
    """A path that is not absolute and normal: relative, with NUL, or with `.` or `..` as a
    component.
    """


def normalize_path(path: bytes) -> bytes:
    """Return `path` without trailing or doubled slashes.

    `..` is refused and never resolved: if the path contains a symlink, its text does not say where
    it leads. Raises PathError.
    """
    if not path.startswith(b"/"):
        raise PathError("the path is not absolute")
    if b"\0" in path:
        raise PathError("the path contains a NUL byte")
    parts = [part for part in path.split(b"/") if part]
    if b".." in parts or b"." in parts:
        raise PathError("the path has a . or .. in it")
    return b"/" + b"/".join(parts)


def contains(folder: bytes, path: bytes) -> bool:
    """Return whether `path` is at or below `folder`, by components: /src does not contain
    /src-old.
    """
    if folder == b"/":
        return True
    return path == folder or path.startswith(folder + b"/")


def ancestors(path: bytes) -> Iterator[bytes]:
    """Yield the folders above `path`, nearest first and `/` last. A URI has none."""
    if not path.startswith(b"/"):
        return
    while path != b"/":
        path = path.rpartition(b"/")[0] or b"/"
        yield path


def base_name(path: bytes) -> bytes:
    """Return the last component of `path`; empty for `/`."""
    return path.rpartition(b"/")[2]


def is_utf8(path: bytes) -> bool:
    """Return whether `path` is UTF-8. Only such paths can be published: clients decode URIs as
    UTF-8.
    """
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True


def text_of(path: bytes) -> str:
    """Return `path` as `str`, with lone surrogates for other bytes than UTF-8 (PEP 383), in any
    locale.
    """
    return path.decode("utf-8", "surrogateescape")


def bytes_of(path: str) -> bytes:
    """Return the bytes of a path from `text_of`."""
    return path.encode("utf-8", "surrogateescape")


def to_uri(path: bytes) -> str:
    """Return the `file://` URI of a canonical path (RFC 8089, empty authority)."""
    if not path.translate(None, _AS_IT_IS):  # three times as fast, and true for most paths
        return "file://" + path.decode()
    return "file://" + quote(path, safe=_URI_SAFE)


class RefusedPlaces(NamedTuple):
    """The places that can be neither root nor parent.

    * `own`: the daemon's own folders.
    * `refused`: further places that the configuration refuses.
    * `allowed`: system or settings folders that the configuration allows. It cannot allow the home
      folder or a folder above it, the daemon's own folders, or the inside of a `.git`.
    * `parents`: the configured parents. A worktree may neither be nor contain one.

    A named tuple, since `rootsd run` imports this module: `dataclasses` would cost it 6 ms.
    """

    home: bytes
    own: tuple[bytes, ...] = ()
    refused: tuple[bytes, ...] = ()
    allowed: tuple[bytes, ...] = ()
    parents: tuple[bytes, ...] = ()

    def why_no_root(self, path: bytes) -> str | None:
        """Return why `path` can never be a root, as a clause, or None if it can."""
        if any(contains(path, own) for own in self.own) and not contains(path, self.home):
            return "it contains rootsd's own files"
        if inner := next((place for place in self.refused if contains(path, place)), None):
            return _refused_by_configuration(path, inner)
        return self._why_neither(path) or ("it is your home folder" if path == self.home else None)

    def why_no_parent(self, path: bytes) -> str | None:
        """Return why `path` can never be a parent, or None if it can.

        The home folder can be a parent, and so can a folder that contains rootsd's own folders.
        Those are refused one by one.
        """
        return self._why_neither(path)

    def refused_trees(self) -> tuple[bytes, ...]:
        """Return the folders whose inside can never be a root, apart from the exceptions by name.

        These are folders of the system, of secrets and settings, the daemon's own, and those that
        the configuration refuses.
        """
        private = (self.home + b"/" + name for name in _PRIVATE_IN_HOME)
        return (*sorted(_SYSTEM_TREES), *sorted(private), *self.own, *self.refused)

    def refused_ancestors(self) -> tuple[bytes, ...]:
        """Return the folders that can never be a root because they contain a refused folder."""
        inside = (self.home, *self.own, *self.refused)
        return tuple(sorted({above for place in inside for above in ancestors(place)}))

    def _why_neither(self, path: bytes) -> str | None:
        if path == self.home:
            return None
        if contains(path, self.home):
            return "it contains your home folder"
        if any(contains(own, path) for own in self.own):
            return "it contains rootsd's own files"
        if b".git" in path.split(b"/"):
            return "it lies inside a .git folder"
        if not is_utf8(path):
            return "its path is not UTF-8, so clients cannot use it"
        if outer := next((place for place in self.refused if contains(place, path)), None):
            return _refused_by_configuration(path, outer)
        if any(contains(place, path) for place in self.allowed):
            return None
        return self._reserved(path) or self._private(path)

    def _private(self, path: bytes) -> str | None:
        inside = self.home + b"/"
        if not path.startswith(inside):
            return None
        name = path.removeprefix(inside).partition(b"/")[0]
        if name in _PRIVATE_IN_HOME and not self._open_in_home(path):
            return f"{text_of(inside + name)} contains secrets and settings"
        return None

    def _open_in_home(self, path: bytes) -> bool:
        return any(
            path.startswith(self.home + b"/" + place + b"/") for place in _OPEN_IN_HOME
        ) or any(path == self.home + b"/" + place for place in _OPEN_IN_HOME)

    def _reserved(self, path: bytes) -> str | None:
        if path in _PLACES_THEMSELVES:
            return "it is a place of the system, not a project"
        if contains(self.home, path):
            return None
        tree = b"/" + path[1:].partition(b"/")[0]
        if tree in _SYSTEM_TREES and not any(path.startswith(at + b"/") for at in _OPEN_BELOW):
            return f"{text_of(tree)} belongs to the system"
        return None


def _refused_by_configuration(path: bytes, place: bytes) -> str:
    which = "it" if path == place else text_of(place)
    return f"the configuration refuses {which}"
