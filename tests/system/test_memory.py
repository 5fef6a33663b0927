"""The garbage collector passes over what was loaded."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from rootsd.system.memory import freeze_loaded_objects


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


class Cycle:
    """Refers to itself, so that only the collector can free it."""

    def __init__(self) -> None:
        self.itself = self


def test_what_exists_is_not_looked_at_again_and_what_comes_after_is_collected() -> None:
    loaded = Cycle()
    freeze_loaded_objects()
    assert all(each is not loaded for each in gc.get_objects())
    later = weakref.ref(Cycle())
    assert later() is not None
    gc.collect()
    assert later() is None
