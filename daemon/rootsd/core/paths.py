"""Paths as bytes: containment by components, places that can never be roots, `file://` URIs.

Everything here is textual. A canonical path comes from the host layer, which also compares the
identity of folders; text alone misses bind mounts and case-insensitive volumes.
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
# Real places below system trees: removable media, image-based distributions' home folders, and
# temporary folders. The place itself stays refused; what lies below is judged like any folder.
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
    """Bytes that are no absolute, normal path: relative, NUL, `.` or `..` as a component."""


def normalize_path(path: bytes) -> bytes:
    """Return `path` without trailing or doubled slashes.

    `..` is refused and never resolved: with symlinks in the path the text does not tell where
    it leads. Raises PathError.
    """
    if not path.startswith(b"/"):
        raise PathError("the path is not absolute")
    if b"\0" in path:
        raise PathError("the path holds a NUL byte")
    parts = [part for part in path.split(b"/") if part]
    if b".." in parts or b"." in parts:
        raise PathError("the path has a . or .. in it")
    return b"/" + b"/".join(parts)


def contains(folder: bytes, path: bytes) -> bool:
    """Whether `path` is `folder` or lies below it, by components: /src does not hold /src-old."""
    if folder == b"/":
        return True
    return path == folder or path.startswith(folder + b"/")


def ancestors(path: bytes) -> Iterator[bytes]:
    """The folders above `path`, nearest first, `/` last; none above a URI."""
    if not path.startswith(b"/"):
        return
    while path != b"/":
        path = path.rpartition(b"/")[0] or b"/"
        yield path


def base_name(path: bytes) -> bytes:
    """The last component; empty for `/`."""
    return path.rpartition(b"/")[2]


def is_utf8(path: bytes) -> bool:
    """Whether the path can be published: clients decode URIs as UTF-8, some of them strictly."""
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True


def text_of(path: bytes) -> str:
    """The path as `str`, undecodable bytes as lone surrogates (PEP 383), whatever the locale."""
    return path.decode("utf-8", "surrogateescape")


def bytes_of(path: str) -> bytes:
    """The inverse of `text_of`."""
    return path.encode("utf-8", "surrogateescape")


def to_uri(path: bytes) -> str:
    """The `file://` URI of a canonical path (RFC 8089, empty authority)."""
    if not path.translate(None, _AS_IT_IS):  # as most are: a third of the time
        return "file://" + path.decode()
    return "file://" + quote(path, safe=_URI_SAFE)


class RefusedPlaces(NamedTuple):
    """Which places can be neither root nor parent. `own` are the daemon's folders, `parents` the
    configured parents, which no worktree may be or hold.

    The configuration says `refused`, which are refused besides, and `allowed`, which are not:
    folders of settings or of the system. What holds the home folder, the daemon's own folders
    and the inside of a `.git` no configuration allows.

    A named tuple, since the relay imports this module: `dataclasses` would cost it 6 ms.
    """

    home: bytes
    own: tuple[bytes, ...] = ()
    refused: tuple[bytes, ...] = ()
    allowed: tuple[bytes, ...] = ()
    parents: tuple[bytes, ...] = ()

    def why_no_root(self, path: bytes) -> str | None:
        """Why `path` can never be a root, as a sentence; None where nothing speaks against it."""
        if any(contains(path, own) for own in self.own) and not contains(path, self.home):
            return "it holds rootsd's own files"
        if inner := next((place for place in self.refused if contains(path, place)), None):
            return _refused_by_configuration(path, inner)
        return self._why_neither(path) or ("it is your home folder" if path == self.home else None)

    def why_no_parent(self, path: bytes) -> str | None:
        """Why `path` can never be a parent. The home folder can, and one that holds rootsd's own
        folders: they are refused one by one."""
        return self._why_neither(path)

    def refused_trees(self) -> tuple[bytes, ...]:
        """The folders in which nothing can be a root, but for the exceptions by name: those of the
        system, of secrets and settings, the daemon's own, and what the configuration refuses."""
        private = (self.home + b"/" + name for name in _PRIVATE_IN_HOME)
        return (*sorted(_SYSTEM_TREES), *sorted(private), *self.own, *self.refused)

    def refused_ancestors(self) -> tuple[bytes, ...]:
        """The folders that can be no root because of what lies in them."""
        inside = (self.home, *self.own, *self.refused)
        return tuple(sorted({above for place in inside for above in ancestors(place)}))

    def _why_neither(self, path: bytes) -> str | None:
        if path == self.home:
            return None
        if contains(path, self.home):
            return "it holds your home folder"
        if any(contains(own, path) for own in self.own):
            return "it holds rootsd's own files"
        if b".git" in path.split(b"/"):
            return "it lies inside a .git folder"
        if not is_utf8(path):
            return "its path is not UTF-8, so clients cannot be told of it"
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
            return f"{text_of(inside + name)} holds secrets and settings"
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
