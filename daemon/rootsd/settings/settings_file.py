"""Read and replace a client's settings file, so that no change of another program is lost.

A replacement exchanges the new file with the old one in one step. If the old one is not the text
that was edited, because the client wrote it meanwhile, the edit is made again on the newer text.
So a reader sees one whole text or the other, and a full disk leaves the file as it was.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rootsd.core.errors import RootsdError
from rootsd.system.private_files import display_path, sync, sync_path

MAX_BYTES = 64 << 20
_MAX_TRIES = 20
_AT_FDCWD = -100
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2), and RENAME_SWAP of renameatx_np(2)
_UNSUPPORTED = frozenset((errno.ENOSYS, errno.EINVAL, errno.ENOTSUP))
_TEMPORARY = ".rootsd-"
_REPOSITORIES = (".git", ".hg", ".svn", ".jj", ".bzr", "_darcs", ".pijul")


class SettingsUnusable(RootsdError):
    """A settings file is not written. The message says why."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The settings file of a client at `path`.

    `is_accepted` says that a person accepted changes of a file that is a symlink or in a
    repository.
    """

    path: Path
    is_accepted: bool = False

    def folder(self) -> Path:
        """Return the folder that holds the file itself, with all symlinks resolved."""
        return Path(os.path.realpath(self.path)).parent

    def special_reason(self) -> str | None:
        """Return why changes need a person's consent: a symlink, or version control."""
        shown = display_path(self.path)
        real = Path(os.path.realpath(self.path))
        if self.path.is_symlink():
            return f"{shown} is a symlink to {display_path(real)}"
        for folder in real.parents:
            for name in _REPOSITORIES:
                if (folder / name).exists():
                    return f"{shown} is in the repository {display_path(folder)}"
        return None

    def read(self) -> str | None:
        """Return the text, or None if the file is missing. Raises SettingsUnusable."""
        try:
            return _read(Path(os.path.realpath(self.path)))
        except OSError as error:
            raise self._unusable(error) from error

    def update(self, change: Callable[[str | None], str | None]) -> None:
        """Replace the text with what `change` returns for it. None stands for no file.

        `change` may be called several times. Raises SettingsUnusable, and what `change` raises.
        """
        if not self.is_accepted and (reason := self.special_reason()):
            raise SettingsUnusable(reason, "rootsd sync add --yes")
        real = Path(os.path.realpath(self.path))
        try:
            self._update(real, change)
        except OSError as error:
            shown = display_path(self.path)
            why = error.strerror or str(error)
            raise SettingsUnusable(
                f"{shown} cannot be changed: {why}", f"ls -l {shown}"
            ) from error

    def _unusable(self, error: OSError) -> SettingsUnusable:
        shown = display_path(self.path)
        why = error.strerror or str(error)
        return SettingsUnusable(f"{shown} cannot be changed: {why}", f"ls -l {shown}")

    def _update(self, real: Path, change: Callable[[str | None], str | None]) -> None:
        newest = there = _read(real)  # the newest text of others, and the text in the file
        for _ in range(_MAX_TRIES):
            text = change(newest)
            if text == there:
                return
            try:
                if text is None:
                    displaced = _take_away(real)
                elif there is None:
                    displaced = _create(real, text)
                    if displaced is not None:  # another program made the file first
                        newest = there = displaced
                        continue
                else:
                    displaced = _exchange(real, text)
            except FileNotFoundError:
                if not real.parent.is_dir():
                    raise
                newest = there = None
                continue
            if displaced == there:
                return
            newest, there = displaced, text
        raise SettingsUnusable(
            f"{display_path(self.path)} keeps changing", "close the client, then try again"
        )


def _read(file: Path) -> str | None:
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with open(fd, "rb") as stream:
        found = os.fstat(fd)
        shown = display_path(file)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise SettingsUnusable(f"{shown} is not a file of yours", f"ls -l {shown}")
        if not found.st_mode & stat.S_IWUSR:
            raise SettingsUnusable(f"{shown} is read-only", f"chmod u+w {shown}")
        raw = stream.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise SettingsUnusable(f"{shown} is too large", f"ls -l {shown}")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SettingsUnusable(f"{shown} is not UTF-8", f"file {shown}") from error


def _exchange(file: Path, text: str) -> str | None:
    """Put `text` at `file`, and return the text that was there."""
    mode = stat.S_IMODE(file.stat().st_mode)
    new = _write_beside(file, text, mode)
    try:
        _swap(new, file)
        return _read(new)
    finally:
        with suppress(FileNotFoundError):
            new.unlink()
        sync_path(file.parent)


def _create(file: Path, text: str) -> str | None:
    """Put `text` at `file` if nothing is there, and return the text that is there otherwise."""
    new = _write_beside(file, text, 0o600)
    try:
        os.link(new, file)
    except FileExistsError:
        return _read(file)
    finally:
        new.unlink()
    sync_path(file.parent)
    return None


def _take_away(file: Path) -> str | None:
    """Remove `file`, and return its text."""
    aside = file.with_name(f"{file.name}{_TEMPORARY}{secrets.token_hex(4)}")
    file.rename(aside)
    text = _read(aside)
    aside.unlink()
    sync_path(file.parent)
    return text


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
