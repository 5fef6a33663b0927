"""Read and replace a client's settings file, so that no change of another program is lost.

A replacement exchanges the new file with the old one in one step. If the old one is not the text
that was edited, because the client wrote it meanwhile, the old one is put back, and the edit is
made again on it. So a reader sees one whole text or the other, a full disk leaves the file as it
was, and so does a newer text that cannot be edited.
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
from pathlib import Path

from msgspec import Struct

from rootsd.core.errors import RootsdError
from rootsd.system.private_files import display_path, sync, sync_path
from rootsd.system.repository_folder import repository_around

MAX_BYTES = 64 << 20
_MAX_TRIES = 20
_AT_FDCWD = -100
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2), and RENAME_SWAP of renameatx_np(2)
_UNSUPPORTED = frozenset((errno.ENOSYS, errno.EINVAL, errno.ENOTSUP))
_TEMPORARY = ".rootsd-"


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

    def update(self, change: Callable[[str | None], str | None]) -> None:
        """Replace the text with what `change` returns for it. None stands for no file.

        `change` may be called several times. Raises SettingsUnusable, and what `change` raises.
        """
        if not self.is_accepted and (reason := self.special_reason()):
            raise SettingsUnusable(reason, self.consent_command)
        real = Path(os.path.realpath(self.path))
        try:
            self._update(real, change)
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> SettingsUnusable:
        shown = display_path(self.path)
        why = error.strerror or str(error)
        return SettingsUnusable(f"{shown} cannot be changed: {why}", f"ls -l {shown}")

    def _update(self, real: Path, change: Callable[[str | None], str | None]) -> None:
        for _ in range(_MAX_TRIES):
            there = _read(real)
            text = change(there)
            if text == there or _replace(real, there, text):
                return
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


def _replace(file: Path, there: str | None, text: str | None) -> bool:
    """Put `text` in place of `there`, and return whether nobody else wrote meanwhile.

    Otherwise the newest text of the others is at `file`.
    """
    try:
        if text is None:
            return _take_away(file, there)
        if there is None:
            return _create(file, text)
        return _exchange(file, there, text)
    except FileNotFoundError:
        if not file.parent.is_dir():
            raise
        return False  # somebody else removed the file


def _exchange(file: Path, there: str, text: str) -> bool:
    """Exchange `file` with a new file that has `text`; see `_replace`.

    What was displaced goes back if it is not `there`, by an exchange of names. So a full disk does
    not prevent that. The last name that was put there is then the newest text of the others.
    """
    mode = stat.S_IMODE(file.stat().st_mode)
    new = _write_beside(file, text, mode)
    try:
        put = text.encode("utf-8")
        _swap(new, file)
        displaced = new.read_bytes()
        if displaced == there.encode("utf-8"):
            return True
        for _ in range(_MAX_TRIES):
            _swap(new, file)
            found = new.read_bytes()
            if found == put:
                break
            displaced, put = found, displaced
        return False
    finally:
        with suppress(FileNotFoundError):
            new.unlink()
        sync_path(file.parent)


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
    file.rename(aside)
    is_expected = aside.read_bytes() == (there or "").encode("utf-8")
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
