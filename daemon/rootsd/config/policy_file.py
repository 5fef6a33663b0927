"""Read the file of the machine's policy, which only root may write.

The lean programs import this module. They need one answer: must a program be behind the wall?
`rootsd.config.policy` reads everything else for the daemon.

The folder and the file must belong to root, and nobody else may write to them. Neither may be a
symlink, because its target could lie elsewhere. A file that cannot be used may require or refuse
anything, so it counts as broken. A file that is missing is no policy, but only where nobody but
root could have removed it.
"""

from __future__ import annotations

import errno
import os
import stat

from rootsd.core.errors import BadConfig
from rootsd.core.parsing import Unparsable, parse_toml

POLICY_FILE = b"/etc/rootsd/policy.toml"
"""No variable changes this path: the user of the daemon could set it."""
MAX_BYTES = 1 << 20
VERSION = 1
_CONFINE, _REQUIRED = "confine", "required"
_KNOWN_KEYS = frozenset({"version", "roots", "rule", _CONFINE})
_ROOT = 0
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_IS_LINK = (errno.ELOOP, errno.ENOTDIR)
# Linux opens a folder that may be entered but not listed with O_PATH only.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a FIFO at this path must not hang anybody.
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class BadPolicy(BadConfig):
    """A policy file that cannot be used."""


def read_policy_text(file: bytes) -> str | None:
    """Return the text of the policy, or None if there is no such file. Raises BadPolicy."""
    folder, name = os.path.split(file)
    opened: list[int] = []
    try:
        try:
            opened.append(os.open(folder, _FOLDER))
            opened.append(os.open(name, _FILE, dir_fd=opened[0]))
        except FileNotFoundError:
            _ensure_only_root_removes(folder)
            return None
        except OSError as error:
            raise _unreadable(file if opened else folder, error) from error
        for path, descriptor in zip((folder, file), opened, strict=True):
            _ensure_only_root_writes(path, os.fstat(descriptor))
        return _text_of(file, opened[1])
    finally:
        for descriptor in opened:
            os.close(descriptor)


def wall_requirement(file: bytes) -> str | None:
    """Return why a program must be behind the wall, as a clause, or None if it need not be.

    Only a policy that certainly does not require the wall lets a program do without it.
    """
    try:
        text = read_policy_text(file)
        if text is None:
            return None
        required = _requires_wall(parse_toml(text))
    except BadConfig as error:
        return _unusable(file, error.summary)
    except Unparsable as error:
        return _unusable(file, str(error))
    if required is None:
        return _unusable(file, "it is not valid")
    return f"the policy requires the wall ({_shown(file)})" if required else None


def _unusable(file: bytes, reason: str) -> str:
    return f"the policy {_shown(file)} cannot be used, and may require the wall: {reason}"


def _shown(path: bytes) -> str:
    from rootsd.core.labels import safe_label  # noqa: PLC0415 - only needed for messages

    return safe_label(path, limit=None)


def _requires_wall(tables: dict[str, object]) -> bool | None:
    """Return whether the policy requires the wall, or None if its keys are not valid."""
    confine = tables.get(_CONFINE, {})
    version = tables.get("version")
    if (
        not isinstance(version, int)
        or isinstance(version, bool)
        or version != VERSION
        or not tables.keys() <= _KNOWN_KEYS
        or not isinstance(confine, dict)
        or not confine.keys() <= {_REQUIRED}
    ):
        return None
    required = confine.get(_REQUIRED, False)
    return required if isinstance(required, bool) else None


def _ensure_only_root_writes(path: bytes, found: os.stat_result) -> None:
    shown = _shown(path)
    if found.st_uid not in _roots_ids(found.st_uid):
        raise BadPolicy(
            f"{shown} belongs to user {found.st_uid}, not to root", f"sudo chown root {shown}"
        )
    if found.st_mode & _OTHERS_WRITE:
        raise BadPolicy(f"users other than root can write to {shown}", f"sudo chmod go-w {shown}")


def _ensure_only_root_removes(folder: bytes) -> None:
    """Raise BadPolicy if somebody else could have removed what is missing in `folder`.

    If the folder is missing, too, the nearest folder above it decides.
    """
    while True:
        try:
            found = os.stat(folder)
        except FileNotFoundError:
            folder = os.path.dirname(folder)
            continue
        except OSError as error:
            raise _unreadable(folder, error) from error
        _ensure_only_root_writes(folder, found)
        return


def _roots_ids(uid: int) -> frozenset[int]:
    """Return the user ids that root's files may show."""
    if uid == _ROOT:
        return frozenset((_ROOT,))
    # In a sandbox that maps only some users, root's files show another id.
    from rootsd.disk.writers import trusted_owners  # noqa: PLC0415 - rarely needed

    return trusted_owners(_ROOT)


def _text_of(file: bytes, descriptor: int) -> str:
    shown = _shown(file)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise BadPolicy(f"{shown} is not a regular file", f"ls -l {shown}")
    try:
        with open(descriptor, "rb", closefd=False) as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise _unreadable(file, error) from error
    if len(content) > MAX_BYTES:
        raise BadPolicy(f"{shown} is larger than {MAX_BYTES} bytes", f"ls -l {shown}")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadPolicy(f"{shown}, line {line}: this is not UTF-8", f"ls -l {shown}") from error


def _unreadable(path: bytes, error: OSError) -> BadPolicy:
    shown = _shown(path)
    if error.errno in _IS_LINK:
        return BadPolicy(f"{shown} is a symlink, or not what it should be", f"ls -ld {shown}")
    reason = error.strerror or str(error)
    return BadPolicy(f"{shown} cannot be read: {reason}", f"sudo chmod a+rX {shown}")
