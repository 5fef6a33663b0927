"""Edits of `config.toml` that leave the user's comments, order and layout alone.

An edit is text to text, and checked: what comes out must parse to exactly what was meant.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import AoT

from rootsd.core.errors import BadConfig, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.parsing import Unparsable, parse_toml
from rootsd.core.paths import contains
from rootsd.host.config import ensure_own_folder
from rootsd.host.private import make_folder

NEW_FILE = "# The folders in which rootsd finds projects. See: rootsd parent --help\n"
_HEADER = re.compile(r"\s*\[\[\s*[\"']?parent[\"']?\s*\]\]")
_ANY_HEADER = re.compile(r"\s*\[")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_IDLE = re.compile(r"\s*(#.*)?$")


class CannotEdit(RootsdError):
    """The file cannot be changed by a program; nothing was changed."""


def with_parent(text: str, entry: Mapping[str, Any]) -> str:
    """`text` with one more parent, at the end."""
    entries = _entries(text)
    if "parent" in _tables(text) and not _is_tables(text):
        document = tomlkit.parse(text)
        document["parent"].append(dict(entry))
        return _checked(document.as_string(), text, [*entries, dict(entry)])
    lines = [f"{key} = {tomlkit.item(value).as_string()}" for key, value in entry.items()]
    gap = "\n" if text.strip() else ""
    ended = text if not text or text.endswith("\n") else text + "\n"
    new = ended + gap + "\n".join(["[[parent]]", *lines]) + "\n"
    return _checked(new, text, [*entries, dict(entry)])


def without_parent(text: str, index: int) -> str:
    """`text` without its `index`-th parent. Comments above and below stay."""
    entries = _entries(text)
    left = entries[:index] + entries[index + 1 :]
    if not _is_tables(text):
        document = tomlkit.parse(text)
        del document["parent"][index]
        return _checked(document.as_string(), text, left)
    lines = _LINE.findall(text)  # str.splitlines would cut at characters that end no line here
    start, end = _span(lines, index)
    if start and end < len(lines) and not lines[start - 1].strip() and not lines[end].strip():
        end += 1
    return _checked("".join(lines[:start] + lines[end:]), text, left)


def with_changes(text: str, index: int, changes: Mapping[str, Any]) -> str:
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
    return _checked(document.as_string(), text, entries)


@contextmanager
def edited(file: bytes) -> Iterator[Callable[[Callable[[str], str]], None]]:
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
        raise _cannot(folder, error) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lambda edit: _rewrite(_target(file), edit)
    finally:
        os.close(lock)


@contextmanager
def rehearsed(file: bytes) -> Iterator[Callable[[Callable[[str], str]], None]]:
    """As `edited`, but what is yielded only checks what an edit would make, and writes nothing."""

    def check(edit: Callable[[str], str]) -> None:
        edit(text_in(_target(file)))

    yield check


def text_in(file: bytes) -> str:
    """The text of the configuration; what a new one begins with where there is none.

    Raises BadConfig where it cannot be read as text.
    """
    try:
        with open(file, encoding="utf-8", newline="") as stream:
            return stream.read()
    except FileNotFoundError:
        return NEW_FILE
    except (OSError, UnicodeDecodeError) as error:
        shown = safe_label(file, limit=None)
        raise BadConfig(f"{shown} cannot be read: {error}", f"ls -l {shown}") from error


def replaced(file: bytes, old: str, new: str) -> None:
    """Write `new` in place of `old`, comments and all. Raises CannotEdit, also where somebody else
    has written it meanwhile: their text stays, and ours is kept beside it."""

    def edit(text: str) -> str:
        if text != old:
            kept = safe_label(kept_aside(file, b".yours", new), limit=None)
            raise CannotEdit(
                f"somebody else changed the configuration meanwhile; your text is kept in {kept}",
                "rootsd config edit",
            )
        return new

    with edited(file) as change:
        change(edit)


def kept_aside(file: bytes, ending: bytes, text: str) -> bytes:
    """Write `text` beside the configuration, readable by this user alone; returns where."""
    aside = file + ending
    try:
        make_folder(Path(os.fsdecode(os.path.dirname(aside))))
        _write(aside, text, None)
    except OSError as error:
        raise _cannot(aside, error) from error
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
            old, status = NEW_FILE, None
        new = edit(old)
        if new != old:
            _write(file, new, status)
    except OSError as error:
        raise _cannot(file, error) from error


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


def _is_tables(text: str) -> bool:
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


def _checked(new: str, old: str, parents: list[dict[str, Any]]) -> str:
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


def _cannot(path: bytes, error: OSError) -> CannotEdit:
    shown = safe_label(path, limit=None)
    return CannotEdit(f"{shown} cannot be written: {error.strerror}", f"ls -ld {shown}")
