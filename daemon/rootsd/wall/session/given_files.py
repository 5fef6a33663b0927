"""Copy files that a person gives to a program behind the wall, for its warden to show.

Each file is read once, by its descriptor: what was looked at for secrets is what the program gets.
The warden never reads the file itself, because a file system that hangs must not delay a revoke.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterable
from typing import NamedTuple, Self

from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.paths import contains, text_of
from rootsd.core.secret_names import secret_part
from rootsd.places.runtime_dir import home_folder
from rootsd.wall.kernel.warden import GIVEN
from rootsd.wall.system_calls import closing, open_path
from rootsd.wall.view.secret_lines import has_literal_secret, without_secrets

MAX_BYTES = 16 << 20
_START = 8192


class CannotRead(RootsdError):
    """A path that is no file which can be given."""

    code = ErrorCode.REFUSED


class FileToGive(NamedTuple):
    """A file as it was read. `path` has no links. `suspicion` says why it may hold a secret."""

    path: bytes
    content: bytes
    suspicion: str


class WrittenCopies:
    """The copies of some files, in the private folder of a wall, until somebody shows them."""

    def __init__(self, wall: bytes, files: Iterable[FileToGive]) -> None:
        """Write the copies. Raises OSError."""
        self.are_shown = False
        self.name = secrets.token_hex(8)
        self._folder = wall + GIVEN + b"/" + self.name.encode()
        os.makedirs(self._folder, 0o700)
        for number, file in enumerate(files):
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            place = os.open(b"%s/%d" % (self._folder, number), flags, 0o400)
            with open(place, "wb") as stream:
                stream.write(file.content)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the copies if nobody shows them. Otherwise, the end of the wall does."""
        if not self.are_shown:
            shutil.rmtree(self._folder, ignore_errors=True)


def read_file(typed: str) -> FileToGive:
    """Read a file. Links on the way count as what they lead to. Raises CannotRead."""
    path = os.path.realpath(os.fsencode(typed))
    shown = safe_label(path, limit=None)
    remedy = f"ls -l {shown}"
    try:
        # Another program may put a link on the way meanwhile, which would lead to another file.
        with closing(open_path(path)) as file:
            kind = stat.S_IFMT(os.fstat(file).st_mode)
            if kind == stat.S_IFDIR:
                raise CannotRead(f"{shown} is a folder; name the files in it", f"ls {shown}")
            if kind != stat.S_IFREG:
                raise CannotRead(f"{shown} is no regular file", remedy)
            with open(f"/proc/self/fd/{file}", "rb") as stream:
                content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        why = os.strerror(error.errno or 0)  # its text may have the path, too
        raise CannotRead(f"{shown}: {why}", remedy) from error
    if len(content) > MAX_BYTES:
        message = f"{shown} is larger than {MAX_BYTES >> 20} MiB; copy it into a root"
        raise CannotRead(message, "rootsd ls")
    return FileToGive(path, content, _suspicion(path, content))


def _suspicion(path: bytes, content: bytes) -> str:
    """Return why a file may hold a secret, as a clause, or an empty text."""
    home = os.path.realpath(home_folder())
    judged = path[len(home) + 1 :] if contains(home, path) else path
    if (part := secret_part(judged)) is not None:
        return f"{text_of(part)} sounds like secrets"
    is_binary = b"\0" in content[:_START]
    if has_literal_secret(content) or not (is_binary or without_secrets(content) == content):
        return "it holds what looks like a secret"
    return ""
