"""Find the base folders of a user: where the XDG base directory specification puts files.

A variable such as XDG_STATE_HOME may name another folder than the default. A relative value is
ignored, as the specification demands: it would mean another folder in each working directory, and
rootsd would write into whatever project it was started in.

MCP clients strip the environment of what they start. So `rootsd up` records the variables that it
saw, and `folder_of_daemon` takes the record first. The folders of macOS do not depend on
variables, except for those that a person sets all the same.

Lean programs import this module, so it imports little of the standard library.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from rootsd.core.errors import RootsdError
from rootsd.core.parsing import Unparsable, parse_json
from rootsd.files.private_files import open_private_file
from rootsd.places.runtime_dir import home_folder, overriding_folder

PLACE_VARIABLES = {"XDG_CONFIG_HOME": ".config", "XDG_STATE_HOME": ".local/state"}
"""The variables that move rootsd's own files, and the defaults below the home folder on Linux."""

RECORD_NAME = "start.json"
_MAX_NAME = 100  # a file name holds 255 bytes
WALLS = b"/confine"
"""The folder of all walls, in the folder for rootsd's state."""
_MAC_DEFAULT = "Library/Application Support"
_MAX_BYTES = 256 * 1024


def named_folder(variable: str, environment: Mapping[str, str]) -> str:
    """Return the absolute path that `variable` has, or "" if it has none."""
    value = environment.get(variable, "")
    return value if value.startswith("/") else ""


def base_folder(variable: str, environment: Mapping[str, str]) -> str:
    """Return the folder that `variable` names, or its default. Raises FolderUnavailable.

    `variable` is one of `PLACE_VARIABLES`.
    """
    return named_folder(variable, environment) or default_folder(variable)


def default_folder(variable: str) -> str:
    """Return the folder that is used without `variable`. Raises FolderUnavailable."""
    below = _MAC_DEFAULT if sys.platform == "darwin" else PLACE_VARIABLES[variable]
    return os.path.join(os.fsdecode(home_folder()), below)


def folder_of_daemon(variable: str) -> bytes:
    """Return rootsd's own folder below the base folder that the daemon uses.

    The record of the last `rootsd up` takes precedence over this environment, even if it has no
    value. With ROOTSD_DIR, everything is below that folder. Raises FolderUnavailable.
    """
    if top := overriding_folder():
        return top + (b"/config" if variable == "XDG_CONFIG_HOME" else b"/state")
    record = os.path.join(default_folder("XDG_STATE_HOME"), "rootsd", RECORD_NAME)
    try:
        environment: Mapping[str, str] = recorded_variables(record)
    except (OSError, RootsdError, Unparsable):
        environment = os.environ
    return os.fsencode(base_folder(variable, environment)) + b"/rootsd"


def walls_folder() -> bytes:
    """Return the folder with the private folders of all walls. Raises FolderUnavailable."""
    return os.path.realpath(folder_of_daemon("XDG_STATE_HOME")) + WALLS


def folder_name(label: str) -> bytes:
    """Return the name of the folder for what the programs with this name keep."""
    letters = (each if _is_usual(each) else "_" for each in label)
    return ("".join(letters).lstrip(".")[:_MAX_NAME] or "program").encode()


def _is_usual(letter: str) -> bool:
    return (letter.isascii() and letter.isalnum()) or letter in "_.-"


def recorded_variables(record: str | os.PathLike[str]) -> dict[str, str]:
    """Return the variables in a start record, which `rootsd.service.start_record` writes.

    Raises RootsdError if the file cannot be opened, OSError, and Unparsable.
    """
    with open(open_private_file(record, os.O_RDONLY), "rb") as stream:
        text = stream.read(_MAX_BYTES)  # a longer file is cut off, so it is not valid JSON
    match parse_json(text):
        case {"environment": dict(variables)}:
            if all(map(_is_valid_argument, [*variables, *variables.values()])):
                return variables
        case _:
            pass
    raise Unparsable("it does not say how to start the daemon")


def _is_valid_argument(value: object) -> bool:
    """Return whether the system accepts `value` as an argument, a variable, or a path."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True
