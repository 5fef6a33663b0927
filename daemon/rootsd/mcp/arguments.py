"""Parse the arguments of tool calls, and accept the mistakes that models make.

Models send `null` or `""` for an argument that they omit, `5.0` or `"5"` for 5, a `file://` URI
for a path, and arguments that no schema names. None of these is an error here. For all other
mistakes, the error gives the reason and an example of a correct call, which a model can follow.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

from rootsd.core.labels import safe_json, safe_label
from rootsd.core.paths import bytes_of

_FILE_SCHEME = "file://"
# Names that models use for the path of a folder if they do not follow the schema.
_PATH_ALIASES = ("path", "uri", "folder", "directory", "dir", "file", "file_path", "filePath")
_NAME_ALIASES = ("name", "root", "project")


class BadArguments(Exception):
    """An error in a call that the model can correct; the message says how."""


class ToolArguments:
    """The arguments of one tool call; `example` holds the arguments of a correct call."""

    def __init__(self, given: Mapping[str, Any] | None, example: Mapping[str, object]) -> None:
        self._given = given or {}
        self._example = example

    def name(self) -> str | None:
        """Return the name of a root, or None if it is missing. Raises BadArguments."""
        return self._first(_NAME_ALIASES)

    def path(self) -> str | None:
        """Return the path or URI as given, or None if it is missing. Raises BadArguments."""
        return self._first(_PATH_ALIASES)

    def text(self, name: str) -> str | None:
        """Return a string, or None if it is missing. Raises BadArguments for other types."""
        value = self._given.get(name)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise self.wrong(f"{name} is not a string")
        return value

    def number(self, name: str) -> float | None:
        """Return a number, or None if it is missing. Raises BadArguments for other values."""
        value = self._given.get(name)
        if value is None or value == "":
            return None
        try:
            found = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            found = math.nan
        if math.isnan(found):
            raise self.wrong(f"{name} is not a number")
        return found

    def absolute(self, text: str) -> bytes:
        """Return the absolute path that `text`, a path or a `file://` URI, stands for.

        The path is not canonical yet. Raises BadArguments.
        """
        path = (
            self._of_uri(text)
            if text[: len(_FILE_SCHEME)].lower() == _FILE_SCHEME
            else bytes_of(text)
        )
        if not path.startswith(b"/") or b"\0" in path:
            raise self.wrong(f"{safe_label(text)} is not an absolute path")
        return path

    def wrong(self, reason: str) -> BadArguments:
        """Return the error that names the reason and shows a correct call."""
        example = safe_json(json.dumps(self._example, ensure_ascii=False))
        return BadArguments(f"{reason}. A correct call has these arguments: {example}")

    def _first(self, names: tuple[str, ...]) -> str | None:
        """Return the argument `names[0]`, else the first string under one of the other names."""
        if (text := self.text(names[0])) is not None:
            return text
        others = (self._given.get(name) for name in names[1:])
        return next((other for other in others if isinstance(other, str) and other), None)

    def _of_uri(self, text: str) -> bytes:
        """Return the path of a `file://` URI (RFC 8089); the host is empty or this machine.

        Models rarely write `?` and `#` as %3F and %23, so both count as part of the path.
        """
        host, slash, rest = text[len(_FILE_SCHEME) :].partition("/")
        if host.lower() not in ("", "localhost"):
            raise self.wrong(f"{safe_label(text)} is on another machine")
        return unquote_to_bytes((slash + rest).encode("utf-8", "surrogateescape"))
