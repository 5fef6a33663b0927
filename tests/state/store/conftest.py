from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.session_history import closed_afterwards


@pytest.fixture(autouse=True)
def _histories_are_closed() -> Iterator[None]:
    with closed_afterwards():
        yield
