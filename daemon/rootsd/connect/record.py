"""What `rootsd connect` changed: files in the state folder.

`NAME.json` has the changes of each file of the client NAME, with the hash of the text that was
written, and the homes of the client that the file belongs to. Each home is a target of its own: a
change for one takes nothing from another. A file of two homes is restored with the last of them.

It also has the folders of worktrees that became parents, and the folders that were made for them.
Beside it are the texts from before. Both are written before the file itself. So after a kill at
any moment, what is ours is known. The texts may hold secrets of the client, so only this user can
read them, and a disconnect deletes them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from rootsd.connect.base import ClientHome
from rootsd.connect.edits import Change
from rootsd.core.errors import RootsdError
from rootsd.core.typed_json import decode_typed, encode_typed
from rootsd.files.private_files import (
    display_path,
    ensure_private_folder,
    list_names,
    locked_folder,
    path_exists,
    read_private_file,
    replace_private_file,
)
from rootsd.settings.settings_file import MAX_BYTES

_ENDING = ".json"


class ConnectRecordDamaged(RootsdError):
    """A file of `rootsd connect` in the state folder cannot be read."""


class ChangedFile(Struct, frozen=True):
    """One file that was changed.

    * `before`: the text without our changes, None if there was no file. `after` is the SHA-256 of
      the text with them.
    * `changes`: in the order in which they were made.
    * `is_accepted`: a person accepted that the file is a symlink or in a repository.
    * `made_folders`: the folders that were made for the file, the outermost one first.
    * `homes`: of the client, by the place of the settings there.
    """

    before: str | None
    after: str
    changes: tuple[Change, ...]
    is_accepted: bool = False
    made_folders: tuple[str, ...] = ()
    homes: Mapping[str, ClientHome] = field(default_factory=dict)


class _Saved(Struct, frozen=True):
    """What is in the file of a client. `before` of a changed file is the hash of the text."""

    files: dict[str, ChangedFile] = field(default_factory=dict)
    worktrees: dict[str, tuple[str, ...]] = field(default_factory=dict)


def digest(text: str | None) -> str:
    """Return the SHA-256 of a text, or an empty string without a file."""
    return "" if text is None else hashlib.sha256(text.encode("utf-8")).hexdigest()


class ConnectRecord:
    """The files of `rootsd connect` below the state folder `state`."""

    def __init__(self, state: bytes) -> None:
        self.folder = Path(os.fsdecode(state), "connect")

    def locked(self) -> AbstractContextManager[None]:
        """Keep other runs of the command line from changes meanwhile. Raises NotPrivate."""
        return locked_folder(self.folder)

    def names(self) -> list[str]:
        """Return the names of the clients that were changed. Raises NotPrivate."""
        names = list_names(self.folder)
        return sorted(name.removesuffix(_ENDING) for name in names if name.endswith(_ENDING))

    def homes(self, client: str) -> dict[str, ClientHome]:
        """Return the homes of a client that were changed. Raises as `files` does."""
        found: dict[str, ClientHome] = {}
        for changed in self.files(client).values():
            found |= changed.homes
        return found

    def files(self, client: str) -> dict[str, ChangedFile]:
        """Return the changed files of a client by path.

        Raises ConnectRecordDamaged and NotPrivate.
        """
        file = self.folder / f"{client}{_ENDING}"
        return {
            path: self._with_text(file, each) for path, each in self._saved(client).files.items()
        }

    def worktrees(self, client: str) -> dict[str, tuple[str, ...]]:
        """Return the folders of worktrees that `connect` made a parent, and what it made for them.

        Raises ConnectRecordDamaged and NotPrivate.
        """
        return self._saved(client).worktrees

    def _saved(self, client: str) -> _Saved:
        file = self.folder / f"{client}{_ENDING}"
        if not path_exists(file):
            return _Saved()
        try:
            return decode_typed(self._read(file), _Saved)
        except ValueError as error:
            raise self._damaged(file) from error

    def save(self, client: str, path: str, changed: ChangedFile | None) -> None:
        """Replace what is known about one file of a client; None forgets it.

        Raises ConnectRecordDamaged and NotPrivate.
        """
        ensure_private_folder(self.folder)
        files = self.files(client)
        if changed is None:
            files.pop(path, None)
        else:
            files[path] = changed  # at its old place: the first file knows the folders to remove
            if changed.before is not None:
                backup = self._backup(changed.before)
                replace_private_file(backup, changed.before.encode("utf-8"))
        self._write(client, files, self.worktrees(client))
        self._delete_unused()

    def save_worktrees(self, client: str, folder: str, made: Sequence[str] | None) -> None:
        """Replace what is known about one folder of worktrees; None forgets it.

        Raises ConnectRecordDamaged and NotPrivate.
        """
        ensure_private_folder(self.folder)
        worktrees = {each: kept for each, kept in self.worktrees(client).items() if each != folder}
        if made is not None:
            worktrees[folder] = tuple(made)
        self._write(client, self.files(client), worktrees)

    def _write(
        self,
        client: str,
        files: Mapping[str, ChangedFile],
        worktrees: dict[str, tuple[str, ...]],
    ) -> None:
        file = self.folder / f"{client}{_ENDING}"
        if files or worktrees:
            saved = {
                path: each if each.before is None else replace(each, before=digest(each.before))
                for path, each in files.items()
            }
            replace_private_file(file, encode_typed(_Saved(saved, worktrees), indent=1) + b"\n")
        else:
            with suppress(FileNotFoundError):
                file.unlink()

    def _delete_unused(self) -> None:
        """Delete the texts that no client needs."""
        used = {
            self._backup(changed.before).name
            for name in self.names()
            for changed in self.files(name).values()
            if changed.before is not None
        }
        for name in list_names(self.folder):
            if name.endswith(".before") and name not in used:
                (self.folder / name).unlink()

    def _backup(self, text: str) -> Path:
        return self.folder / f"{digest(text)}.before"

    def _with_text(self, file: Path, saved: ChangedFile) -> ChangedFile:
        if saved.before is None:
            return saved
        try:
            text = self._read(self.folder / f"{saved.before}.before")
        except ValueError as error:
            raise self._damaged(file) from error
        if digest(text) != saved.before:
            raise self._damaged(file)
        return replace(saved, before=text)

    def _read(self, file: Path) -> str:
        return read_private_file(file, MAX_BYTES).decode("utf-8")

    def _damaged(self, file: Path) -> ConnectRecordDamaged:
        shown = display_path(file)
        return ConnectRecordDamaged(f"{shown} is damaged", f"mv {shown} {shown}.old")
