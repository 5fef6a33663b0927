"""Read and write the small JSON files in a wall's private folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from rootsd.core.parsing import Unparsable, parse_json

_MAX_BYTES = 64 << 20


def read_object(file: bytes) -> dict[str, Any] | None:
    """Return the object in a file; None if there is none."""
    try:
        with open(file, "rb") as content:
            found = parse_json(content.read(_MAX_BYTES))
    except (OSError, Unparsable):
        return None
    return found if isinstance(found, dict) else None


def replace_object(file: bytes, content: Mapping[str, Any]) -> None:
    """Write a file whole, so that a crash leaves the old or the new content. Raises OSError."""
    data = json.dumps(content).encode("ascii")
    with open(os.open(file + b".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as new:
        new.write(data)
    os.rename(file + b".new", file)
