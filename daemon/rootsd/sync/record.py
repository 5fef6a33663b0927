"""What is synced, and which entries are ours: three files in the state folder.

`clients.json` has the settings files that a person chose: each home of a client has its own.
`own.json` has our entries in each file, and is written before the file itself. So after a kill at
any moment, an entry of ours is known as ours. `status.json` has the outcome for `rootsd sync
status`. If a file cannot be read, nothing is changed: without the record, our entries cannot be
told from those of a person.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from rootsd.core.errors import Busy, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.record import BadRecord
from rootsd.core.typed_json import decode_typed, encode_typed
from rootsd.files.private_files import (
    display_path,
    ensure_private_folder,
    locked_folder,
    open_private_file,
    path_exists,
    read_private_file,
    replace_private_file,
)
from rootsd.sync.access import ClientOutcome
from rootsd.sync.entries import NOTHING_OWN, OwnEntries

_MAX_BYTES = 4 << 20
_PID_BYTES = 32

Content = TypeVar("Content")


class SyncRecordDamaged(RootsdError):
    """A file of `rootsd sync` in the state folder cannot be read."""


class GrantedTag(StrEnum):
    """Which tag the roots have that a client may open."""

    CHOSEN = "chosen"
    """The tag that the person chose for the client."""
    FOCUS = "focus"
    """The tag of the focus, as long as there is one."""


class SyncedClient(Struct, frozen=True):
    """A person's choice for one home of `client`.

    `file` is the settings file there. Roots with `tag` are granted, none if it is None. If
    `granted` is FOCUS, `tag` is None. `is_accepted` says that the file may be changed although it
    is a symlink or in a repository. `made_folders` are those that we made for the file, the
    outermost one first.
    """

    client: str
    file: str
    tag: str | None = None
    is_accepted: bool = False
    granted: GrantedTag = GrantedTag.CHOSEN
    made_folders: tuple[str, ...] = ()

    @property
    def only(self) -> str | None:
        """The value of `rootsd sync add --only`, or None if nothing is granted."""
        if self.granted is GrantedTag.FOCUS:
            return GrantedTag.FOCUS.value
        return None if self.tag is None else f"tag:{self.tag}"


class SyncRecord:
    """The files of `rootsd sync` below the state folder `state`."""

    def __init__(self, state: bytes) -> None:
        self.folder = Path(os.fsdecode(state), "sync")
        self.clients_file = self.folder / "clients.json"

    def choosing(self) -> AbstractContextManager[None]:
        """Keep other runs of the command line from choosing clients meanwhile.

        Raises NotPrivate.
        """
        return locked_folder(self.folder)

    def clients(self) -> dict[str, SyncedClient]:
        """Return what was chosen by settings file. Raises SyncRecordDamaged."""
        return {each.file: each for each in self._read("clients.json", list[SyncedClient])}

    def save_clients(self, clients: Iterable[SyncedClient]) -> None:
        """Replace the chosen clients. Raises NotPrivate."""
        self._write("clients.json", list(clients))

    def own(self) -> dict[str, OwnEntries]:
        """Return our entries by settings file. Raises SyncRecordDamaged."""
        return self._read("own.json", dict[str, OwnEntries])

    def save_own(self, own: Mapping[str, OwnEntries]) -> None:
        """Replace our entries. Raises NotPrivate."""
        self._write("own.json", {file: each for file, each in own.items() if each != NOTHING_OWN})

    def outcomes(self) -> dict[str, ClientOutcome]:
        """Return the last outcome for each settings file, as far as it is known."""
        try:
            return self._read("status.json", dict[str, ClientOutcome])
        except RootsdError:
            return {}

    def problems(self) -> list[str]:
        """Return a sentence for each problem with the lists of the chosen clients."""
        try:
            clients = self.clients()
            is_running = not clients or holder_of(self) is not None
        except RootsdError as error:
            return [error.message]
        found = [] if is_running else ["rootsd sync does not run (try: rootsd up)"]
        for file, outcome in self.outcomes().items():
            if file in clients:
                name = _label(clients[file], clients.values())
                sentences = filter(None, (outcome.problem, *outcome.omitted))
                found += [f"{name}: {safe_label(each, limit=None)}" for each in sentences]
        return found

    def save_outcomes(self, outcomes: Mapping[str, ClientOutcome]) -> None:
        """Replace the outcomes. Raises NotPrivate."""
        self._write("status.json", outcomes)

    def _read(self, name: str, kind: type[Content]) -> Content:
        file = self.folder / name
        if not path_exists(file):
            return kind()
        try:
            return decode_typed(read_private_file(file, _MAX_BYTES), kind)
        except BadRecord as error:
            raise self._damaged(name) from error

    def _write(self, name: str, content: object) -> None:
        ensure_private_folder(self.folder)
        replace_private_file(self.folder / name, encode_typed(content, indent=1) + b"\n")

    def _damaged(self, name: str) -> SyncRecordDamaged:
        shown = display_path(self.folder / name)
        return SyncRecordDamaged(f"{shown} is damaged", f"mv {shown} {shown}.old")


def _label(chosen: SyncedClient, everything: Iterable[SyncedClient]) -> str:
    """Return the name of a client, with the file if several of its homes are synced."""
    homes = [each for each in everything if each.client == chosen.client]
    if len(homes) < 2:  # noqa: PLR2004 - more than one
        return chosen.client
    return f"{chosen.client} ({display_path(Path(chosen.file))})"


class SyncLock:
    """The lock that one `rootsd sync` at a time holds. Its file has the pid of the holder."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def acquire(cls, record: SyncRecord) -> SyncLock:
        """Take the lock. Raises Busy with the pid of the holder, and NotPrivate."""
        ensure_private_folder(record.folder)
        fd = open_private_file(record.folder / "lock")
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            pid = holder_of(record)
            raise Busy(f"rootsd sync runs already (pid {pid})", "rootsd sync status") from None
        os.pwrite(fd, str(os.getpid()).encode().ljust(_PID_BYTES), 0)
        return cls(fd)

    def release(self) -> None:
        """Release the lock."""
        os.close(self._fd)


def holder_of(record: SyncRecord) -> int | None:
    """Return the pid of the process that holds the lock, or None if it is free."""
    file = record.folder / "lock"
    if not path_exists(file):
        return None
    fd = open_private_file(file)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(fd, _PID_BYTES, 0).strip()
        return int(text) if text.isdigit() else None
    else:
        return None
    finally:
        os.close(fd)
