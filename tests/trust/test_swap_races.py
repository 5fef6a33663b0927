"""Nobody makes us read outside of a project by swapping folders for links while we look."""

from __future__ import annotations

import pytest

from support.parallel import in_parallel
from support.sizes import Sizes
from support.swapping import Reading, escapes, made_scene

pytestmark = pytest.mark.needs("linux")
_OURS = [reading for reading in Reading if reading is not Reading.CHECKED]
_AT_ONCE = 50_000


def test_no_look_leads_outside(sizes: Sizes) -> None:
    tries = sizes.pick(test=20_000, check=1_000_000, soak=100_000_000)
    each = -(-tries // len(_OURS))
    parts = [
        (reading, min(_AT_ONCE, each - first))
        for first in range(0, each, _AT_ONCE)
        for reading in _OURS
    ]
    assert sum(count for _, count in parts) >= tries
    assert sum(in_parallel(escapes, parts)) == 0


@pytest.mark.parametrize("reading", Reading)
def test_the_control_a_look_that_leads_outside_is_found_out(reading: Reading) -> None:
    with made_scene(reading) as scene:
        look = scene.look()
        assert not look()
        scene.move_outside_in()
        assert look()


def test_the_control_a_check_before_the_read_leads_outside() -> None:
    assert escapes((Reading.CHECKED, 20_000)) > 0
