"""No damage to the database changes a decision unnoticed, even if SQLite does not notice it."""

from __future__ import annotations

from functools import partial

from support.database_damage import Damage, cut_off_or_swap, damage, flip_a_bit
from support.parallel import in_parallel, shares
from support.sizes import Sizes

IN_ONE_GO = 10_000


def _damage(numbered_share: tuple[int, int], how: Damage) -> int:
    return damage(*numbered_share, how)


def test_no_flipped_bit_changes_a_decision_unnoticed(sizes: Sizes) -> None:
    flips = sizes.pick(test=60, check=5_000, soak=15_000)
    unseen_by_sqlite = in_parallel(
        partial(_damage, how=flip_a_bit),
        enumerate(shares(flips, IN_ONE_GO)),
        processes=sizes.pick(test=1, check=None, soak=None),
    )
    assert sum(unseen_by_sqlite) > 0, "the control: SQLite's own check must miss some"


def test_no_truncation_or_swap_of_pages_changes_a_decision_unnoticed(sizes: Sizes) -> None:
    times = sizes.pick(test=50, check=500, soak=1_500)
    in_parallel(
        partial(_damage, how=cut_off_or_swap),
        enumerate(shares(times, IN_ONE_GO)),
        processes=sizes.pick(test=1, check=None, soak=None),
    )
