"""Keep on disk what the programs of a wall write outside of roots.

* *Kept* folders belong to all programs of one name, and stay. A copy-on-write folder is an overlay
  over the folder outside, with its changes in a layer here.
* *Private* folders belong to one start, and are removed at its end, or kept if worktrees lie in
  them; see `git.private_worktrees`.

Two overlays must not share a layer. So the first warden of a name makes the overlays, and the
others that run at the same time get copies of its mounts: a program sees at once what another one
of its name has installed. Each warden answers at a socket in the folder of the name, which no
program sees.

Programs fill these folders. So nothing here follows a link, and overlays take no attributes that
redirect them (`userxattr`). Source: Documentation/filesystems/overlayfs.rst.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from rootsd.wall.git.private_worktrees import flat_name
from rootsd.wall.git.wall_folders import RUN_PREFIX, has_ended
from rootsd.wall.kernel.removal import remove_tree
from rootsd.wall.kernel.skeleton import NO_PRIVILEGES, OPEN_TO_ALL
from rootsd.wall.system_calls import (
    Attribute,
    Depth,
    attach,
    clone_tree,
    closing,
    mount,
    open_path,
)

"""What all programs of a name keep, in the folder of the name."""
IN_USE, DOOR = b"/in-use", b"/door"
"""Locks. Each warden that uses the folders holds IN_USE; DOOR is held to build or remove them."""
FOLDERS = b"/folders"
"""Where the kept folders of a name are, each with a name of `flat_name`."""
UPPER = b"/upper"
"""Where a kept folder has what programs wrote."""
_WORK = b"/work"
COPIES, CACHES = b"/kept", b"/caches"
"""With the static engine: copies of files, and what tools cache, in the folder of a wall."""
_SOCKET = b"wall-"
_OVERLAY = b"overlay"
_ANSWER_TIMEOUT_S = 2
_MAX_TREES = 100  # in one message; the kernel takes 253
_MAX_MESSAGE = 1 << 18


class OwnTree(NamedTuple):
    """A detached tree, and how to mount it."""

    fd: int
    attributes: Attribute


class OwnStorage:
    """The kept folders of a name in `kept`, and the private ones of a start in `folder`.

    No other start uses `folder`. `memory` is a folder for overlays that the disk cannot hold.
    """

    def __init__(self, kept: bytes, folder: bytes, memory: bytes) -> None:
        self.listener: socket.socket | None = None
        """Readable when another warden of this name asks for mounts; see `serve`."""
        self._kept = kept
        self._folder = folder
        self._private = folder + b"/" + RUN_PREFIX + b"%d" % os.getpid()
        self._memory = memory
        self._lock = -1
        self._trees: dict[bytes, int] = {}  # copies from other wardens, detached
        self._places: dict[bytes, bytes] = {}  # where each overlay is mounted for the others
        self._made = 0
        self._is_known = True  # what other wardens have
        self._in_memory: list[bytes] = []
        self._read_only: list[bytes] = []
        self._why = ""

    @contextmanager
    def building(self) -> Iterator[None]:
        """Hold the door while a view is built, and answer other wardens from then on.

        Raises OSError, with EDQUOT if there is no room on the disk.
        """
        try:
            yield from self._building()
        except OSError as error:
            if error.errno == errno.ENOSPC:  # the kernel also says so of user namespaces
                raise OSError(errno.EDQUOT, "the disk is full") from error
            raise

    def _building(self) -> Iterator[None]:
        for folder in (self._kept, self._kept + FOLDERS, self._memory, self._private):
            os.makedirs(folder, 0o700, exist_ok=True)
        with closing(_open_lock(self._kept + DOOR)) as door:
            fcntl.flock(door, fcntl.LOCK_EX)
            self._lock = _open_lock(self._kept + IN_USE)
            fcntl.flock(self._lock, fcntl.LOCK_SH)
            self._ask()
            yield
            for tree in self._trees.values():
                os.close(tree)
            self._trees.clear()
            self._listen()

    def notes(self) -> Iterator[str]:
        """Yield what could not be kept, for people."""
        for paths, what in (
            (self._in_memory, "changes are in memory and gone at the end"),
            (self._read_only, "it is read-only inside"),
        ):
            if paths:
                shown = ", ".join(sorted(map(os.fsdecode, paths)))
                yield f"{shown}: {what} ({self._why})"

    # Kept folders

    def overlay(self, path: bytes) -> OwnTree:
        """Return the detached tree of a folder with the changes of programs.

        If the disk cannot hold the changes, they are in memory. If there is no overlay at all, the
        tree is read-only. Raises OSError.
        """
        self._made += 1
        place = self._memory + b"/%d" % self._made
        os.mkdir(place)
        if (tree := self._trees.pop(path, -1)) >= 0:
            with closing(tree), closing(open_path(place)) as target:
                attach(tree, target)
        elif not self._mount_overlay(path, place):
            self._read_only.append(path)
            with closing(open_path(path)) as found:
                return OwnTree(
                    clone_tree(found, Depth.ALL), Attribute.NO_DEVICES | Attribute.READ_ONLY
                )
        if path not in self._in_memory:  # another warden would not say that
            self._places[path] = place
        with closing(open_path(place)) as mounted:
            return OwnTree(clone_tree(mounted, Depth.ONE), Attribute.NO_DEVICES)

    def _mount_overlay(self, path: bytes, place: bytes) -> bool:
        layers = [place + b"-layer"]
        if self._is_known:
            layers.insert(0, self._place_of(path))
        for layer in layers:
            _make_layer(layer + UPPER, path)
            os.makedirs(layer + _WORK, 0o700, exist_ok=True)
            options = (_escape(path), _escape(layer + UPPER), _escape(layer + _WORK))
            data = b"lowerdir=%s,upperdir=%s,workdir=%s,userxattr" % options
            try:
                mount(_OVERLAY, place, _OVERLAY, NO_PRIVILEGES, data)
            except OSError as error:
                self._why = f"overlay: {os.strerror(error.errno or 0)}"
                continue
            os.chmod(layer + _WORK + _WORK, 0o700)  # the kernel forbids all, so `rm -r` would fail
            if layer is layers[-1]:
                self._in_memory.append(path)
            return True
        return False

    def kept_folder(self, path: bytes) -> bytes:
        """Return a folder for what programs make at a path at which nothing is shown.

        If a folder is shown there later, this has its changes.
        """
        folder = self._place_of(path) + UPPER
        _make_layer(folder, path)
        return folder

    def kept_copy(self, file: bytes) -> bytes:
        """Return a copy of a file, which is made once."""
        copy = self._place_of(file)
        if not os.path.exists(copy):
            import shutil  # noqa: PLC0415 - only --keep with a file needs it

            shutil.copyfile(file, copy + b".new", follow_symlinks=False)
            os.chmod(copy + b".new", 0o600)
            os.rename(copy + b".new", copy)
        return copy

    def _place_of(self, path: bytes) -> bytes:
        return self._kept + FOLDERS + b"/" + flat_name(path)

    # Other wardens of this name

    def _ask(self) -> None:
        """Take copies of the mounts of the other wardens."""
        with closing(os.open(self._kept, os.O_PATH)) as folder:
            for name in os.listdir(self._kept):
                if not name.startswith(_SOCKET):
                    continue
                try:  # not by the path: it may be too long for a socket
                    self._ask_one(b"/proc/self/fd/%d/%s" % (folder, name))
                except (ConnectionError, FileNotFoundError):  # it has ended, perhaps just now
                    with suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=folder)
                except OSError as error:
                    self._is_known = False
                    self._why = f"another program of this name does not answer ({error})"

    def _ask_one(self, address: bytes) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
            channel.settimeout(_ANSWER_TIMEOUT_S)
            channel.connect(address)
            while True:
                message, trees, _, _ = socket.recv_fds(channel, _MAX_MESSAGE, _MAX_TREES)
                if not message:
                    return
                for path, tree in zip(message.split(b"\0"), trees, strict=True):
                    if path in self._trees:
                        os.close(tree)
                    else:
                        self._trees[path] = tree

    def _listen(self) -> None:
        name = _SOCKET + b"%d" % os.getpid()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        with closing(os.open(self._kept, os.O_PATH)) as folder:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            listener.bind(b"/proc/self/fd/%d/%s" % (folder, name))
        listener.listen()
        self.listener = listener

    def serve(self) -> None:
        """Send copies of the mounts to the wardens that have asked."""
        while self.listener is not None:
            try:
                channel = self.listener.accept()[0]
            except BlockingIOError:
                return
            with channel, suppress(OSError):  # it does without them
                channel.settimeout(_ANSWER_TIMEOUT_S)
                paths = list(self._places)
                for first in range(0, len(paths), _MAX_TREES):
                    self._send(channel, paths[first : first + _MAX_TREES])

    def _send(self, channel: socket.socket, paths: list[bytes]) -> None:
        trees: list[int] = []
        try:
            for path in paths:
                with closing(open_path(self._places[path])) as mounted:
                    trees.append(clone_tree(mounted, Depth.ONE))
            socket.send_fds(channel, [b"\0".join(paths)], trees)
        finally:
            for tree in trees:
                os.close(tree)

    # Private folders

    def private_folder(self, path: bytes) -> bytes:
        """Return a new folder that is removed at the end."""
        folder = self._private + b"/" + flat_name(path)
        os.mkdir(folder)
        os.chmod(folder, 0o1777 if path in OPEN_TO_ALL else 0o700)
        return folder

    def close(self) -> None:
        """Remove the private folders. The mounts must be gone."""
        if self.listener is not None:
            with suppress(OSError):
                os.unlink(self._kept + b"/" + _SOCKET + b"%d" % os.getpid())
            self.listener.close()
        remove_ended(self._folder)
        if self._lock >= 0:
            os.close(self._lock)


def remove_ended(folder: bytes) -> None:
    """Remove the private folders of starts that have ended, as `remove_private`.

    Without a report, nobody has looked yet for what must be kept. That comes first.
    """
    if has_ended(folder):
        remove_private(folder)


def remove_private(folder: bytes) -> None:
    """Remove the private folders of starts that have ended. What is left goes at the next start.

    `folder` is that of a wall whose lock this process holds.
    """
    with suppress(OSError), closing(os.open(folder, os.O_PATH | os.O_DIRECTORY)) as above:
        for name in os.listdir(folder):
            if name.startswith(RUN_PREFIX):
                with suppress(OSError):
                    remove_tree(os.fsdecode(name), above)


def _make_layer(folder: bytes, path: bytes) -> None:
    """Make a folder for what programs write at `path`, with a hidden file if programs lie there.

    To upgrade a package, pip renames a folder that has nothing but the programs of this package.
    A mount cannot be renamed.
    """
    os.makedirs(folder, 0o700, exist_ok=True)
    if os.path.basename(path) == b"bin":
        with suppress(FileExistsError):
            os.close(os.open(folder + b"/.kept", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _open_lock(path: bytes) -> int:
    return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _escape(path: bytes) -> bytes:
    r"""Return `path` as an option of overlayfs, where `,` and `:` separate."""
    return path.replace(b"\\", b"\\\\").replace(b",", b"\\,").replace(b":", b"\\:")
