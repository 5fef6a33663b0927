"""Paths, counts, and ages in the words of a person."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rootsd.core.labels import safe_label
from rootsd.core.paths import text_of

if TYPE_CHECKING:
    from pathlib import Path

_AGE_UNITS = ((86_400 * 365, "y"), (86_400, "d"), (3_600, "h"), (60, "m"))
_SIZE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_SIZE_FACTOR = 1024


def shorten_home(path: str) -> str:
    """Return a path in the home folder as `~/src`. A person may paste it into a shell."""
    home = os.path.expanduser("~")
    if home != "/" and (path == home or path.startswith(home + "/")):
        return "~" + path[len(home) :]
    return path


def shown_path(path: str | bytes | Path) -> str:
    """Return a whole path that is safe to print, with `~` for the home folder."""
    text = text_of(path) if isinstance(path, bytes) else str(path)
    return safe_label(shorten_home(text), limit=None)


def pluralize(count: int, what: str) -> str:
    """Return `1 project` or `2,000 projects`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def any_of(words: Iterable[str]) -> str:
    """Return `a`, `a or b`, or `a, b, or c`."""
    *others, last = words
    comma = "," if len(others) > 1 else ""
    return f"{', '.join(others)}{comma} or {last}" if others else last


def bytes_of(size: float) -> str:
    """Return a number of bytes in its largest unit: `1.5 MiB`."""
    amount, unit = float(size), 0
    while amount >= _SIZE_FACTOR and unit < len(_SIZE_UNITS) - 1:
        amount, unit = amount / _SIZE_FACTOR, unit + 1
    return f"{amount:.{1 if unit else 0}f} {_SIZE_UNITS[unit]}"


def age(moment: str, now: datetime | None = None) -> str:
    """Return the age of an RFC 3339 time in its largest unit: `2h ago` or `just now`."""
    try:
        seconds = ((now or datetime.now(UTC)) - datetime.fromisoformat(moment)).total_seconds()
    except (ValueError, TypeError):
        return moment
    for size, unit in _AGE_UNITS:
        if seconds >= size:
            return f"{int(seconds // size)}{unit} ago"
    return "just now"
