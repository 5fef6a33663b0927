"""The binding of a decision database: the file that holds it, and the second anchor it belongs to.

The database records both about itself, in one row:

* The identity of its own file: inode number, birth time and file handle. A copy is another file,
  so a database that was restored from a copy differs from its own record. This holds also if the
  second anchor was restored with it, as when a whole home folder is restored. Whoever sets a
  whole file system back, as a snapshot of a virtual machine does, restores the identity too. No
  check in this program can detect that.
* A random key, which the second anchor records too. An anchor never confirms another history,
  even if both are empty.

A store of version 0.1.0 has no binding, and it gets one without a lapse:

1. The second anchor is written, with a new key and the head of the chain.
2. The binding is committed to the database.

A crash after step 1 leaves an anchor whose head is exactly the head of an unbound database; the
next start completes the steps. From step 2 on, the database knows that it has a second anchor.
If that one is then missing, it was removed, or another state folder was put in this place.

If the history is not trusted, one transaction takes every approval back and replaces the binding,
with a new key. After it, the anchors are written. A crash in between leaves a key that the second
anchor does not have, so the next start does the same again. The state folder that was replaced
has the old key, so it is not trusted either if it is put back.
"""

from __future__ import annotations

import os
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path

from rootsd.core.fields import BadRecord
from rootsd.host.disk.birth import read_birth
from rootsd.host.disk.identity import handle_of
from rootsd.host.private import unusable
from rootsd.host.storage.anchor import KEY_SIZE
from rootsd.host.storage.database import Database

_INODE_SIZE = 8


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """What distinguishes a file from a copy of it. `handle` is None where there is none."""

    inode: int
    born_ns: int
    handle: bytes | None

    def is_same(self, other: FileIdentity | None) -> bool:
        """Tell whether both are one file. An identity that cannot be read now counts as another
        file; a handle counts only if both have one, since a newer kernel may add it."""
        if other is None or (self.inode, self.born_ns) != (other.inode, other.born_ns):
            return False
        return self.handle is None or other.handle is None or self.handle == other.handle


@dataclass(frozen=True, slots=True)
class Binding:
    """The binding of one database.

    `file` is None on a file system without birth times. `cause` says why the approvals lapsed when
    this binding was made, and is empty if they did not.
    """

    key: bytes
    file: FileIdentity | None
    cause: str = ""


def new_key() -> bytes:
    """Return a key that no other database has."""
    return secrets.token_bytes(KEY_SIZE)


def identify(file: Path) -> FileIdentity | None:
    """Return the identity of the database `file`, or None if its file system keeps no birth time.

    It never closes a descriptor that could drop SQLite's lock (fcntl(2)). Raises NotPrivate if
    the file cannot be looked at.
    """
    try:
        if sys.platform == "linux":
            fd = os.open(file, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                return _identity(fd, os.fstat(fd))
            finally:
                os.close(fd)
        return _identity(-1, file.lstat())
    except OSError as error:
        raise unusable(file, error) from error


def _identity(fd: int, found: os.stat_result) -> FileIdentity | None:
    born = read_birth(fd, found)
    return None if born is None else FileIdentity(found.st_ino, born, handle_of(fd))


def read_binding(db: Database) -> Binding | None:
    """Return the binding that `db` records, or None if it has none. Raises BadRecord."""
    row = db.execute("SELECT key, inode, born, handle, cause FROM binding").fetchone()
    match row:
        case None:
            return None
        case (bytes(key), None, None, None, str(cause)):
            return Binding(key, None, cause)
        case (bytes(key), bytes(inode), int(born), bytes() | None as handle, str(cause)):
            return Binding(key, FileIdentity(int.from_bytes(inode), born, handle), cause)
        case _:
            raise BadRecord("the binding holds a value of a wrong type")


def write_binding(db: Database, binding: Binding) -> None:
    """Replace the binding of `db`, as part of the caller's transaction."""
    file = binding.file
    row: tuple[bytes | int | None, ...] = (None, None, None)
    if file is not None:
        # An inode number can be larger than a number in SQLite.
        row = (file.inode.to_bytes(_INODE_SIZE), file.born_ns, file.handle)
    db.execute("DELETE FROM binding")
    db.execute(
        "INSERT INTO binding(key, inode, born, handle, cause) VALUES(?,?,?,?,?)",
        (binding.key, *row, binding.cause),
    )
