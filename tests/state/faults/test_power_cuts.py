"""No power cut loses an acknowledged decision or damages the store.

The simulated disk is in `support/simulated_disk.py`. Each unsynced sector is kept, lost, or turned
into garbage, and each unsynced name appears or disappears. The head anchor, the backups, and the
folders are on this disk.
"""

from __future__ import annotations

from collections import Counter

import pytest

from support.parallel import in_parallel, shares
from support.power_cuts import Verdict, cut_power
from support.sizes import Sizes
from support.store_writer import WriteMode

pytestmark = pytest.mark.needs("strace")
CUTS_IN_ONE_GO = 5_000


def _cut_own(numbered_share: tuple[int, int]) -> Counter[Verdict]:
    return Counter(cut_power(*numbered_share))


def test_no_power_cut_loses_or_damages_anything(sizes: Sizes) -> None:
    cuts = sizes.pick(test=20, check=4_000, soak=12_000)
    processes = sizes.pick(test=1, check=None, soak=None)
    parts = enumerate(shares(cuts, CUTS_IN_ONE_GO))
    verdicts = sum(in_parallel(_cut_own, parts, processes), Counter())
    assert verdicts == {Verdict.HELD: cuts}


# Any seed finds each fault within 100 cuts. These find it soon.
@pytest.mark.parametrize(
    ("mode", "seed"), [(WriteMode.WAL_NORMAL, 1), (WriteMode.DELETE_NORMAL, 3)]
)
def test_control_a_careless_store_loses_decisions(mode: WriteMode, seed: int) -> None:
    assert any(verdict is not Verdict.HELD for verdict in cut_power(seed, 100, mode))


def test_control_anchors_ahead_of_the_chain_lapse_approvals() -> None:
    assert Verdict.DAMAGED in cut_power(1, 20, WriteMode.EARLY_ANCHORS)
