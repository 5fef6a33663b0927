"""Swapping folders for links during a read does not make rootsd read outside the project."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.parallel import in_parallel
from support.sizes import Sizes
from support.swapping import Reading, escapes, made_scene
from support.until import until

pytestmark = pytest.mark.needs("linux")
# Of a hundred tries; so each takes about the same time, but the walk, which takes most of it.
_SHARES = {
    Reading.FILE: 40,
    Reading.NAMES: 40,
    Reading.PROJECT: 7,
    Reading.ABOVE: 7,
    Reading.GIT_FOLDER: 4,
    Reading.WALK: 2,
}
_AT_ONCE = 50_000


def _parts(tries: int) -> Iterator[tuple[Reading, int]]:
    for reading, share in _SHARES.items():
        each = -(-tries * share // 100)
        for first in range(0, each, _AT_ONCE):
            yield reading, min(_AT_ONCE, each - first)


def test_no_read_leads_outside(sizes: Sizes) -> None:
    tries = sizes.pick(test=20_000, check=1_000_000, soak=100_000_000)
    parts = list(_parts(tries))
    assert {*Reading} - {reading for reading, _ in parts} == {Reading.CHECKED}
    assert sum(count for _, count in parts) >= tries
    assert sum(in_parallel(escapes, parts)) == 0


@pytest.mark.parametrize("reading", Reading)
def test_the_control_a_read_that_leads_outside_is_detected(reading: Reading) -> None:
    with made_scene(reading) as scene:
        look = scene.look()
        assert not look()
        scene.move_outside_in()
        assert look()


def test_the_control_a_check_before_the_read_leads_outside() -> None:
    assert until(lambda: escapes((Reading.CHECKED, 5_000)))
