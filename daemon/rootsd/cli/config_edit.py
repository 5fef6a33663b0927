"""Edit `config.toml` and its parents, and keep the user's comments and layout.

Edits of `config.toml` that leave the user's comments, order and layout alone.

An edit is text to text, and checked: what comes out must parse to exactly what was meant.

Parents as the command line handles them: validated first, then written into the file.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import AoT

from rootsd.cli.invocation import Invocation
from rootsd.core.errors import BadConfig, ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.parsing import Unparsable, parse_toml
from rootsd.core.paths import RefusedPlaces, contains, is_utf8, text_of
from rootsd.system import runtime_dir
from rootsd.system.config import (
    Config,
    canonical_path,
    ensure_own_folder,
    find_same_folder,
    parent_refusal,
    parse_config,
    read_config,
)
from rootsd.system.private_files import make_folder
from rootsd.wire.decisions import ApplyMode

NEW_FILE_TEXT = "# The folders in which rootsd finds projects. See: rootsd parent --help\n"
_HEADER = re.compile(r"\s*\[\[\s*[\"']?parent[\"']?\s*\]\]")
_ANY_HEADER = re.compile(r"\s*\[")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_IDLE = re.compile(r"\s*(#.*)?$")


class CannotEdit(RootsdError):
    """The file cannot be changed by a program; nothing was changed."""


def with_parent(text: str, entry: Mapping[str, Any]) -> str:
    """`text` with one more parent, at the end."""
    entries = _entries(text)
    if "parent" in _tables(text) and not _is_array_of_tables(text):
        document = tomlkit.parse(text)
        document["parent"].append(dict(entry))
        return _verified(document.as_string(), text, [*entries, dict(entry)])
    lines = [f"{key} = {tomlkit.item(value).as_string()}" for key, value in entry.items()]
    gap = "\n" if text.strip() else ""
    ended = text if not text or text.endswith("\n") else text + "\n"
    new = ended + gap + "\n".join(["[[parent]]", *lines]) + "\n"
    return _verified(new, text, [*entries, dict(entry)])


def without_parent(text: str, index: int) -> str:
    """`text` without its `index`-th parent. Comments above and below stay."""
    entries = _entries(text)
    left = entries[:index] + entries[index + 1 :]
    if not _is_array_of_tables(text):
        document = tomlkit.parse(text)
        del document["parent"][index]
        return _verified(document.as_string(), text, left)
    lines = _LINE.findall(text)  # str.splitlines would cut at characters that end no line here
    start, end = _span(lines, index)
    if start and end < len(lines) and not lines[start - 1].strip() and not lines[end].strip():
        end += 1
    return _verified("".join(lines[:start] + lines[end:]), text, left)


def with_parent_changed(text: str, index: int, changes: Mapping[str, Any]) -> str:
    """`text` with these keys of its `index`-th parent set."""
    entries = _entries(text)
    entries[index] = {**entries[index], **changes}
    document = tomlkit.parse(text)
    table = document["parent"][index]
    body = table.value.body
    # tomlkit counts the comments above the next table to this one: a new key goes before them.
    behind: list[Any] = []
    while body and body[-1][0] is None:
        behind.insert(0, body.pop())
    for key, value in changes.items():
        table[key] = value
    body.extend(behind)
    return _verified(document.as_string(), text, entries)


@contextmanager
def edit_config(file: bytes) -> Iterator[Callable[[Callable[[str], str]], None]]:
    """Hold the file against other runs of the command line, and yield what changes it.

    The function that is yielded takes an edit, text to text, and writes its result: whole or not
    at all, on the disk before it returns, with the mode and the owner of the old file. Raises
    CannotEdit.
    """
    folder = os.path.dirname(file)
    try:
        make_folder(Path(os.fsdecode(folder)))
        ensure_own_folder(file)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _write_error(folder, error) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lambda edit: _rewrite(_target(file), edit)
    finally:
        os.close(lock)


@contextmanager
def check_edit(file: bytes) -> Iterator[Callable[[Callable[[str], str]], None]]:
    """As `edited`, but what is yielded only checks what an edit would make, and writes nothing."""

    def check(edit: Callable[[str], str]) -> None:
        edit(read_text(_target(file)))

    yield check


def read_text(file: bytes) -> str:
    """The text of the configuration; what a new one begins with where there is none.

    Raises BadConfig where it cannot be read as text.
    """
    try:
        with open(file, encoding="utf-8", newline="") as stream:
            return stream.read()
    except FileNotFoundError:
        return NEW_FILE_TEXT
    except (OSError, UnicodeDecodeError) as error:
        shown = safe_label(file, limit=None)
        raise BadConfig(f"{shown} cannot be read: {error}", f"ls -l {shown}") from error


def replace_text(file: bytes, old: str, new: str) -> None:
    """Write `new` in place of `old`, comments and all. Raises CannotEdit, also where somebody else
    has written it meanwhile: their text stays, and ours is kept beside it."""

    def edit(text: str) -> str:
        if text != old:
            kept = safe_label(save_aside(file, b".yours", new), limit=None)
            raise CannotEdit(
                f"somebody else changed the configuration meanwhile; your text is kept in {kept}",
                "rootsd config edit",
            )
        return new

    with edit_config(file) as change:
        change(edit)


def save_aside(file: bytes, ending: bytes, text: str) -> bytes:
    """Write `text` beside the configuration, readable by this user alone; returns where."""
    aside = file + ending
    try:
        make_folder(Path(os.fsdecode(os.path.dirname(aside))))
        _write(aside, text, None)
    except OSError as error:
        raise _write_error(aside, error) from error
    return aside


def _target(file: bytes) -> bytes:
    """Where the text really is. A link is followed inside the home folder alone."""
    target: bytes = os.path.realpath(file)
    homes = (os.path.realpath(os.path.expanduser(b"~")), os.path.realpath(os.path.dirname(file)))
    if os.path.islink(file) and not any(contains(home, target) for home in homes):
        shown, where = safe_label(file, limit=None), safe_label(target, limit=None)
        raise CannotEdit(f"{shown} leads out of your home folder, to {where}", f"edit {where}")
    return target


def _rewrite(file: bytes, edit: Callable[[str], str]) -> None:
    try:
        try:
            with open(file, encoding="utf-8", newline="") as stream:
                old, status = stream.read(), os.fstat(stream.fileno())
        except FileNotFoundError:
            old, status = NEW_FILE_TEXT, None
        new = edit(old)
        if new != old:
            _write(file, new, status)
    except OSError as error:
        raise _write_error(file, error) from error


def _write(file: bytes, text: str, status: os.stat_result | None) -> None:
    folder = os.path.dirname(file)
    fd, fresh = tempfile.mkstemp(prefix=b".config-", suffix=b".new", dir=folder)
    try:
        with open(fd, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            if status is not None:
                os.fchmod(fd, stat.S_IMODE(status.st_mode))
                if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(fd, status.st_uid, status.st_gid)
            stream.flush()
            os.fsync(fd)
        os.replace(fresh, file)
    except BaseException:
        os.unlink(fresh)
        raise
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder_fd)
    finally:
        os.close(folder_fd)


def _tables(text: str) -> dict[str, Any]:
    try:
        return parse_toml(text)
    except Unparsable as error:
        raise CannotEdit(
            f"the configuration cannot be changed: {error}", "rootsd config check"
        ) from error


def _entries(text: str) -> list[dict[str, Any]]:
    return list(_tables(text).get("parent", []))


def _is_array_of_tables(text: str) -> bool:
    """Whether the parents are written [[parent]], not as one inline array."""
    return isinstance(tomlkit.parse(text).get("parent"), AoT)


def _span(lines: list[str], index: int) -> tuple[int, int]:
    """The lines of the `index`-th parent, without the comments and blank lines behind it."""
    start = [n for n, line in enumerate(lines) if _HEADER.match(line)][index]
    end = next(
        (n for n in range(start + 1, len(lines)) if _ANY_HEADER.match(lines[n])), len(lines)
    )
    while _IDLE.match(lines[end - 1]):
        end -= 1
    return start, end


def _verified(new: str, old: str, parents: list[dict[str, Any]]) -> str:
    """`new`, if it says what `old` says with these parents."""
    meant = {**_tables(old), "parent": parents}
    try:
        said = parse_toml(new)
    except Unparsable:
        said = {}
    if {"parent": [], **said} != meant:
        raise CannotEdit(
            "the configuration is written too unusually to be changed by a program",
            "rootsd parent ls, then edit the file it names",
        )
    return new


def _write_error(path: bytes, error: OSError) -> CannotEdit:
    shown = safe_label(path, limit=None)
    return CannotEdit(f"{shown} cannot be written: {error.strerror}", f"ls -ld {shown}")


class BadParent(RootsdError):
    """A folder that cannot be a parent; nothing was written."""


class UnknownParent(RootsdError):
    """The folder is no parent."""

    code = ErrorCode.NOTHING_MATCHED


def validate_parent(invocation: Invocation, typed: str) -> bytes:
    """The canonical path of a folder that may be a parent. Raises BadParent."""
    path = canonical_path(typed)
    shown = safe_label(path, limit=None)
    try:
        found = os.stat(path)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise BadParent(
                f"{shown} does not exist", f"ls {_nearest_existing_folder(path)}"
            ) from error
        raise BadParent(f"{shown}: {error.strerror}", f"ls -ld {shown}") from error
    if not stat.S_ISDIR(found.st_mode):
        holder = safe_label(os.path.dirname(path), limit=None)
        raise BadParent(f"{shown} is not a folder", f"rootsd up {holder}")
    if not is_utf8(path):
        raise BadParent(
            f"{shown} is not UTF-8, so the configuration cannot name it", "rootsd up ~"
        )
    if reason := parent_refusal(_refused_places(invocation), path):
        raise BadParent(f"{shown} cannot be a parent: {reason}", "rootsd up ~/src")
    if not os.access(path, os.R_OK | os.X_OK):
        raise BadParent(f"{shown} cannot be read by you", f"ls -ld {shown}")
    known = (parent.path for parent in read_config(invocation.places.config_file).parents)
    if (other := find_same_folder(known, path)) is not None:
        told = f"{shown} is {safe_label(other, limit=None)}, a parent already, under another name"
        raise BadParent(told, "rootsd parent ls")
    return path


def add_parents(
    invocation: Invocation,
    paths: Sequence[bytes],
    settings: Mapping[str, Any],
    effect: ApplyMode = ApplyMode.APPLY,
) -> list[bytes]:
    """Write those that are no parents yet into the configuration; returns them."""
    config_file = invocation.config_to_edit

    def missing() -> list[bytes]:
        known = {parent.path for parent in read_config(config_file).parents}
        return [path for path in dict.fromkeys(paths) if path not in known]

    def edit(text: str) -> str:
        for path in fresh:
            text = with_parent(text, {"path": _path_in_file(path), **settings})
        parse_config(text, config_file)
        return text

    if not missing():
        return []
    with _edit_or_check(config_file, effect) as change:
        if fresh := missing():  # somebody else may have added them meanwhile
            change(edit)
    return fresh


def remove_parent(
    invocation: Invocation, typed: str, effect: ApplyMode = ApplyMode.APPLY
) -> bytes:
    """Take a parent out of the configuration; its path. Raises UnknownParent."""
    config_file = invocation.config_to_edit
    with _edit_or_check(config_file, effect) as change:
        path, index = _find_parent(read_config(config_file), typed)
        change(lambda text: without_parent(text, index))
    return path


def change_parent(
    invocation: Invocation,
    typed: str,
    settings: Mapping[str, Any],
    effect: ApplyMode = ApplyMode.APPLY,
) -> bytes:
    """Set keys of a parent in the configuration; its path. Raises UnknownParent."""
    config_file = invocation.config_to_edit

    def edit(text: str) -> str:
        new = with_parent_changed(text, index, settings)
        parse_config(new, config_file)
        return new

    with _edit_or_check(config_file, effect) as change:
        path, index = _find_parent(read_config(config_file), typed)
        change(edit)
    return path


def _edit_or_check(
    file: bytes, effect: ApplyMode
) -> AbstractContextManager[Callable[[Callable[[str], str]], None]]:
    match effect:
        case ApplyMode.APPLY:
            return edit_config(file)
        case ApplyMode.DRY_RUN:
            return check_edit(file)


def _find_parent(config: Config, typed: str) -> tuple[bytes, int]:
    path = canonical_path(typed)
    for index, parent in enumerate(config.parents):
        if parent.path == path:
            return path, index
    raise UnknownParent(f"{safe_label(path, limit=None)} is no parent", "rootsd parent ls")


def _refused_places(invocation: Invocation) -> RefusedPlaces:
    places = invocation.places
    own = [
        places.config,
        places.state,
        places.log,
        places.data,
        runtime_dir.find_runtime_dir().path,
    ]
    all_but_own = read_config(places.config_file).limiting(RefusedPlaces(canonical_path("~")))
    return all_but_own._replace(own=tuple(os.path.realpath(folder) for folder in own))


def _path_in_file(path: bytes) -> str:
    """The path as the file has it: `~/src` reads well and survives another home folder."""
    home = canonical_path("~")
    if home != b"/" and path.startswith(home + b"/"):
        return "~" + text_of(path[len(home) :])
    return "~" if path == home else text_of(path)


def _nearest_existing_folder(path: bytes) -> str:
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return safe_label(path, limit=None)
