"""Read a settings file to tell what it says, and in which line. Nothing here changes a file."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from rootsd.disk.hung_mounts import follow
from rootsd.disk.reader import read_small
from rootsd.settings.errors import NotEditable
from rootsd.settings.formats import KeyPath, SettingsFormat

_CAP = 16 << 20
_MAX_ITEMS = 5_000


class SettingsText(Struct, frozen=True):
    """A settings file. `problem` says why it has no values, although it is there."""

    path: str
    language: SettingsFormat
    text: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""

    def at(self, *keys: str) -> Any:  # noqa: ANN401 - a value of any settings language
        """Return the value at `keys`, or None."""
        value: Any = self.values
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def members(self, *keys: str) -> dict[str, Any]:
        """Return the object at `keys`, an empty one if there is none."""
        found = self.at(*keys)
        return found if isinstance(found, dict) else {}

    def texts(self, *keys: str) -> dict[KeyPath, str]:
        """Return the first texts in the array at `keys`, each by its own keys."""
        found = self.at(*keys)
        items = enumerate(found[:_MAX_ITEMS]) if isinstance(found, list) else ()
        return {(*keys, number): item for number, item in items if isinstance(item, str)}

    def line(self, keys: KeyPath) -> int:
        """Return the line of the value at `keys`, counted from 1."""
        return self.language.line(self.text, keys)


def read_settings(path: str, language: SettingsFormat, cap: int = _CAP) -> SettingsText:
    """Return a settings file of at most `cap` bytes. Raises nothing.

    A missing one has no values and no problem.
    """
    text, problem = read_text(path, cap)
    if problem or not text.strip():
        return SettingsText(path, language, text, problem=problem)
    try:
        return SettingsText(path, language, text, language.values(text))
    except NotEditable as error:
        return SettingsText(path, language, problem=str(error))


def read_text(path: str, cap: int = _CAP) -> tuple[str, str]:
    """Return the text of a file, and why it has none although it is there. Raises nothing.

    This never waits for a FIFO or a file system that hangs.
    """
    try:
        real = follow(os.fsencode(path))
        mode = os.stat(real).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "", ""
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "its path is not valid"
        return "", f"it cannot be read: {why}"
    if stat.S_ISDIR(mode):  # a client reads no folder as settings
        return "", ""
    raw = read_small(real, cap + 1) if stat.S_ISREG(mode) else None
    if raw is None:
        return "", "you may not read it" if stat.S_ISREG(mode) else "it is not a file"
    if len(raw) > cap:
        return "", "it is too large"
    try:
        return raw.decode(), ""
    except UnicodeDecodeError:
        return "", "it is not UTF-8"
