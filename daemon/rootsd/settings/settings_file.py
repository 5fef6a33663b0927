"""Read and replace a client's settings file, so that no change of another program is lost.

A client that rereads and rewrites its settings must never read a text that is not the newest one:
it would write that text back, and lose what it wrote in between. So nobody may read ours until it
is known that it was made from the newest text:

1. The new text goes to a file beside, with a *write lease* on it (fcntl(2), F_SETLEASE): whoever
   opens it waits until the lease ends.
2. The names of both files are exchanged in one step.
3. Whoever opens the settings waits now, so what came out is the newest text, once nobody writes in
   it any more. If it is not the text that was edited, it is edited again, and replaces ours.
4. The lease ends.

A reader sees one whole text or the other, a full disk leaves the file as it was, and so does a
newer text that cannot be edited. The kernel ends the leases of a process that is killed.

Without leases (macOS, some network file systems), what came out is put back if it is not the text
that was edited, and a client may read ours for some microseconds.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import secrets
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path

from msgspec import Struct

from rootsd.core.errors import RootsdError
from rootsd.files.private_files import display_path, sync, sync_path
from rootsd.files.repository_folder import repository_around

MAX_BYTES = 64 << 20
_MAX_TRIES = 20
_WRITER_WAIT_S = 2.0  # for a program that writes in the file
_READER_WAIT_S = 0.2  # for one that looks at each new file
_POLL_S = 0.001
_AT_FDCWD = -100
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2), and RENAME_SWAP of renameatx_np(2)
_UNSUPPORTED = frozenset((errno.ENOSYS, errno.EINVAL, errno.ENOTSUP))
_TEMPORARY = ".rootsd-"


Edit = Callable[[str | None], str | None]


class SettingsUnusable(RootsdError):
    """A settings file is not written. The message says why."""


class SettingsFile(Struct, frozen=True):
    """The settings file of a client at `path`.

    `is_accepted` says that a person accepted changes of a file that is a symlink or in a
    repository. `consent_command` is the command that accepts them.
    """

    path: Path
    is_accepted: bool = False
    consent_command: str = ""

    def folder(self) -> Path:
        """Return the folder that holds the file itself, with all symlinks resolved."""
        return Path(os.path.realpath(self.path)).parent

    def special_reason(self) -> str | None:
        """Return why changes need a person's consent: a symlink, or version control."""
        shown = display_path(self.path)
        real = Path(os.path.realpath(self.path))
        if self.path.is_symlink():
            return f"{shown} is a symlink to {display_path(real)}"
        if (repository := repository_around(real.parent)) is not None:
            return f"{shown} is in the repository {display_path(repository)}"
        return None

    def read(self) -> str | None:
        """Return the text, or None if the file is missing. Raises SettingsUnusable."""
        try:
            return _read(Path(os.path.realpath(self.path)))
        except OSError as error:
            raise self._unusable(error) from error

    def ensure_writable(self) -> None:
        """Raise SettingsUnusable if `update` could not write the file, or make its folder."""
        self._ensure_accepted()
        self.read()
        folder = self.folder()
        while not os.path.lexists(folder):
            folder = folder.parent
        if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            shown = display_path(folder)
            raise SettingsUnusable(
                f"{display_path(self.path)} cannot be changed: {shown} is not a folder that you"
                " can write to",
                f"ls -ld {shown}",
            )

    def update(self, change: Edit) -> None:
        """Replace the text with what `change` returns for it. None stands for no file.

        `change` may be called several times. Raises SettingsUnusable, and what `change` raises.
        """
        self._ensure_accepted()
        real = Path(os.path.realpath(self.path))
        try:
            self._update(real, change)
        except OSError as error:
            raise self._unusable(error) from error

    def _ensure_accepted(self) -> None:
        if not self.is_accepted and (reason := self.special_reason()):
            raise SettingsUnusable(reason, self.consent_command)

    def _unusable(self, error: OSError) -> SettingsUnusable:
        shown = display_path(self.path)
        why = error.strerror or str(error)
        return SettingsUnusable(f"{shown} cannot be changed: {why}", f"ls -l {shown}")

    def _update(self, real: Path, change: Edit) -> None:
        for _ in range(_MAX_TRIES):
            there = _read(real)
            text = change(there)
            try:
                if text == there or _replace(real, there, text, change):
                    return
            except FileNotFoundError:  # somebody else removed the file
                if not real.parent.is_dir():
                    raise
        raise SettingsUnusable(
            f"{display_path(self.path)} keeps changing", "close the client, then try again"
        )


class _LeaseKind(Enum):
    """The programs that a lease keeps waiting: those that write, or all that open the file."""

    WRITERS = "F_RDLCK"
    EVERYBODY = "F_WRLCK"


class _Lease(Enum):
    """What became of the wish for a lease."""

    TAKEN = "taken"
    PREVENTED = "others have the file open"
    UNSUPPORTED = "the system or the file system has no leases"


class _OpenFile:
    """An open settings file, and perhaps a lease on it."""

    def __init__(self, file: Path, fd: int) -> None:
        self._shown = display_path(file)
        self._fd = fd
        self._kind: _LeaseKind | None = None

    def keep_everybody_waiting(self) -> bool:
        """Take a write lease, once nobody else has the file open.

        Return whether that was possible.
        """
        return self._take_lease(_LeaseKind.EVERYBODY, _READER_WAIT_S) is _Lease.TAKEN

    def keep_writers_waiting(self) -> None:
        """Take a read lease, if that is possible, once those who write in the file are done.

        Raises SettingsUnusable if they do not close it.
        """
        if self._take_lease(_LeaseKind.WRITERS, _WRITER_WAIT_S) is _Lease.PREVENTED:
            raise SettingsUnusable(
                f"another program keeps writing to {self._shown}",
                "close the client, then try again",
            )

    def let_writers_write(self) -> None:
        """Let those write who wait, and keep the next ones waiting.

        Raises SettingsUnusable if they do not close the file.
        """
        before = _last_write(self._fd)
        fcntl.fcntl(self._fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        # A new lease would stop them again if they had not opened the file yet.
        deadline = time.monotonic() + _WRITER_WAIT_S
        while _last_write(self._fd) == before and time.monotonic() < deadline:
            _pause()
        self.keep_writers_waiting()

    def _take_lease(self, kind: _LeaseKind, wait_s: float) -> _Lease:
        if not hasattr(fcntl, "F_SETLEASE"):
            return _Lease.UNSUPPORTED
        # The signal about somebody who waits would end this process. This one has no effect.
        fcntl.fcntl(self._fd, fcntl.F_SETSIG, signal.SIGURG)
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.fcntl(self._fd, fcntl.F_SETLEASE, getattr(fcntl, kind.value))
            except BlockingIOError:
                if time.monotonic() > deadline:
                    return _Lease.PREVENTED
            except OSError:
                return _Lease.UNSUPPORTED
            else:
                self._kind = kind
                return _Lease.TAKEN
            _pause()

    def is_whole(self) -> bool:
        """Return whether nobody waits for the end of the lease."""
        if self._kind is None:
            return True
        return bool(fcntl.fcntl(self._fd, fcntl.F_GETLEASE) == getattr(fcntl, self._kind.value))

    def is_at(self, file: Path) -> bool:
        """Return whether `file` is a name of this file."""
        with suppress(FileNotFoundError):
            return os.path.samestat(file.lstat(), os.fstat(self._fd))
        return False

    def read(self) -> bytes:
        """Return the content, which is cut after one byte more than the limit."""
        content = b""
        while more := os.pread(self._fd, MAX_BYTES + 1 - len(content), len(content)):
            content += more
        return content

    def overwrite(self, content: bytes) -> None:
        """Replace the content. A full disk changes nothing. Raises OSError."""
        size = os.fstat(self._fd).st_size
        try:
            os.posix_fallocate(self._fd, 0, max(len(content), 1))
        except OSError:
            os.ftruncate(self._fd, size)
            raise
        rest = memoryview(content)
        while rest:
            rest = rest[os.pwrite(self._fd, rest, len(content) - len(rest)) :]
        os.ftruncate(self._fd, len(content))

    def save(self) -> None:
        """Wait until the content is on the disk."""
        sync(self._fd)

    def metadata(self) -> os.stat_result:
        """Return the result of fstat(2)."""
        return os.fstat(self._fd)


@contextmanager
def _opened(file: Path, flags: int = os.O_RDONLY) -> Iterator[_OpenFile]:
    """Open a file, which ends with the lease on it. Raises OSError."""
    fd = _open(file, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        yield _OpenFile(file, fd)
    finally:
        os.close(fd)


def _open(file: Path, flags: int) -> int:
    """Open a file at once, a FIFO too, but wait for the lease of another process."""
    deadline = time.monotonic() + _WRITER_WAIT_S
    while True:
        try:
            return os.open(file, flags)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
        _pause()


def _last_write(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_mtime_ns, found.st_size


def _pause() -> None:
    threading.Event().wait(_POLL_S)  # nothing tells when another process closes a file


def _read(file: Path) -> str | None:
    """Return the whole text, once nobody writes in the file; None if it is missing."""
    try:
        with _opened(file) as found:
            found.keep_writers_waiting()
            return _text_in(found, file)
    except FileNotFoundError:
        return None


def _text_in(found: _OpenFile, file: Path) -> str:
    metadata, shown = found.metadata(), display_path(file)
    if not stat.S_ISREG(metadata.st_mode) or metadata.st_uid != os.geteuid():
        raise SettingsUnusable(f"{shown} is not a file of yours", f"ls -l {shown}")
    if not metadata.st_mode & stat.S_IWUSR:
        raise SettingsUnusable(f"{shown} is read-only", f"chmod u+w {shown}")
    raw = found.read()
    if len(raw) > MAX_BYTES:
        raise SettingsUnusable(f"{shown} is too large", f"ls -l {shown}")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SettingsUnusable(f"{shown} is not UTF-8", f"file {shown}") from error


def _replace(file: Path, there: str | None, text: str | None, change: Edit) -> bool:
    """Put `text`, or what `change` returns for a newer text, in place of `there`.

    Return whether it is there now. Otherwise the newest text of the others is at `file`. Raises
    OSError, and what `change` raises.
    """
    if text is None:
        return _take_away(file, there)
    if there is None:
        return _create(file, text)
    return _exchange(file, there, text, change)


def _exchange(file: Path, there: str, text: str, change: Edit) -> bool:
    """Exchange `file` with a new file that has `text`; see `_replace`."""
    new = _write_beside(file, text, stat.S_IMODE(file.stat().st_mode))
    try:
        with _opened(new, os.O_RDWR) as ours:
            if ours.keep_everybody_waiting():
                _swap(new, file)
                return _edit_newest(ours, new, file, there, change)
            _swap(new, file)
            return _is_expected(ours, new, file, there)
    finally:
        with suppress(FileNotFoundError):
            new.unlink()
        sync_path(file.parent)


def _edit_newest(ours: _OpenFile, new: Path, file: Path, there: str, change: Edit) -> bool:
    """Edit what came out at `new` until it is the newest text, while others wait; see `_replace`.

    Those who found the old file before the exchange may still write in it.
    """
    with _opened(new) as theirs:
        wait = theirs.keep_writers_waiting
        while True:
            try:
                wait()
                newest = _text_in(theirs, file)
                if newest != there:
                    ours.overwrite(newest.encode("utf-8"))
            except (OSError, SettingsUnusable):  # a full disk, or no text that can be edited
                _put_back(ours, new, file)
                raise
            if newest != there:
                text = change(newest)
                if text is None:
                    return False
                ours.overwrite(text.encode("utf-8"))
                ours.save()
                there = newest
            sync_path(file.parent)
            if theirs.is_whole():
                return ours.is_at(file)
            wait = theirs.let_writers_write


def _is_expected(ours: _OpenFile, new: Path, file: Path, there: str) -> bool:
    """Return whether `there` came out at `new`. Otherwise what came out is put back."""
    if new.read_bytes() == there.encode("utf-8"):
        return True
    _put_back(ours, new, file)
    return False


def _put_back(ours: _OpenFile, new: Path, file: Path) -> None:
    """Exchange names until ours came out at `new`. A full disk does not prevent that.

    The last other file that came out was put there by the others, so it is the newest.
    """
    for _ in range(_MAX_TRIES):
        _swap(new, file)
        if ours.is_at(new):
            return


def _create(file: Path, text: str) -> bool:
    """Put `text` at `file` if nothing is there; see `_replace`."""
    new = _write_beside(file, text, 0o600)
    try:
        os.link(new, file)
    except FileExistsError:
        return False
    finally:
        new.unlink()
    sync_path(file.parent)
    return True


def _take_away(file: Path, there: str | None) -> bool:
    """Remove `file`; see `_replace`."""
    aside = file.with_name(f"{file.name}{_TEMPORARY}{secrets.token_hex(4)}")
    with _opened(file) as theirs:
        theirs.keep_writers_waiting()
        file.rename(aside)
        is_expected = (
            theirs.is_at(aside)
            and theirs.is_whole()
            and theirs.read() == (there or "").encode("utf-8")
        )
        if not is_expected:
            with suppress(FileExistsError):  # the others made a newer one
                os.link(aside, file)
        aside.unlink()
    sync_path(file.parent)
    return is_expected


def _write_beside(file: Path, text: str, mode: int) -> Path:
    new = file.with_name(f"{file.name}{_TEMPORARY}{secrets.token_hex(4)}")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as stream:
            stream.write(text.encode("utf-8"))
            stream.flush()
            os.fchmod(fd, mode)
            sync(fd)
    except BaseException:
        new.unlink()
        raise
    return new


def _swap(new: Path, file: Path) -> None:
    """Exchange two files. Raises OSError; ENOENT if `file` is gone.

    On a file system without this operation, the old file is replaced and then lost, as with any
    other program.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    name = "renameatx_np" if sys.platform == "darwin" else "renameat2"
    if (call := getattr(libc, name, None)) is not None:
        here = -2 if sys.platform == "darwin" else _AT_FDCWD
        if call(here, os.fsencode(new), here, os.fsencode(file), ctypes.c_uint(_EXCHANGE)) == 0:
            return
        error = ctypes.get_errno()
        if error not in _UNSUPPORTED:
            raise OSError(error, os.strerror(error))
    aside = new.with_name(f"{new.name}-old")
    os.link(file, aside)
    os.replace(new, file)
    os.rename(aside, new)
