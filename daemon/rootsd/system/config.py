"""Read and validate the configuration file."""

from __future__ import annotations

import difflib
import os
import re
import stat
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rootsd.core.errors import BadConfig
from rootsd.core.guard import Guard
from rootsd.core.labels import safe_label
from rootsd.core.model import NestedPolicy, Parent
from rootsd.core.parsing import Unparsable, parse_toml
from rootsd.core.paths import RefusedPlaces, bytes_of
from rootsd.disk.hung_mounts import HungMountDetector
from rootsd.disk.safety import explain_alias

EDIT = "rootsd config edit"
MAX_DEPTH = 64
MAX_BYTES = 1 << 20
_ADMINISTRATOR = 0
_ROOTS_KEYS = ("refuse", "allow")
MOST_CONNECTIONS = 1 << 16
_TOP_KEYS = ("approval", "parent", "roots", "sessions")
_APPROVAL_KEYS = ("guard", "agents", "markers")
_PARENT_KEYS = ("path", "depth", "skip", "nested", "project_files")
_PROJECT_FILE = re.compile(r"!?(?:\*\.)?[^/*?!\[\]\0]+")
_SESSION_KEYS = ("max_connections", "max_connections_per_process")
_HEADER = re.compile(r"\s*\[\[\s*[\"']?parent[\"']?\s*\]\]")


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """How many MCP connections there may be, of all programs and of one process."""

    max_connections: int = 1024
    max_connections_per_process: int = 64


@dataclass(frozen=True, slots=True)
class Approval:
    """Who may decide: the guard of a store that is made anew, and agents beside those known, by
    the names of their processes and the variables that they set."""

    guard: Guard = Guard.AGENTS
    agents: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """What the user configured. All paths are canonical, symlinks followed.

    `refused` and `allowed` are those of `rootsd.core.paths.RefusedPlaces`; `checksum` tells one
    text from another.
    """

    parents: tuple[Parent, ...] = ()
    refused: tuple[bytes, ...] = ()
    allowed: tuple[bytes, ...] = ()
    sessions: SessionLimits = SessionLimits()
    approval: Approval = Approval()
    checksum: str = field(default="00000000", compare=False)

    def limiting(self, places: RefusedPlaces) -> RefusedPlaces:
        """Return `places` with what is configured about them."""
        parents = tuple(parent.path for parent in self.parents)
        return places._replace(refused=self.refused, allowed=self.allowed, parents=parents)


def read_config(file: bytes) -> Config:
    """The configuration in `file`; the empty one where there is no such file.

    Raises BadConfig where it cannot be read or says something that has no meaning, and if another
    user could have written it.
    """
    ensure_own_folder(file)
    try:
        # Not blocking: a FIFO in this place must not hang the daemon.
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
    """Raise BadConfig if the folder of the configuration `file` is another user's to change.

    A link to the folder is followed, since people keep their configuration elsewhere. The
    administrator may own it, who can change everything anyway.
    """
    folder = os.path.dirname(file)
    try:
        found = os.stat(folder)
    except OSError:
        return  # to read or write the file says what is wrong
    if found.st_uid not in (os.geteuid(), _ADMINISTRATOR):
        raise BadConfig(
            f"{_shown(folder)} belongs to user {found.st_uid}, not to you",
            f"sudo chown -R {os.geteuid()} {_shown(folder)}",
        )
    if found.st_mode & stat.S_IWOTH:
        raise BadConfig(
            f"other users can write to {_shown(folder)}", f"chmod 700 {_shown(folder)}"
        )


def parse_config(text: str, file: bytes) -> Config:
    """The configuration that `text` is; `file` is only named in errors. Raises BadConfig."""
    try:
        tables = parse_toml(text)
    except Unparsable as error:
        raise _syntax_error(file, error) from error
    reader = _ConfigReader(file, text)
    reader.check_keys(tables, _TOP_KEYS, None)
    refused, allowed = reader.roots(tables.get("roots", {}))
    entries = tables.get("parent", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise reader.wrong("parent", None, "it is written [[parent]], once per folder")
    parents = tuple(reader.parent(entry, index) for index, entry in enumerate(entries))
    for index, parent in enumerate(parents):
        if any(parent.path == earlier.path for earlier in parents[:index]):
            raise reader.wrong("path", index, "this folder is a parent already, further up")
    sessions = reader.sessions(tables.get("sessions", {}))
    approval = reader.approval(tables.get("approval", {}))
    checksum = f"{zlib.crc32(text.encode()):08x}"
    return Config(parents, refused, allowed, sessions, approval, checksum)


def canonical_path(typed: str) -> bytes:
    """The canonical path of `typed`: `~` expanded, absolute, symlinks followed as far as it is,
    and as far as file systems answer."""
    absolute = os.path.join(os.getcwdb(), bytes_of(os.path.expanduser(typed)))
    return HungMountDetector().real_path(absolute)


def parent_refusal(places: RefusedPlaces, path: bytes) -> str | None:
    """Why `path` can never be a parent, by its name or by what it is; None if nothing does."""
    reason = places.why_no_parent(path)
    return reason or (explain_alias(path) if HungMountDetector().answers(path) else None)


def find_same_folder(paths: Iterable[bytes], path: bytes) -> bytes | None:
    """Which of `paths` is the folder at `path` under another name; a bind mount gives it one."""
    answering = HungMountDetector()
    for other in paths:
        if other != path and answering.answers(other):
            with suppress(OSError):
                if os.path.samefile(other, path):
                    return other
    return None


class _ConfigReader:
    """Turns tables into values, and knows where in the text a key stands."""

    def __init__(self, file: bytes, text: str) -> None:
        self._file = file
        self._lines = text.split("\n")  # not splitlines, which cuts at other characters too
        self._refused = RefusedPlaces(home=canonical_path("~"))

    def roots(self, table: object) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        """The places refused and allowed; parents are judged by them from then on.

        Raises BadConfig.
        """
        if not isinstance(table, dict):
            raise self.wrong("roots", None, 'it is written [roots], then refuse = ["~/vault"]')
        self.check_keys(table, _ROOTS_KEYS, None)
        refused, allowed = (self._places(key, table.get(key, [])) for key in _ROOTS_KEYS)
        self._refused = self._refused._replace(refused=refused, allowed=allowed)
        return refused, allowed

    def parent(self, entry: Mapping[str, Any], index: int) -> Parent:
        """The `index`-th parent. Raises BadConfig."""
        self.check_keys(entry, _PARENT_KEYS, index)
        if "path" not in entry:
            raise self.wrong("path", index, "a parent needs a path")
        forms: Mapping[str, Callable[[str, int, object], Any]] = {
            "path": self._path,
            "depth": self._depth,
            "skip": self._skip,
            "nested": self._nested,
            "project_files": self._project_files,
        }
        return Parent(**{key: forms[key](key, index, raw) for key, raw in entry.items()})

    def sessions(self, table: object) -> SessionLimits:
        """The caps on MCP connections. Raises BadConfig."""
        if not isinstance(table, dict):
            raise self.wrong("sessions", None, "it is written [sessions], with its keys below")
        self.check_keys(table, _SESSION_KEYS, None)
        for key, raw in table.items():
            if (
                isinstance(raw, bool)
                or not isinstance(raw, int)
                or not 1 <= raw <= MOST_CONNECTIONS
            ):
                whole = f"it is not a whole number from 1 to {MOST_CONNECTIONS}"
                raise self.wrong(key, None, whole)
        return SessionLimits(**table)

    def approval(self, table: object) -> Approval:
        """Who may decide. Raises BadConfig."""
        if not isinstance(table, dict):
            raise self.wrong("approval", None, 'it is written [approval], then guard = "agents"')
        self.check_keys(table, _APPROVAL_KEYS, None)
        try:
            guard = Guard(str(table.get("guard", Guard.AGENTS.value)))
        except ValueError:
            words = ", ".join(member.value for member in Guard)
            raise self.wrong("guard", None, f"it is none of {words}") from None
        agents, markers = (self._names(key, table.get(key, [])) for key in _APPROVAL_KEYS[1:])
        return Approval(guard, agents, markers)

    def check_keys(
        self, table: Mapping[str, Any], known: Collection[str], index: int | None
    ) -> None:
        """Raise BadConfig for the first key that is not known, with the nearest that is."""
        for key in table:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
                raise self.wrong(key, index, f"there is no such key; {hint}")

    def wrong(self, key: str, index: int | None, what: str) -> BadConfig:
        """The error about `key` in the `index`-th parent, or at the top where that is None."""
        where = f"{_shown(self._file)}, line {self._line_of(key, index)}"
        return BadConfig(f"{where}, key {safe_label(key)}: {what}", EDIT)

    def _names(self, key: str, raw: object) -> tuple[str, ...]:
        if not isinstance(raw, list) or not all(isinstance(item, str) and item for item in raw):
            raise self.wrong(key, None, 'it is not a list of names: ["my-agent"]')
        return tuple(raw)

    def _places(self, key: str, raw: object) -> tuple[bytes, ...]:
        if not isinstance(raw, list):
            raise self.wrong(key, None, 'it is not a list of paths: ["~/vault"]')
        return tuple(self._absolute(key, None, item) for item in raw)

    def _absolute(self, key: str, index: int | None, raw: object) -> bytes:
        if not isinstance(raw, str) or not raw or "\0" in raw:
            raise self.wrong(key, index, "it is not a path in quotes")
        if not os.path.expanduser(raw).startswith("/"):
            raise self.wrong(key, index, "the path has to start with / or ~/")
        return canonical_path(raw)

    def _path(self, key: str, index: int, raw: object) -> bytes:
        path = self._absolute(key, index, raw)
        if reason := parent_refusal(self._refused, path):
            shown = safe_label(path, limit=None)
            raise self.wrong(key, index, f"{shown} cannot be a parent: {reason}")
        return path

    def _depth(self, key: str, index: int, raw: object) -> int:
        if isinstance(raw, bool) or not isinstance(raw, int) or not 1 <= raw <= MAX_DEPTH:
            raise self.wrong(key, index, f"it is not a whole number from 1 to {MAX_DEPTH}")
        return raw

    def _skip(self, key: str, index: int, raw: object) -> tuple[bytes, ...]:
        if not isinstance(raw, list) or not all(isinstance(item, str) for item in raw):
            raise self.wrong(key, index, 'it is not a list of names or globs: ["old", "tmp-*"]')
        return tuple(bytes_of(item) for item in raw)

    def _project_files(self, key: str, index: int, raw: object) -> tuple[bytes, ...]:
        if not isinstance(raw, list) or not all(
            isinstance(item, str) and _PROJECT_FILE.fullmatch(item) for item in raw
        ):
            examples = '["Justfile", "*.nimble", "!package.json"]'
            raise self.wrong(key, index, f"it is not a list of names like {examples}")
        return tuple(bytes_of(item) for item in raw)

    def _nested(self, key: str, index: int, raw: object) -> NestedPolicy:
        try:
            return NestedPolicy(str(raw))
        except ValueError:
            words = ", ".join(member.value for member in NestedPolicy)
            raise self.wrong(key, index, f"it is none of {words}") from None

    def _line_of(self, key: str, index: int | None) -> int:
        """The line of `key`, or of the table it belongs to, counted from 1.

        tomllib does not tell positions, so this reads the text as a person would.
        """
        headers = [n for n, line in enumerate(self._lines) if _HEADER.match(line)]
        start, end = 0, len(self._lines)
        if index is not None and index < len(headers):
            start = headers[index]
            end = headers[index + 1] if index + 1 < len(headers) else end
        names: Callable[[str], object] = re.compile(
            rf"[\s\[{{,]*[\"']?{re.escape(key)}[\"']?\s*[=.\]]"
        ).match
        hits = (n for n in range(start, end) if names(self._lines[n]))
        return next(hits, start) + 1


def _syntax_error(file: bytes, error: Unparsable) -> BadConfig:
    place = re.search(r" \((?:at (line \d+), column \d+|at (end of document))\)$", str(error))
    if place is None:
        return BadConfig(f"{_shown(file)}: {error}", EDIT)
    what = str(error)[: place.start()]
    return BadConfig(f"{_shown(file)}, {place[1] or place[2]}: {what}", EDIT)


def _shown(file: bytes) -> str:
    return safe_label(file, limit=None)
