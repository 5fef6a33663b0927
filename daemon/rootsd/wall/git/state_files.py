"""Read and write the small files in a wall's private folder, with one record each."""

from __future__ import annotations

import os
from typing import Any

from rootsd.core.record import BadRecord, Record, from_line, to_line

_MAX_BYTES = 64 << 20


def read_record(kind: type[Record], file: bytes) -> Record | None:
    """Return the record in a file; None if there is none, or if it is damaged."""
    try:
        with open(file, "rb") as content:
            return from_line(kind, content.read(_MAX_BYTES))
    except (OSError, BadRecord):
        return None


def replace_record(file: bytes, record: tuple[Any, ...]) -> None:
    """Write a file whole, so that a crash leaves the old or the new content. Raises OSError."""
    data = to_line(record)
    with open(os.open(file + b".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as new:
        new.write(data)
    os.rename(file + b".new", file)
