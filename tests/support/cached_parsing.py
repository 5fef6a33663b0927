"""A cache for the parsers of stored texts.

A stress test opens stores with the same decisions many thousand times, and would spend most of its
time parsing their texts. The cache compares whole texts, so a text with one changed bit is parsed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from unittest.mock import patch

from rootsd.core.encoding import decode

_TEXTS = 1 << 14


@contextmanager
def cached_parsing() -> Iterator[None]:
    """Cache the results of the parsers during the block."""
    with (
        patch("rootsd.core.history.decode", lru_cache(_TEXTS)(decode)),
        patch("rootsd.state.store.rows.decode", lru_cache(_TEXTS)(decode)),
    ):
        yield
