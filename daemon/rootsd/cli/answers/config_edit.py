"""Edit `config.toml` and its parents, and keep the user's comments, order, and layout.

An edit maps text to text. `settings.toml_spans` ensures that only the intended values change.
Parents are validated before they are written.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

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
from rootsd.config.reference import HELP, KeyReference
from rootsd.core.errors import BadConfig, ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.paths import RefusedPlaces, contains, is_utf8, text_of
from rootsd.core.suggestions import did_you_mean, nearest
from rootsd.files.private_files import FILE_MODE, make_folder, replace_private_file
from rootsd.places import runtime_dir
from rootsd.settings import toml_spans
from rootsd.settings.errors import NotEditable
from rootsd.wire.request import ApplyMode

_NEW_FILE_TEXT = "# The folders that rootsd watches for projects. See: rootsd parent --help\n"


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


@contextmanager
def edit_config(file: bytes) -> Iterator[Callable[[Callable[[str], str]], None]]:
    """Lock the file against other runs of the command line, and yield a function that edits it.

    That function takes an edit (text to text) and replaces the file with the result, which keeps
    the mode of the old file. Raises CannotEdit and NotPrivate.
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
        _applied(edit, read_text(_target(file)))

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
    except OSError as error:
        raise _write_error(aside, error) from error
    replace_private_file(Path(os.fsdecode(aside)), text.encode())
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
    mode = FILE_MODE
    try:
        with open(file, encoding="utf-8", newline="") as stream:
            old, mode = stream.read(), stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
    except FileNotFoundError:
        old = new_file_text()
    except OSError as error:
        raise _write_error(file, error) from error
    if (new := _applied(edit, old)) != old:
        replace_private_file(Path(os.fsdecode(file)), new.encode(), mode)


def _applied(edit: Callable[[str], str], text: str) -> str:
    """Return the result of an edit of `text`, with a newline at its end. Raises CannotEdit."""
    try:
        new = edit(text)
    except NotEditable as error:
        raise CannotEdit(
            f"the configuration cannot be changed: {error}", "rootsd config edit"
        ) from error
    # Without it, the next `echo … >>config.toml` would continue the last line.
    return new if new == text or new.endswith("\n") else new + "\n"


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
            entry = {"path": _path_in_file(path), **settings}
            text = toml_spans.append_table(text, ("parent",), entry)
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
        change(lambda text: toml_spans.remove_member(text, ("parent", index)))
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
        for key, value in settings.items():
            text = toml_spans.set_value(text, ("parent", index, key), value)
        parse_config(text, config_file)
        return text

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
        shown = safe_label(value if isinstance(value, str) else toml_spans.literal(value))
        raise BadConfig(
            f"{name} cannot be {shown}: {problems[0].text}; nothing was changed", f"{HELP} {name}"
        )
    keys = (key.table, key.name)
    _edit_key(invocation, lambda text: toml_spans.set_value(text, keys, value), effect)


def unset_key(
    invocation: Invocation, key: KeyReference, effect: ApplyMode = ApplyMode.APPLY
) -> bool:
    """Remove a key from the configuration, and return whether it was there. Raises BadConfig."""
    keys = (key.table, key.name)
    return _edit_key(invocation, lambda text: toml_spans.remove_member(text, keys), effect)


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
    shown = safe_label(path, limit=None)
    # Compare the last parts: paths that begin alike are alike.
    known = [safe_label(parent.path, limit=None) for parent in config.parents]
    ends = {os.path.basename(each): each for each in known}
    similar = [ends[end] for end in nearest(os.path.basename(shown), ends)]
    message = f"{shown} is not a parent{did_you_mean(similar)}"
    raise UnknownParent(message, "rootsd parent ls", typed=typed, choices=similar)


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
