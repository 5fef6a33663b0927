"""No power cut, at whatever moment, takes an acknowledged decision or damages the store.

The simulated disk is in `support/disk.py`: what was not synced is kept, lost or becomes garbage,
sector by sector, and names come and go. The head anchor, the backups and the folders lie on it.
"""

from __future__ import annotations

from collections import Counter

import pytest

from support.cuts import Verdict, cut_power
from support.parallel import in_parallel, shares
from support.scribe import Mode
from support.sizes import Sizes

pytestmark = pytest.mark.needs("strace")
CUTS_IN_ONE_GO = 5_000


def _cut_own(numbered_share: tuple[int, int]) -> Counter[Verdict]:
    return cut_power(*numbered_share)


def test_no_power_cut_loses_or_damages_anything(sizes: Sizes) -> None:
    cuts = sizes.pick(test=200, check=10_000, soak=1_000_000)
    verdicts = sum(in_parallel(_cut_own, enumerate(shares(cuts, CUTS_IN_ONE_GO))), Counter())
    assert verdicts == {Verdict.HELD: cuts}


@pytest.mark.parametrize("mode", [Mode.WAL_NORMAL, Mode.DELETE_NORMAL])
def test_the_control_a_careless_store_loses_decisions(mode: Mode) -> None:
    verdicts = cut_power(1, 200, mode)
    assert verdicts[Verdict.LOST] + verdicts[Verdict.DAMAGED] > 0


def test_the_control_anchors_that_run_ahead_of_the_chain_take_approvals_back() -> None:
    verdicts = cut_power(1, 400, Mode.EARLY_ANCHORS)
    assert verdicts[Verdict.DAMAGED] > 0
