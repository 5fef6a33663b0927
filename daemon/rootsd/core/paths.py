"""Paths as bytes: containment by components, places that can never be roots, and `file://` URIs.

These functions use only the text of a path, so they do not notice bind mounts or case-insensitive
volumes. `rootsd.disk` makes paths canonical and compares the identities of folders.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from rootsd.core.quick_tuple import NamedTuple

# These characters stay in a URI as they are: the unreserved ones (RFC 3986, section 2.3) and `/`.
_URI_SAFE = b"/-._~"
_AS_IT_IS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" + _URI_SAFE

_SYSTEM_TREES = frozenset(
    b"/etc /usr /bin /sbin /lib /lib32 /lib64 /libx32 /boot /dev /proc /sys /run /var /root"
    b" /System /Library /Applications /private".split()
)
# Places in system trees with folders that belong to users: removable media, home folders on
# image-based distributions, and temporary folders. Only the place itself is refused.
_OPEN_BELOW = tuple(
    b"/run/media /var/home /var/tmp /var/folders /private/tmp /private/var/tmp"
    b" /private/var/folders".split()
)
_PLACES_THEMSELVES = frozenset(
    b"/ /tmp /mnt /media /opt /srv /home /Users /Volumes /run/media /var/home /var/tmp".split()
)
PRIVATE_IN_HOME = frozenset(
    b".ssh .gnupg .aws .azure .kube .docker .config .local .cache .mozilla .password-store"
    b" .claude .codex .cursor Library".split()
)
"""The folders in a home folder that can never be a root."""
# Agents put worktrees of real projects here, in folders that are otherwise private.
_OPEN_IN_HOME = (b".codex/worktrees", b".cursor/worktrees", b".claude/worktrees")


class PathError(ValueError):
    """A path that is relative, or contains a NUL byte or a component `.` or `..`."""


def normalize_path(path: bytes) -> bytes:
    """Return `path` without trailing or doubled slashes.

    Raises PathError, also for `..`: if a symlink is on the way, the text does not show where `..`
    leads.
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
    """Return whether `path` is at or below `folder`. /src does not contain /src-old."""
    if folder == b"/":
        return True
    return path.startswith(folder) and path[len(folder) : len(folder) + 1] in (b"", b"/")


def paths_below(folder: bytes, ordered: Sequence[bytes]) -> Sequence[bytes]:
    """Return the part of the sorted paths that lies below `folder`, without `folder` itself.

    Nothing lies below a URI.
    """
    if not folder.startswith(b"/"):
        return ()
    top = folder.rstrip(b"/")
    first = bisect_right(ordered, top + b"/")
    # "0" comes right after "/".
    return ordered[first : bisect_left(ordered, top + b"0", first)]


def outer_place(places: Iterable[bytes], path: bytes) -> bytes | None:
    """Return the first of `places` that contains `path`, or None."""
    for place in places:  # a loop, because a listing of 20,000 projects asks 40,000 times
        if contains(place, path):
            return place
    return None


def inner_place(places: Iterable[bytes], path: bytes) -> bytes | None:
    """Return the first of `places` that `path` contains, or None."""
    for place in places:
        if contains(path, place):
            return place
    return None


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
    """Return whether `path` is UTF-8. Others cannot be published: clients decode URIs as UTF-8."""
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True


def text_of(path: bytes) -> str:
    """Return `path` as `str` in any locale. Bytes that are not UTF-8 become lone surrogates.

    See PEP 383.
    """
    return path.decode("utf-8", "surrogateescape")


def bytes_of(path: str) -> bytes:
    """Return the bytes of a path from `text_of`."""
    return path.encode("utf-8", "surrogateescape")


def to_uri(path: bytes) -> str:
    """Return the `file://` URI of a canonical path (RFC 8089, empty authority)."""
    if not path.translate(None, _AS_IT_IS):  # three times as fast, and true for most paths
        return "file://" + path.decode()
    from urllib.parse import quote  # noqa: PLC0415 - 3 ms of every start, and rarely needed

    return "file://" + quote(path, safe=_URI_SAFE)


class PolicyEntry(NamedTuple):
    """A place or a rule of the machine's policy.

    `pattern` is the path of a refused place, or the pattern of a rule. `source` says where it is
    written, such as `/etc/rootsd/policy.toml, line 4`.
    """

    pattern: bytes
    source: str


def refusing_entry(places: Iterable[PolicyEntry], path: bytes) -> PolicyEntry | None:
    """Return the place that `path` lies in or contains, or None."""
    for place in places:
        if contains(place.pattern, path) or contains(path, place.pattern):
            return place
    return None


class RefusedPlaces(NamedTuple):
    """The places that cannot be a root or a parent.

    * `home`: the home folder that HOME names.
    * `own`: the daemon's own folders.
    * `refused`: more places, which the configuration refuses.
    * `allowed`: folders of the system or with settings that the configuration allows. It cannot
      allow the home folder or a folder above it, the daemon's own folders, or the inside of a
      `.git`.
    * `parents`: the configured parents. A worktree must not be or contain one.
    * `by_policy`: places that the machine's policy refuses. No configuration can allow them. An
      approval in one is withheld and does not lapse, because the policy may change.
    * `account_home`: the home folder in the password database, which no variable changes. It is
      empty for a user without an entry there.

    This is a named tuple, because `rootsd run` imports this module, and importing `dataclasses`
    takes 6 ms.
    """

    home: bytes
    own: tuple[bytes, ...] = ()
    refused: tuple[bytes, ...] = ()
    allowed: tuple[bytes, ...] = ()
    parents: tuple[bytes, ...] = ()
    by_policy: tuple[PolicyEntry, ...] = ()
    account_home: bytes = b""

    @property
    def homes(self) -> tuple[bytes, ...]:
        """The home folders of the user: usually one, and two if HOME was set to another."""
        if self.account_home in (b"", self.home):
            return (self.home,)
        return (self.home, self.account_home)

    def _is_own(self, home: bytes) -> bool:
        return home == (self.account_home or self.home)

    def why_no_root(self, path: bytes) -> str | None:
        """Return why `path` can never be a root, as a clause, or None if it can."""
        if (reason := self.why_lapsing(path)) is not None:
            return reason
        entry = refusing_entry(self.by_policy, path)
        return None if entry is None else f"the policy refuses it ({entry.source})"

    def why_lapsing(self, path: bytes) -> str | None:
        """Return why an approval of `path` lapses, or None. The policy's places do not count."""
        homes = self.homes
        if inner_place(self.own, path) is not None and inner_place(homes, path) is None:
            return "it contains rootsd's own files"
        if (inner := inner_place(self.refused, path)) is not None:
            return _refused_by_configuration(path, inner)
        if path in homes:
            return "it is your home folder"
        return self._why_neither(path, homes)

    def why_no_parent(self, path: bytes) -> str | None:
        """Return why `path` can never be a parent, or None if it can.

        The home folder can be a parent, and so can a folder that contains rootsd's own folders.
        """
        homes = self.homes
        return None if path in homes else self._why_neither(path, homes)

    def refused_trees(self) -> tuple[bytes, ...]:
        """Return the folders that are refused with everything below, apart from some exceptions.

        They belong to the system, contain secrets and settings, belong to the daemon, or are
        refused by the configuration.
        """
        private = (home + b"/" + name for home in self.homes for name in PRIVATE_IN_HOME)
        return (*sorted(_SYSTEM_TREES), *sorted(private), *self.own, *self.refused)

    def policy_trees(self) -> tuple[bytes, ...]:
        """Return the folders that the policy refuses, with everything below."""
        return tuple(entry.pattern for entry in self.by_policy)

    def policy_ancestors(self) -> tuple[bytes, ...]:
        """Return the folders that contain a folder that the policy refuses."""
        return tuple(
            sorted({above for place in self.policy_trees() for above in ancestors(place)})
        )

    def refused_ancestors(self) -> tuple[bytes, ...]:
        """Return the folders that can never be a root because they contain a refused folder."""
        inside = (*self.homes, *self.own, *self.refused)
        return tuple(sorted({above for place in inside for above in ancestors(place)}))

    def _why_neither(self, path: bytes, homes: tuple[bytes, ...]) -> str | None:
        """Return why `path`, which is none of `homes`, can be neither a root nor a parent."""
        if inner_place(homes, path) is not None:
            return "it contains your home folder"
        if outer_place(self.own, path) is not None:
            return "it contains rootsd's own files"
        if b".git" in path.split(b"/"):
            return "it lies inside a .git folder"
        if not is_utf8(path):
            return "its path is not UTF-8, so clients cannot use it"
        if (outer := outer_place(self.refused, path)) is not None:
            return _refused_by_configuration(path, outer)
        if outer_place(self.allowed, path) is not None:
            return None
        return self._reserved(path, homes) or _why_private(path, homes)

    def _reserved(self, path: bytes, homes: tuple[bytes, ...]) -> str | None:
        if path in _PLACES_THEMSELVES:
            return "it is a place of the system, not a project"
        tree = b"/" + path[1:].partition(b"/")[0]
        if tree not in _SYSTEM_TREES:
            return None
        # A service user may have a home in /var/lib. But HOME=/usr must not open /usr.
        opened = (home for home in homes if home not in _SYSTEM_TREES or self._is_own(home))
        if outer_place((home for home in opened if home != b"/"), path) is not None:
            return None
        if any(path.startswith(at + b"/") for at in _OPEN_BELOW):
            return None
        return f"{text_of(tree)} belongs to the system"


def _why_private(path: bytes, homes: Iterable[bytes]) -> str | None:
    for home in homes:
        inside = home + b"/"
        if not path.startswith(inside):
            continue
        name = path[len(inside) :].partition(b"/")[0]
        open_places = (inside + place for place in _OPEN_IN_HOME)
        if name in PRIVATE_IN_HOME and outer_place(open_places, path) is None:
            return f"{text_of(inside + name)} contains secrets and settings"
    return None


def _refused_by_configuration(path: bytes, place: bytes) -> str:
    which = "it" if path == place else text_of(place)
    return f"the configuration refuses {which}"
