"""No acknowledged decision is lost when the process that writes is killed under load."""

from __future__ import annotations

from support.fault_target import Diligence
from support.parallel import in_parallel, shares
from support.sizes import Sizes
from support.store_kills import Tally, kill

KILLS_IN_ONE_GO = 2_000


def _kill_own(numbered_share: tuple[int, int]) -> Tally:
    return kill(*numbered_share)


def _kill_hasty(numbered_share: tuple[int, int]) -> Tally:
    return kill(*numbered_share, Diligence.HASTY)


def test_no_acknowledged_decision_is_lost_when_the_writer_is_killed(sizes: Sizes) -> None:
    kills = sizes.pick(test=12, check=300, soak=900)
    tallies = in_parallel(_kill_own, enumerate(shares(kills, KILLS_IN_ONE_GO)))
    assert sum(tally.kills for tally in tallies) == kills
    assert sum(tally.lost for tally in tallies) == 0
    assert sum(tally.decisions for tally in tallies) > kills


def test_control_a_writer_that_acknowledges_too_early_loses_decisions() -> None:
    (tally,) = in_parallel(_kill_hasty, [(1, 12)])
    assert tally.lost > 0
