"""Plan the mounts of a confined program: what it sees, and what changes between two views.

A view has two parts. The *base* is a list of `ViewEntry`: system files, devices, caches, and
private folders. While the program runs, only the denied folders in it change. The *roots* are the
approved folders in the scope of the session. They change while the program runs.

`desired_mounts` turns roots into mounts: one for each root, with the denied folders to mask inside
it. Where a root inside another one is visible in the same way, the mount says so: an engine may
leave it out, and then programs can remove the folder, as `git worktree remove` does.

`base_masks` returns what denied folders have in the base.

`difference` returns which mounts to remove first and which to add then. Removing a mount also
removes the mounts inside it, so these are added again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import NamedTuple

from rootsd.core.paths import ancestors, contains


class ViewEntryKind(Enum):
    """How a path of the base appears to the program."""

    READ = "read-only"
    WRITE = "writable"
    SOCKET = "socket"
    DEVICE = "device"
    CACHE = "copy-on-write"
    KEPT = "kept copy"
    """A file or folder with changes that are kept for all confined programs of the same name."""
    STATE = "kept folder"
    """A folder for all confined programs of the same name. Outside, its path is `target`."""
    PRIVATE = "private"
    """An empty folder that only the confined programs see. It is removed when they end."""
    PRIVATE_FILE = "private file"
    """A file in a private folder, unless the view has something else at this path."""
    FOLDER = "mount point"
    LINK = "link"
    HIDDEN = "hidden"
    """An empty file or folder over something that would be visible otherwise."""


class ViewEntry(NamedTuple):
    """One path of the base, and why it is there.

    `target` is the target of a link, or the path of a kept folder or a socket outside. `content`
    is the content of a private file.
    """

    path: bytes
    kind: ViewEntryKind
    reason: str
    target: bytes = b""
    content: bytes = b""


SHOWN_FROM_OUTSIDE = frozenset(
    (
        ViewEntryKind.READ, ViewEntryKind.WRITE, ViewEntryKind.CACHE, ViewEntryKind.KEPT,
        ViewEntryKind.SOCKET,
    )
)  # fmt: skip
"""The entries that show what a person has. The others show nothing, or what programs made."""


class MountAccess(Enum):
    """What a program may do in a root."""

    READ = "read"
    READ_WRITE = "read-write"


class FolderIdentity(NamedTuple):
    """The facts that distinguish a folder from another one at its path.

    It is a part of `core.model.Identity`. That one is a struct, and `msgspec` takes too long to
    load for a warden. A fact that does not count on a file system is missing, and `inode` is 0.
    `device` is the number of the file system, if the identity is bound to a mount. It is the same
    in each mount namespace, and the numbers of mounts are not.
    """

    inode: int
    owner: int
    handle: bytes | None
    born_ns: int | None
    device: int | None = None

    def covers(self, seen: FolderIdentity) -> bool:
        """Return whether this approved folder is `seen`, whose facts are all known.

        The result is False if there are only inode numbers to compare.
        """
        if self.owner != seen.owner or self.inode not in (0, seen.inode):
            return False
        if self.device not in (None, seen.device):
            return False
        if self.handle is not None and seen.handle is not None:
            return self.handle == seen.handle
        if self.born_ns is not None:
            return self.born_ns == seen.born_ns
        return self.device is not None


GIT_OUTSIDE_OF_CHECKOUT = "it lies outside of its checkout"
"""Why the git directory of a root is not shown although its checkout may be."""


class ConfinedRoot(NamedTuple):
    """An approved root, as the owner of a wall requests it.

    * `path`: a canonical path.
    * `identity`: the folder that was approved, or None if the sender does not know it.
    * `denied`: the folders inside the root that no program may see.
    * `shared_git`: the checkout whose git directory the root (a worktree or submodule) may use.
    * `shared_git_identity`: that checkout, or None if the sender does not know it.
    * `git_access`: whether the root may use a git directory outside, and why, for people.
    * `name`: the name under which MCP clients get the root.
    * `is_withheld`: whether MCP clients do not get the root, because of a denied project in it.
    * `ends_ns`: the end of the approval in ns since the machine started, or None. The daemon takes
      the root away then, and while no daemon answers, the warden does.
    """

    path: bytes
    access: MountAccess
    identity: FolderIdentity | None = None
    denied: frozenset[bytes] = frozenset()
    shared_git: bytes | None = None
    name: str = ""
    is_withheld: bool = False
    shared_git_identity: FolderIdentity | None = None
    git_access: str = ""
    ends_ns: int | None = None


class MountPurpose(Enum):
    """Why a folder is mounted."""

    ROOT = "approved root"
    SHARED_GIT = "git directory of an approved worktree or submodule"


class Mask(NamedTuple):
    """A denied folder inside a mount. `inner` are the mount points that it must still have."""

    path: bytes
    inner: tuple[bytes, ...] = ()


class DesiredMount(NamedTuple):
    """One folder that a program must see.

    `identity` is that of the folder, or for a shared git directory, that of its `checkout`.
    """

    path: bytes
    access: MountAccess
    purpose: MountPurpose = MountPurpose.ROOT
    identity: FolderIdentity | None = None
    masks: tuple[Mask, ...] = ()
    owner: bytes = b""
    """The root that uses a shared git directory. That directory must link back to the root."""
    checkout: bytes = b""
    """The checkout that a shared git directory lies in."""
    within: bytes = b""
    """The mount in which programs see the same without this one."""


class ViewChange(NamedTuple):
    """The mounts to remove first, innermost first, and the mounts to add then, outermost first."""

    remove: tuple[bytes, ...]
    add: tuple[DesiredMount, ...]


def desired_mounts(
    roots: Iterable[ConfinedRoot], git_directories: Mapping[bytes, bytes]
) -> dict[bytes, DesiredMount]:
    """Return the mounts for `roots`, by path.

    `git_directories` has, for a root whose git directory is outside of it, that directory. It gets
    a mount only if `shared_git` allows it and no denial covers it. It needs no mount of its own if
    it is inside another root. If several roots share one, it is writable if one of them is.
    """
    known = {root.path: root for root in roots}
    shown = {
        path: root
        for path, root in known.items()
        if not any(contains(denied, path) for denied in root.denied)
    }
    mounts = {
        path: DesiredMount(
            path,
            root.access,
            identity=root.identity,
            masks=_masks(root, shown),
        )
        for path, root in shown.items()
    }
    for path in sorted(mounts, key=_depth):
        mounts[path] = mounts[path]._replace(within=_within(shown[path], mounts))
    denied = [path for root in known.values() for path in root.denied]
    for root in sorted(shown.values(), key=lambda each: each.access is MountAccess.READ):
        git = git_directories.get(root.path)
        if git is None or root.shared_git is None or not contains(root.shared_git, git):
            continue
        if any(contains(path, git) for path in denied):
            continue
        if git in mounts or _holder(git, shown) is not None:
            continue
        mounts[git] = DesiredMount(
            git,
            root.access,
            MountPurpose.SHARED_GIT,
            root.shared_git_identity,
            owner=root.path,
            checkout=root.shared_git,
        )
    return mounts


def base_masks(
    sources: Mapping[bytes, bytes],
    others: Container[bytes],
    denied: Iterable[bytes],
    roots: Iterable[bytes],
) -> tuple[Mask, ...]:
    """Return what to mask in the base, sorted. No mask is inside another.

    `sources` has, for the path of each entry that shows something from outside, its real path
    there. An entry at, or inside, one of the `denied` folders is masked as a whole. `others` are
    the paths of the other entries: what is below them is not from outside. `roots` are the mount
    points that the masks must still have.
    """
    closed = frozenset(denied)
    found = {
        path
        for path, source in sources.items()
        if source in closed or not closed.isdisjoint(ancestors(source))
    }
    entries: dict[bytes, list[bytes]] = {}
    for path, source in sources.items():
        entries.setdefault(source, []).append(path)
    for folder in closed:
        for above in ancestors(folder):
            for path in entries.get(above, ()):
                place = path.rstrip(b"/") + b"/" + folder[len(above) :].lstrip(b"/")
                way = (place, *ancestors(place))
                if next(each for each in way if each in sources or each in others) == path:
                    found.add(place)
    return _outermost_masks(found, roots)


def difference(
    current: Mapping[bytes, DesiredMount], desired: Mapping[bytes, DesiredMount]
) -> ViewChange:
    """Return the changes that turn `current` into `desired`."""
    removed = {path for path, mount in current.items() if desired.get(path) != mount}
    # Removing a mount also removes the mounts inside it, and a new mount hides them.
    outer = removed | (desired.keys() - current.keys())
    removed |= {path for path in current if any(above in outer for above in ancestors(path))}
    kept = current.keys() - removed
    return ViewChange(
        tuple(sorted(removed, key=_depth, reverse=True)),
        tuple(
            sorted(
                (mount for path, mount in desired.items() if path not in kept),
                key=lambda mount: _depth(mount.path),
            )
        ),
    )


def _masks(root: ConfinedRoot, roots: Mapping[bytes, ConfinedRoot]) -> tuple[Mask, ...]:
    inside = {path for path in root.denied if path != root.path and contains(root.path, path)}
    return _outermost_masks(inside, roots)


def _outermost_masks(paths: AbstractSet[bytes], roots: Iterable[bytes]) -> tuple[Mask, ...]:
    """Return a mask for each path that is not inside another one, sorted."""
    inner: dict[bytes, list[bytes]] = {
        path: [] for path in sorted(paths) if paths.isdisjoint(ancestors(path))
    }
    for root in roots if inner else ():
        for above in ancestors(root):
            if above in inner:
                inner[above].append(root)
    return tuple(Mask(path, tuple(sorted(roots))) for path, roots in inner.items())


def _within(root: ConfinedRoot, mounts: Mapping[bytes, DesiredMount]) -> bytes:
    """Return the mount in which programs see the same of `root` without a mount of its own.

    A writable root with a git directory of its own needs its mount for its protections. That of a
    linked worktree or a submodule is in its checkout, and protected with that one.
    """
    above = _holder(root.path, mounts)
    if above is None:
        return b""
    outer = mounts[mounts[above].within or above]
    is_protected = root.access is MountAccess.READ or (
        root.shared_git is not None and contains(outer.path, root.shared_git)
    )
    is_same = outer.access is root.access and not mounts[root.path].masks
    is_masked = any(contains(mask.path, root.path) for mask in outer.masks)
    return outer.path if is_protected and is_same and not is_masked else b""


def _holder(path: bytes, roots: Container[bytes]) -> bytes | None:
    return next((above for above in ancestors(path) if above in roots), None)


def _depth(path: bytes) -> tuple[int, bytes]:
    return path.count(b"/"), path
