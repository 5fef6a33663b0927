"""Read and validate the configuration file."""

from __future__ import annotations

import dataclasses
import os
import stat
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, cast

from msgspec.structs import asdict

from rootsd.config.parent_paths import canonical_path, parent_refusal
from rootsd.config.schema import (
    ApprovalTable,
    ConfigTables,
    ConfineTable,
    NotifyTable,
    ParentTable,
    SessionsTable,
    UiTable,
)
from rootsd.config.validation import (
    ConfigProblem,
    TableValidator,
    invalid_file,
    syntax_error,
)
from rootsd.core.errors import BadConfig
from rootsd.core.labels import safe_label
from rootsd.core.model import Parent
from rootsd.core.parsing import Unparsable, parse_toml
from rootsd.core.paths import RefusedPlaces, bytes_of
from rootsd.core.wall import WALL_DEFAULTS, WallSettings
from rootsd.places.runtime_dir import account_home
from rootsd.settings.toml_spans import KeyPath

EDIT = "rootsd config edit"
MAX_BYTES = 1 << 20
_ADMINISTRATOR = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Config:
    """The user's configuration.

    All paths are canonical, except those of `wall`: a program behind the wall sees a file under
    the path that the user wrote. `refused` and `allowed` have the meaning that they have in
    `rootsd.core.paths.RefusedPlaces`. `checksum` changes with the text.
    """

    parents: tuple[Parent, ...] = ()
    refused: tuple[bytes, ...] = ()
    allowed: tuple[bytes, ...] = ()
    sessions: SessionsTable = dataclasses.field(default_factory=SessionsTable)
    approval: ApprovalTable = dataclasses.field(default_factory=ApprovalTable)
    wall: WallSettings = WALL_DEFAULTS
    notify: NotifyTable = dataclasses.field(default_factory=NotifyTable)
    ui: UiTable = dataclasses.field(default_factory=UiTable)
    checksum: str = dataclasses.field(default="00000000", compare=False)

    def with_configured_places(self, places: RefusedPlaces) -> RefusedPlaces:
        """Return `places` with the configured folders and parents."""
        parents = tuple(parent.path for parent in self.parents)
        return places._replace(refused=self.refused, allowed=self.allowed, parents=parents)


def read_config(file: bytes) -> Config:
    """Return the configuration in `file`, or an empty one if there is no such file.

    Raises BadConfig if the file is unreadable or invalid, or if another user could write it.
    """
    ensure_own_folder(file)
    try:
        # O_NONBLOCK: a FIFO at this path must not hang the daemon.
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            is_regular = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
            content = stream.read(MAX_BYTES + 1) if is_regular else b""
    except FileNotFoundError:
        return Config()
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadConfig(
            f"{_shown(file)} cannot be read: {reason}", f"ls -l {_shown(file)}"
        ) from error
    if not is_regular:
        raise BadConfig(f"{_shown(file)} is not a regular file", f"ls -l {_shown(file)}")
    if len(content) > MAX_BYTES:
        raise BadConfig(
            f"{_shown(file)} is larger than {MAX_BYTES} bytes", f"ls -l {_shown(file)}"
        )
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadConfig(f"{_shown(file)}, line {line}: this is not UTF-8", EDIT) from error
    return parse_config(text, file)


def ensure_own_folder(file: bytes) -> None:
    """Raise BadConfig if another user can change the folder of the configuration `file`.

    The folder may be a symlink, because some people keep their configuration elsewhere. The
    administrator may own the folder, because the administrator can change every file anyway.
    """
    folder = os.path.dirname(file)
    try:
        found = os.stat(folder)
    except OSError:
        return  # the caller opens the file next and reports the error
    if found.st_uid not in (os.geteuid(), _ADMINISTRATOR):
        chown = f"sudo chown -R {os.geteuid()} {_shown(folder)}"
        is_sudo = os.environ.get("SUDO_UID") == str(found.st_uid)
        raise BadConfig(
            f"{_shown(folder)} belongs to user {found.st_uid}, not to you",
            "the same command without sudo" if is_sudo else chown,
        )
    if found.st_mode & stat.S_IWOTH:
        raise BadConfig(
            f"other users can write to {_shown(folder)}", f"chmod 700 {_shown(folder)}"
        )


def parse_config(text: str, file: bytes) -> Config:
    """Return the configuration in `text`; error messages name `file`.

    Raises BadConfig with every problem of the text.
    """
    try:
        tables = parse_toml(text)
    except Unparsable as error:
        raise syntax_error(file, error, EDIT) from error
    config, problems = _read_tables(tables)
    if problems:
        raise invalid_file(file, text, problems, EDIT)
    return dataclasses.replace(config, checksum=f"{zlib.crc32(text.encode()):08x}")


def find_problems(tables: Mapping[str, object]) -> list[ConfigProblem]:
    """Return what would be wrong with a file that has these tables."""
    return _read_tables(tables)[1]


def _read_tables(tables: Mapping[str, object]) -> tuple[Config, list[ConfigProblem]]:
    """Return the configuration without the values that have a problem, and the problems."""
    validator = TableValidator()
    # Every top-level key is optional, so `convert` never returns None here.
    values = validator.convert(tables, ConfigTables, ()) or ConfigTables()
    reader = _PathReader(validator.problems)
    refused = reader.folders(values.roots.refuse, ("roots", "refuse"))
    allowed = reader.folders(values.roots.allow, ("roots", "allow"))
    places = RefusedPlaces(
        canonical_path("~"), refused=refused, allowed=allowed, account_home=account_home()
    )
    # The validator puts None in place of a table without a usable path.
    parents = reader.parents(cast("list[ParentTable | None]", values.parent), places)
    config = Config(
        parents,
        refused,
        allowed,
        values.sessions,
        values.approval,
        reader.wall(values.confine),
        values.notify,
        values.ui,
    )
    return config, validator.problems


class _PathReader:
    """Turns the paths in the file into canonical paths, and collects the problems."""

    def __init__(self, problems: list[ConfigProblem]) -> None:
        self._problems = problems

    def folders(self, typed: Iterable[str], key: KeyPath) -> tuple[bytes, ...]:
        """Return the canonical paths of the list at `key`, without those that have a problem."""
        paths = (self._folder(path, key) for path in typed)
        return tuple(path for path in paths if path is not None)

    def parents(
        self, tables: Iterable[ParentTable | None], places: RefusedPlaces
    ) -> tuple[Parent, ...]:
        """Return the parents, without those that have a problem."""
        parents: dict[bytes, Parent] = {}
        for index, table in enumerate(tables):
            key = ("parent", index, "path")
            path = self._folder(table.path, key) if table is not None else None
            if table is None or path is None:
                continue
            if reason := parent_refusal(places, path):
                shown = safe_label(path, limit=None)
                self._add(key, f"{shown} cannot be a parent: {reason}")
            elif path in parents:
                self._add(key, "an earlier table already has this parent")
            else:
                parents[path] = _parent(path, table)
        return tuple(parents.values())

    def wall(self, table: ConfineTable) -> WallSettings:
        """Return the settings of the wall, without the paths that have a problem."""
        values: dict[str, Any] = asdict(table)
        for name, value in values.items():
            if isinstance(value, list):
                values[name] = self._written(value, ("confine", name))
        return WallSettings(**values)

    def _written(self, typed: Iterable[str], key: KeyPath) -> tuple[bytes, ...]:
        """Return the absolute paths of the list at `key`, with symlinks as the user wrote them."""
        paths = (self._absolute(path, key) for path in typed)
        return tuple(os.fsencode(os.path.normpath(path)) for path in paths if path is not None)

    def _folder(self, typed: str, key: KeyPath) -> bytes | None:
        return canonical_path(typed) if self._absolute(typed, key) is not None else None

    def _absolute(self, typed: str, key: KeyPath) -> str | None:
        if (path := os.path.expanduser(typed)).startswith("/"):
            return path
        self._add(key, f"{safe_label(typed)} does not start with / or ~/, or has no such user")
        return None

    def _add(self, key: KeyPath, text: str) -> None:
        self._problems.append(ConfigProblem(key, text))


def _parent(path: bytes, table: ParentTable) -> Parent:
    return Parent(
        path,
        table.depth,
        tuple(bytes_of(item) for item in table.skip),
        table.nested,
        tuple(bytes_of(item) for item in table.project_files),
        table.mounts,
    )


def _shown(file: bytes) -> str:
    return safe_label(file, limit=None)
