"""Read and edit git's settings by git itself, and replace the content of a file of settings.

Git runs outside any repository, with no settings of its own and no variables. It never gets a file
that a program can exchange: it reads a text, and edits a private file. Includes are not followed.

`replace_content` writes into the file that is there. A new file in its place would have no cover
for a moment, and in a git directory a program could exchange it before the rename. The new content
begins as the old one does, and is written by one call. So whoever reads at this moment gets the
old text, the new one, or one of them with empty lines at its end.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from rootsd.core.paths import bytes_of, contains
from rootsd.disk.git_pointer import find_git_directory
from rootsd.disk.links import final_path
from rootsd.disk.reader import CONFIG_CAP
from rootsd.wall.git.carried_settings import Settings, checkout_of_submodule
from rootsd.wall.git.entries import read_regular
from rootsd.wall.git.system_git import ask_git, settings_in
from rootsd.wall.system_calls import closing, open_below, open_path

_TIMEOUT_S = 10.0  # git reads no file here that could keep it waiting
_MAX_EDITS = 256
_LOCK = b".lock"
_CONFIG, _MODULES = b"config", b"/modules/"
_VARIABLES = {
    "PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": "/nonexistent", "GIT_DIR": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
}  # fmt: skip
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_/.:@+~*-")
_ESCAPES = {b"\\": b"\\\\", b'"': b'\\"', b"\n": b"\\n", b"\t": b"\\t"}


class BadSettings(ValueError):
    """An error: git cannot read a text, or it has more than is read here."""


def list_settings(content: bytes) -> dict[bytes, tuple[bytes, ...]]:
    """Return the settings in a text. Raises BadSettings and OSError."""
    return _parse(_git([b"--file", b"-", b"--no-includes", b"--list", b"-z"], content))


def settings_of_user(home: bytes) -> dict[bytes, tuple[bytes, ...]]:
    """Return the settings of a person and of the system. Raises BadSettings and OSError."""
    own = {"GIT_DIR": "/dev/null"}
    places = {name: os.environ[name] for name in ("XDG_CONFIG_HOME",) if name in os.environ}
    return _parse(_git([b"--list", b"-z"], b"", {**own, **places, "HOME": os.fsdecode(home)}))


def edit_settings(content: bytes, changes: Settings, scratch: bytes) -> bytes:
    """Return a text with changed settings. No values mean that a key is removed.

    `scratch` is a private folder. The result is checked by git. Raises BadSettings and OSError.
    """
    before = list_settings(content)
    replaced = [key for key in changes if key in before]
    if len(replaced) > _MAX_EDITS:
        raise BadSettings("too many changes")
    if replaced:
        content = _without(content, replaced, scratch + b"/settings")
    if content and not content.endswith(b"\n"):
        content += b"\n"
    content += _text_of(changes)
    wanted = {**before, **changes}
    if list_settings(content) != {key: values for key, values in wanted.items() if values}:
        raise BadSettings("the text would not have these settings")
    return content


def read_file(folder: int, name: bytes) -> bytes:
    """Return the content of a small regular file in an open folder. Raises OSError."""
    with closing(open_below(folder, name, os.O_NOFOLLOW)) as found:
        return read_open_file(found)


def read_open_file(found: int) -> bytes:
    """Return the content of a small regular file that is open with O_PATH. Raises OSError."""
    content = read_regular(found, CONFIG_CAP + 1)
    if len(content) > CONFIG_CAP:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return content


def is_new_submodule(path: bytes) -> bool:
    """Return whether a file has what git writes for a new submodule, which leads back to it."""
    own, name = os.path.split(path)
    if name != _CONFIG or _MODULES not in own:
        return False
    checkout = own[: own.index(_MODULES)].rpartition(b"/")[0]
    with suppress(OSError, BadSettings), closing(open_path(own, os.O_DIRECTORY)) as folder:
        named = checkout_of_submodule(list_settings(read_file(folder, name)))
        if named is not None and not named.startswith(b"/"):
            tree = os.path.normpath(own + b"/" + named)
            is_inside = tree != checkout and contains(checkout, tree) and final_path(tree) == tree
            return is_inside and find_git_directory(tree) == own
    return False


def replace_content(folder: int, name: bytes, old: bytes, new: bytes) -> bool:
    """Replace the content of a file in an open folder, if it is `old`. Return whether it was.

    This holds the lock that git takes. A program can write to the folder, so nothing is followed,
    and a file with a second name is left alone. Raises OSError.
    """
    same = (at for at, (was, will) in enumerate(zip(old, new, strict=False)) if was != will)
    begin = next(same, min(len(old), len(new)))
    rest = new[begin:].ljust(len(old) - begin, b"\n")
    try:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = os.open(name + _LOCK, flags, 0o600, dir_fd=folder)
    except FileExistsError:
        return False
    try:
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with closing(os.open(name, flags, dir_fd=folder)) as file:
            found = os.fstat(file)
            is_plain = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
            if not is_plain or os.pread(file, CONFIG_CAP + 1, 0) != old:
                return False
            if rest and os.pwrite(file, rest, begin) != len(rest):
                os.pwrite(file, old[begin:], begin)  # there is still room for what was there
                os.ftruncate(file, len(old))
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.ftruncate(file, len(new))
            return True
    finally:
        with suppress(OSError):
            there = os.stat(name + _LOCK, dir_fd=folder, follow_symlinks=False)
            if os.path.samestat(there, os.fstat(lock)):
                os.unlink(name + _LOCK, dir_fd=folder)
        os.close(lock)


def _without(content: bytes, keys: Iterable[bytes], file: bytes) -> bytes:
    with open(os.open(file, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as private:
        private.write(content)
    for key in keys:
        _git([b"--file", file, b"--unset-all", key])
    with open(file, "rb") as private:
        return private.read()


def _text_of(changes: Settings) -> bytes:
    """Return new sections for settings."""
    lines: list[bytes] = []
    last = None
    for key, values in changes.items():
        section, _, rest = key.partition(b".")
        name, _, variable = rest.rpartition(b".")
        if values and (section, name) != last:
            last = (section, name)
            escaped = name.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
            lines.append(b'[%s "%s"]' % (section, escaped) if name else b"[%s]" % section)
        lines += [b"\t%s = %s" % (variable, _quoted(value)) for value in values]
    return b"".join(line + b"\n" for line in lines)


def _quoted(value: bytes) -> bytes:
    if value and _PLAIN.issuperset(value):
        return value
    letters = (value[at : at + 1] for at in range(len(value)))
    return b'"%s"' % b"".join(_ESCAPES.get(each, each) for each in letters)


def _parse(listed: bytes) -> dict[bytes, tuple[bytes, ...]]:
    found: dict[bytes, tuple[bytes, ...]] = {}
    for each in settings_in(listed):
        key = bytes_of(each.key)
        found[key] = (*found.get(key, ()), each.value)
    return found


def _git(
    words: Sequence[bytes], text: bytes = b"", variables: Mapping[str, str] = _VARIABLES
) -> bytes:
    """Return what `git config` prints. Raises BadSettings."""
    listed = ask_git(("-C", "/", "config", *words), variables, text, _TIMEOUT_S)
    if listed is None:
        raise BadSettings("git did not answer")
    return listed
