"""Edit `config.toml` and its parents, and keep the user's comments, order, and layout.

An edit maps text to text, and is verified: the result must parse to exactly the intended values.
Parents are validated before they are written.
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

import rootsd
from rootsd.cli.answers.invocation import Invocation
from rootsd.config.configuration import (
    Config,
    ensure_own_folder,
    find_problems,
    parse_config,
    read_config,
)
from rootsd.config.parent_paths import canonical_path, find_same_folder, parent_refusal
from rootsd.config.reference import HELP, KeyReference, toml_text
from rootsd.core.errors import BadConfig, ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.parsing import Unparsable, parse_toml
from rootsd.core.paths import RefusedPlaces, contains, is_utf8, text_of
from rootsd.files.private_files import make_folder
from rootsd.places import runtime_dir
from rootsd.wire.decisions import ApplyMode

_NEW_FILE_TEXT = "# The folders that rootsd watches for projects. See: rootsd parent --help\n"
_HEADER = re.compile(r"\s*\[\[\s*[\"']?parent[\"']?\s*\]\]")
_ANY_HEADER = re.compile(r"\s*\[")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_IDLE = re.compile(r"\s*(#.*)?$")


class CannotEdit(RootsdError):
    """The configuration cannot be edited; nothing was changed."""


def schema_file() -> Path | None:
    """Return the JSON Schema of the configuration; None if the installation lacks it."""
    package = Path(rootsd.__file__).parent
    for folder in (package / "share" / "schema", package.parent.parent / "docs" / "schema"):
        if (file := folder / "config.schema.json").is_file():
            return file
    return None


def new_file_text() -> str:
    """Return the text of a new configuration: a comment, and the schema for editors.

    Editors with Taplo read the schema's URL from a comment that starts with `#:schema`
    (https://taplo.tamasfe.dev/configuration/directives.html).
    """
    schema = schema_file()
    return _NEW_FILE_TEXT if schema is None else f"#:schema {schema.as_uri()}\n{_NEW_FILE_TEXT}"


def with_parent(text: str, entry: Mapping[str, Any]) -> str:
    """Return `text` with one more parent at the end."""
    entries = _entries(text)
    if "parent" in _tables(text) and not _is_array_of_tables(text):
        document = tomlkit.parse(text)
        document["parent"].append(dict(entry))
        return _verified(document.as_string(), text, {"parent": [*entries, dict(entry)]})
    lines = [f"{key} = {tomlkit.item(value).as_string()}" for key, value in entry.items()]
    new = _with_lines(text, ["[[parent]]", *lines])
    return _verified(new, text, {"parent": [*entries, dict(entry)]})


def without_parent(text: str, index: int) -> str:
    """Return `text` without its `index`-th parent. Comments above and below stay."""
    entries = _entries(text)
    left = entries[:index] + entries[index + 1 :]
    if not _is_array_of_tables(text):
        document = tomlkit.parse(text)
        del document["parent"][index]
        return _verified(document.as_string(), text, {"parent": left})
    lines = _LINE.findall(text)  # str.splitlines also splits at characters that TOML does not
    start, end = _span(lines, index)
    if start and end < len(lines) and not lines[start - 1].strip() and not lines[end].strip():
        end += 1
    return _verified("".join(lines[:start] + lines[end:]), text, {"parent": left})


def with_parent_changed(text: str, index: int, changes: Mapping[str, Any]) -> str:
    """Return `text` with these keys set in its `index`-th parent."""
    entries = _entries(text)
    entries[index] = {**entries[index], **changes}
    document = tomlkit.parse(text)
    _set_keys(document["parent"][index], changes)
    return _verified(document.as_string(), text, {"parent": entries})


def with_value(text: str, table: str, key: str, value: object) -> str:
    """Return `text` with a key of a table set, and with that table if it was missing."""
    values = _tables(text)
    changed = {table: {**values.get(table, {}), key: value}}
    if table not in values:
        line = f"{key} = {tomlkit.item(value).as_string()}"
        return _verified(_with_lines(text, [f"[{table}]", line]), text, changed)
    document = tomlkit.parse(text)
    _set_keys(document[table], {key: value})
    return _verified(document.as_string(), text, changed)


def without_value(text: str, table: str, key: str) -> str:
    """Return `text` without a key of a table. The table itself stays, even if it is empty."""
    values = _tables(text)
    if key not in values.get(table, {}):
        return text
    document = tomlkit.parse(text)
    del document[table][key]
    left = {name: value for name, value in values[table].items() if name != key}
    new = document.as_string()
    if text.endswith("\n") and not new.endswith("\n"):  # tomlkit drops it with the last key
        new += "\n"
    return _verified(new, text, {table: left})


@contextmanager
def edit_config(file: bytes) -> Iterator[Callable[[Callable[[str], str]], None]]:
    """Lock the file against other runs of the command line, and yield a function that edits it.

    That function takes an edit (text to text) and writes the result atomically. The result is
    synced to disk, and keeps the mode and owner of the old file. Raises CannotEdit.
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
    """Yield a function that verifies the result of an edit, and writes nothing."""

    def check(edit: Callable[[str], str]) -> None:
        edit(read_text(_target(file)))

    yield check


def read_text(file: bytes) -> str:
    """Return the text of the configuration, or of a new one if there is none.

    Raises BadConfig if the file cannot be read as text.
    """
    try:
        with open(file, encoding="utf-8", newline="") as stream:
            return stream.read()
    except FileNotFoundError:
        return new_file_text()
    except (OSError, UnicodeDecodeError) as error:
        shown = safe_label(file, limit=None)
        raise BadConfig(f"{shown} cannot be read: {error}", f"ls -l {shown}") from error


def replace_text(file: bytes, old: str, new: str) -> None:
    """Replace the whole text `old` with `new`. Raises CannotEdit.

    If another process has changed the file in the meantime, keep its text, save `new` beside it,
    and raise CannotEdit.
    """

    def edit(text: str) -> str:
        if text != old:
            kept = safe_label(save_aside(file, b".yours", new), limit=None)
            raise CannotEdit(
                f"another program changed the configuration meanwhile; your text is in {kept}",
                "rootsd config edit",
            )
        return new

    with edit_config(file) as change:
        change(edit)


def save_aside(file: bytes, ending: bytes, text: str) -> bytes:
    """Write `text` to a private file beside the configuration, and return the file's path."""
    aside = file + ending
    try:
        make_folder(Path(os.fsdecode(os.path.dirname(aside))))
        _write(aside, text, None)
    except OSError as error:
        raise _write_error(aside, error) from error
    return aside


def _target(file: bytes) -> bytes:
    """Return the file behind a symbolic link. Raises CannotEdit if it leaves the home folder."""
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
            old, status = new_file_text(), None
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
    """Return whether the parents are written as [[parent]], not as one inline array."""
    return isinstance(tomlkit.parse(text).get("parent"), AoT)


def _span(lines: list[str], index: int) -> tuple[int, int]:
    """Return the range of lines of the `index`-th parent, without comments and blanks after it."""
    start = [n for n, line in enumerate(lines) if _HEADER.match(line)][index]
    end = next(
        (n for n in range(start + 1, len(lines)) if _ANY_HEADER.match(lines[n])), len(lines)
    )
    while _IDLE.match(lines[end - 1]):
        end -= 1
    return start, end


def _with_lines(text: str, lines: Sequence[str]) -> str:
    """Return `text` with these lines at the end, behind a blank line."""
    gap = "\n" if text.strip() else ""
    ended = text if not text or text.endswith("\n") else text + "\n"
    return ended + gap + "\n".join(lines) + "\n"


def _set_keys(table: Any, changes: Mapping[str, Any]) -> None:  # noqa: ANN401 - of tomlkit
    """Set keys in a table of tomlkit, with new ones behind the others."""
    body = table.value.body
    # tomlkit assigns the comments above the next table to this one. Insert new keys above them.
    behind: list[Any] = []
    while body and body[-1][0] is None:
        behind.insert(0, body.pop())
    for key, value in changes.items():
        table[key] = value
    body.extend(behind)


def _verified(new: str, old: str, changed: Mapping[str, object]) -> str:
    """Return `new` if its values are those of `old` with these tables. Raises CannotEdit."""
    intended = {"parent": [], **_tables(old), **changed}
    try:
        actual = parse_toml(new)
    except Unparsable:
        actual = {}
    if {"parent": [], **actual} != intended:
        raise CannotEdit(
            "the layout of the configuration is too unusual to edit it automatically",
            "rootsd config edit",
        )
    return new


def _write_error(path: bytes, error: OSError) -> CannotEdit:
    shown = safe_label(path, limit=None)
    return CannotEdit(f"{shown} cannot be written: {error.strerror}", f"ls -ld {shown}")


class BadParent(RootsdError):
    """A folder that cannot be a parent; nothing was written."""


class UnknownParent(RootsdError):
    """The folder is not a parent."""

    code = ErrorCode.NOTHING_MATCHED


def validate_parent(invocation: Invocation, typed: str) -> bytes:
    """Return the canonical path of a folder that may become a parent. Raises BadParent."""
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
            f"the path {shown} is not UTF-8, so config.toml cannot name it", "rootsd up ~"
        )
    if reason := parent_refusal(_refused_places(invocation), path):
        raise BadParent(f"{shown} cannot be a parent: {reason}", "rootsd up ~/src")
    if not os.access(path, os.R_OK | os.X_OK):
        raise BadParent(f"you cannot read {shown}", f"ls -ld {shown}")
    known = (parent.path for parent in read_config(invocation.places.config_file).parents)
    if (other := find_same_folder(known, path)) is not None:
        raise BadParent(
            f"{shown} is the same folder as the parent {safe_label(other, limit=None)}",
            "rootsd parent ls",
        )
    return path


def add_parents(
    invocation: Invocation,
    paths: Sequence[bytes],
    settings: Mapping[str, Any],
    effect: ApplyMode = ApplyMode.APPLY,
) -> list[bytes]:
    """Add the paths that are not parents yet to the configuration, and return them."""
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
        if fresh := missing():  # again under the lock: another run may have added them
            change(edit)
    return fresh


def remove_parent(
    invocation: Invocation, typed: str, effect: ApplyMode = ApplyMode.APPLY
) -> bytes:
    """Remove a parent from the configuration, and return its path. Raises UnknownParent."""
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
    """Set keys of a parent in the configuration, and return its path. Raises UnknownParent."""
    config_file = invocation.config_to_edit

    def edit(text: str) -> str:
        new = with_parent_changed(text, index, settings)
        parse_config(new, config_file)
        return new

    with _edit_or_check(config_file, effect) as change:
        path, index = _find_parent(read_config(config_file), typed)
        change(edit)
    return path


def set_key(
    invocation: Invocation, key: KeyReference, value: object, effect: ApplyMode = ApplyMode.APPLY
) -> None:
    """Set a key in the configuration. Raises BadConfig, and then nothing is written."""
    name = key.full_name
    if problems := find_problems({key.table: {key.name: value}}):
        shown = safe_label(value if isinstance(value, str) else toml_text(value))
        raise BadConfig(
            f"{name} cannot be {shown}: {problems[0].text}; nothing was changed", f"{HELP} {name}"
        )
    _edit_key(invocation, lambda text: with_value(text, key.table, key.name, value), effect)


def unset_key(
    invocation: Invocation, key: KeyReference, effect: ApplyMode = ApplyMode.APPLY
) -> bool:
    """Remove a key from the configuration, and return whether it was there. Raises BadConfig."""
    return _edit_key(invocation, lambda text: without_value(text, key.table, key.name), effect)


def _edit_key(invocation: Invocation, edit: Callable[[str], str], effect: ApplyMode) -> bool:
    """Edit the configuration if the result is valid, and return whether its text changed."""
    config_file, has_changed = invocation.config_to_edit, False

    def edit_valid(text: str) -> str:
        nonlocal has_changed
        new = edit(text)
        has_changed = new != text
        try:
            parse_config(new, config_file)
        except BadConfig as error:
            raise BadConfig(f"{error.message}\nnothing was changed", error.remedy) from error
        return new

    with _edit_or_check(config_file, effect) as change:
        change(edit_valid)
    return has_changed


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
    raise UnknownParent(f"{safe_label(path, limit=None)} is not a parent", "rootsd parent ls")


def _refused_places(invocation: Invocation) -> RefusedPlaces:
    places = invocation.places
    own = [
        places.config,
        places.state,
        places.log,
        places.data,
        runtime_dir.find_runtime_dir().path,
    ]
    all_but_own = read_config(places.config_file).with_configured_places(
        RefusedPlaces(canonical_path("~"), account_home=runtime_dir.account_home())
    )
    return all_but_own._replace(own=tuple(os.path.realpath(folder) for folder in own))


def _path_in_file(path: bytes) -> str:
    """Return the path as `~/src`, which is readable and survives a move of the home folder."""
    home = canonical_path("~")
    if home != b"/" and path.startswith(home + b"/"):
        return "~" + text_of(path[len(home) :])
    return "~" if path == home else text_of(path)


def _nearest_existing_folder(path: bytes) -> str:
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return safe_label(path, limit=None)
