"""Swapping folders for links during a read does not make rootsd read outside the project."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.parallel import in_parallel
from support.polling import until_won
from support.sizes import Sizes
from support.swap_race import Target, count_escapes, made_scene

pytestmark = pytest.mark.needs("linux")
# Shares of a hundred tries, so that each part takes about the same time, except the walk, which
# takes most.
_SHARES = {
    Target.FILE: 40,
    Target.NAMES: 40,
    Target.PROJECT: 7,
    Target.ABOVE: 7,
    Target.GIT_FOLDER: 4,
    Target.WALK: 2,
}
_AT_ONCE = 50_000


def _parts(tries: int) -> Iterator[tuple[Target, int]]:
    for reading, share in _SHARES.items():
        each = -(-tries * share // 100)
        for first in range(0, each, _AT_ONCE):
            yield reading, min(_AT_ONCE, each - first)


def test_no_read_leads_outside(sizes: Sizes) -> None:
    tries = sizes.pick(test=4_000, check=500_000, soak=1_500_000)
    parts = list(_parts(tries))
    assert {*Target} - {reading for reading, _ in parts} == {Target.CHECKED}
    assert sum(count for _, count in parts) >= tries
    assert sum(in_parallel(count_escapes, parts)) == 0


@pytest.mark.parametrize("reading", Target)
def test_control_a_read_outside_is_detected(reading: Target) -> None:
    with made_scene(reading) as scene:
        look = scene.look()
        assert not look()
        scene.move_outside_in()
        assert look()


def test_control_a_check_before_the_read_is_not_enough() -> None:
    assert until_won(lambda: count_escapes((Target.CHECKED, 5_000)))
