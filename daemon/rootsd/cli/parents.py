"""Parents as the command line handles them: validated first, then written into the file."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from rootsd.cli import configfile
from rootsd.cli.session import Session
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.paths import RefusedPlaces, is_utf8, text_of
from rootsd.host import folders
from rootsd.host.config import (
    Config,
    canonical,
    parse_config,
    read_config,
    same_folder,
    why_no_parent,
)
from rootsd.wire.deciding import Effect


class BadParent(RootsdError):
    """A folder that cannot be a parent; nothing was written."""


class UnknownParent(RootsdError):
    """The folder is no parent."""

    code = ErrorCode.NOTHING_MATCHED


def checked_parent(session: Session, typed: str) -> bytes:
    """The canonical path of a folder that may be a parent. Raises BadParent."""
    path = canonical(typed)
    shown = safe_label(path, limit=None)
    try:
        found = os.stat(path)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise BadParent(f"{shown} does not exist", f"ls {_nearest(path)}") from error
        raise BadParent(f"{shown}: {error.strerror}", f"ls -ld {shown}") from error
    if not stat.S_ISDIR(found.st_mode):
        holder = safe_label(os.path.dirname(path), limit=None)
        raise BadParent(f"{shown} is not a folder", f"rootsd up {holder}")
    if not is_utf8(path):
        raise BadParent(
            f"{shown} is not UTF-8, so the configuration cannot name it", "rootsd up ~"
        )
    if reason := why_no_parent(_refused(session), path):
        raise BadParent(f"{shown} cannot be a parent: {reason}", "rootsd up ~/src")
    if not os.access(path, os.R_OK | os.X_OK):
        raise BadParent(f"{shown} cannot be read by you", f"ls -ld {shown}")
    known = (parent.path for parent in read_config(session.places.config_file).parents)
    if (other := same_folder(known, path)) is not None:
        told = f"{shown} is {safe_label(other, limit=None)}, a parent already, under another name"
        raise BadParent(told, "rootsd parent ls")
    return path


def add(
    session: Session,
    paths: Sequence[bytes],
    settings: Mapping[str, Any],
    effect: Effect = Effect.APPLY,
) -> list[bytes]:
    """Write those that are no parents yet into the configuration; returns them."""
    config_file = session.config_to_edit

    def missing() -> list[bytes]:
        known = {parent.path for parent in read_config(config_file).parents}
        return [path for path in dict.fromkeys(paths) if path not in known]

    def edit(text: str) -> str:
        for path in fresh:
            text = configfile.with_parent(text, {"path": _written(path), **settings})
        parse_config(text, config_file)
        return text

    if not missing():
        return []
    with _editing(config_file, effect) as change:
        if fresh := missing():  # somebody else may have added them meanwhile
            change(edit)
    return fresh


def remove(session: Session, typed: str, effect: Effect = Effect.APPLY) -> bytes:
    """Take a parent out of the configuration; its path. Raises UnknownParent."""
    config_file = session.config_to_edit
    with _editing(config_file, effect) as change:
        path, index = _find(read_config(config_file), typed)
        change(lambda text: configfile.without_parent(text, index))
    return path


def alter(
    session: Session, typed: str, settings: Mapping[str, Any], effect: Effect = Effect.APPLY
) -> bytes:
    """Set keys of a parent in the configuration; its path. Raises UnknownParent."""
    config_file = session.config_to_edit

    def edit(text: str) -> str:
        new = configfile.with_changes(text, index, settings)
        parse_config(new, config_file)
        return new

    with _editing(config_file, effect) as change:
        path, index = _find(read_config(config_file), typed)
        change(edit)
    return path


def _editing(
    file: bytes, effect: Effect
) -> AbstractContextManager[Callable[[Callable[[str], str]], None]]:
    match effect:
        case Effect.APPLY:
            return configfile.edited(file)
        case Effect.DRY_RUN:
            return configfile.rehearsed(file)


def _find(config: Config, typed: str) -> tuple[bytes, int]:
    path = canonical(typed)
    for index, parent in enumerate(config.parents):
        if parent.path == path:
            return path, index
    raise UnknownParent(f"{safe_label(path, limit=None)} is no parent", "rootsd parent ls")


def _refused(session: Session) -> RefusedPlaces:
    places = session.places
    own = [places.config, places.state, places.log, places.data, folders.run_folder().path]
    all_but_own = read_config(places.config_file).limiting(RefusedPlaces(canonical("~")))
    return all_but_own._replace(own=tuple(os.path.realpath(folder) for folder in own))


def _written(path: bytes) -> str:
    """The path as the file has it: `~/src` reads well and survives another home folder."""
    home = canonical("~")
    if home != b"/" and path.startswith(home + b"/"):
        return "~" + text_of(path[len(home) :])
    return "~" if path == home else text_of(path)


def _nearest(path: bytes) -> str:
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return safe_label(path, limit=None)
