"""What a pure function made of the same text once, it need not make again.

A harness opens stores with the same decisions many thousand times, and most of its time would go
into reading their texts. A text is looked up whole, so one that differs in a bit is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import pytest

from rootsd.core.encoding import decode_observed, decode_project

_TEXTS = 1 << 14


@contextmanager
def remembered() -> Iterator[None]:
    """Have what stored texts say remembered meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rootsd.core.history.decode_project", lru_cache(_TEXTS)(decode_project))
        sightings = lru_cache(_TEXTS)(decode_observed)
        patch.setattr("rootsd.state.store.rows.decode_observed", sightings)
        yield
