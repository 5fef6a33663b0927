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

from rootsd.core.access import Access
from rootsd.core.paths import ancestors, contains
from rootsd.core.quick_tuple import NamedTuple
from rootsd.core.record import Hex, Text


class ViewEntryKind(Enum):
    """How a path of the base appears to the program."""

    READ = "read-only"
    WRITE = "writable"
    SOCKET = "socket"
    DEVICE = "device"
    CACHE = "copy-on-write"
    TOOLS = "copy-on-write tools"
    """As a cache, but an engine without mounts shows the one outside."""
    KEPT = "kept copy"
    """A file or folder with changes that are kept for all confined programs of the same name."""
    STATE = "kept folder"
    """A folder for all confined programs of the same name. It is `target` outside, if given."""
    PRIVATE = "private"
    """An empty folder that only the confined programs see. It is removed when they end."""
    PRIVATE_FILE = "private file"
    """A file in a private folder, unless the view has something else at this path."""
    COPY = "copy"
    """A read-only file with other content than the one outside. That one stays closed."""
    FOLDER = "mount point"
    EMPTY = "empty folder"
    """A folder in which nothing can be made, unless the view has something at this path."""
    LINK = "link"
    HIDDEN = "hidden"
    """An empty file or folder over something that would be visible otherwise."""


class ViewEntry(NamedTuple):
    """One path of the base, and why it is there.

    `target` is the target of a link, or the path of a kept folder or a socket outside. `content`
    is the content of a private file or a copy.
    """

    path: bytes
    kind: ViewEntryKind
    reason: str
    target: Text = b""
    content: Hex = b""


SHOWN_FROM_OUTSIDE = frozenset(
    (
        ViewEntryKind.READ, ViewEntryKind.WRITE, ViewEntryKind.CACHE, ViewEntryKind.TOOLS,
        ViewEntryKind.KEPT, ViewEntryKind.SOCKET,
    )
)  # fmt: skip
"""The entries that show what a person has. The others show nothing, or what programs made."""


class FolderIdentity(NamedTuple):
    """The facts that distinguish a folder from another one at its path.

    It is the part of the approved identity that a warden compares, in a form that lean programs
    can load.
    """

    inode: int
    """The number of the inode, or 0 if it does not count on the file system."""
    owner: int
    """The user id of the owner."""
    handle: Hex | None
    """The kernel's file handle in hexadecimal, or null."""
    born_ns: int | None
    """The birth time in nanoseconds since 1970, or null."""
    device: int | None = None
    """The device number of the file system if the identity is bound to its mount, else null. It is
    the same in each mount namespace, and the numbers of mounts are not.
    """

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
    """An approved root that a warden shows to its program."""

    path: bytes
    """Its canonical path."""
    access: Access
    """What the program may do in it."""
    identity: FolderIdentity | None = None
    """The identity of the folder that was approved, or null if the sender does not know it."""
    denied: frozenset[bytes] = frozenset()
    """The folders inside to mask. None of them lies inside another."""
    shared_git: bytes | None = None
    """The checkout whose Git directory the root uses, or null if it may not be shown. The warden
    checks that this directory points back to the root.
    """
    name: str = ""
    """The name under which MCP clients get it."""
    is_withheld: bool = False
    """Whether MCP clients do not get the root, because it holds a denied project."""
    shared_git_identity: FolderIdentity | None = None
    """The identity of that checkout, or null if the sender does not know it."""
    git_access: str = ""
    """Whether the root may use a Git directory outside, and why, for people. Empty if it uses
    none.
    """
    ends_ns: int | None = None
    """The end of its approval, in nanoseconds since the machine started (CLOCK_BOOTTIME), or null.
    While no daemon answers, the warden takes the root away then.
    """

    whole: bytes | None = None
    """The approved root in which this folder lies, for a program that sees only this folder of it,
    or null for a root. The daemon never sends it.
    """

    def with_masks(self, paths: Iterable[bytes]) -> ConfinedRoot:
        """Return the root with those of the `paths` masked that lie in it."""
        inside = frozenset(path for path in paths if contains(self.path, path))
        return self._replace(denied=self.denied | inside) if inside else self


def roots_inside(
    roots: Iterable[ConfinedRoot], hidden: Iterable[bytes], below: bytes
) -> tuple[ConfinedRoot, ...]:
    """Return the roots as programs see them: with masks for what is `hidden` in them.

    Of the root around the folder `below`, they see only that folder. Its git directory is the
    root's, so they do not see it.
    """
    masked = tuple(root.with_masks(hidden) for root in roots)
    around = [root for root in masked if below and contains(root.path, below)]
    if not around:
        return masked
    inner = max(around, key=lambda root: len(root.path))
    denied = frozenset(
        path for path in inner.denied if contains(path, below) or contains(below, path)
    )
    part = inner._replace(
        path=below, denied=denied, shared_git=None, shared_git_identity=None, git_access="",
        whole=inner.path,
    )  # fmt: skip
    return (*(root for root in masked if root not in around), part)


def only_at(below: bytes, roots: Iterable[ConfinedRoot]) -> tuple[ConfinedRoot, ...]:
    """Return those of the roots that programs may see which are the folder `below`.

    Return all if `below` is empty.
    """
    return tuple(root for root in roots if below in (b"", root.path))


class RemovalReason(Enum):
    """Why a session no longer gets a root."""

    DENIED = "denied"
    ENDED = "ended"
    """The time or the session of its approval has ended."""
    LAPSED = "lapsed"
    """Another folder is at its path, or something else ended the approval by itself."""
    UNDECIDED = "undecided"
    """Nothing approves it any more."""
    MISSING = "missing"
    """Its folder is not on the disk."""
    OUT_OF_SCOPE = "out-of-scope"
    """It is approved, but not in the scope of the session."""


class RemovedRoot(NamedTuple):
    """A root that a session no longer gets."""

    path: bytes
    """Its canonical path."""
    name: str
    """The name under which MCP clients got it."""
    why: RemovalReason
    """Why it is gone."""


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

    `identity` is that of the folder, or if there is a `checkout`, that of the checkout.
    """

    path: bytes
    access: Access
    purpose: MountPurpose = MountPurpose.ROOT
    identity: FolderIdentity | None = None
    masks: tuple[Mask, ...] = ()
    owner: bytes = b""
    """The root that uses a shared git directory. That directory must link back to the root."""
    checkout: bytes = b""
    """The checkout that a shared git directory lies in, or the root that a folder lies in."""
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
            checkout=root.whole or b"",
        )
        for path, root in shown.items()
    }
    for path in sorted(mounts, key=_depth):
        mounts[path] = mounts[path]._replace(within=_within(shown[path], mounts))
    denied = [path for root in known.values() for path in root.denied]
    for root in sorted(shown.values(), key=lambda each: each.access is Access.READ):
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
    is_protected = root.access is Access.READ or (
        root.shared_git is not None and contains(outer.path, root.shared_git)
    )
    is_same = outer.access is root.access and not mounts[root.path].masks
    is_masked = any(contains(mask.path, root.path) for mask in outer.masks)
    return outer.path if is_protected and is_same and not is_masked else b""


def _holder(path: bytes, roots: Container[bytes]) -> bytes | None:
    return next((above for above in ancestors(path) if above in roots), None)


def _depth(path: bytes) -> tuple[int, bytes]:
    return path.count(b"/"), path
