"""A fault at any system call of the store leaves what was acknowledged, and nothing else.

The calls are those of opening, deciding, a backup and closing, with the anchor and the folders,
upon a new store, an old one, one that was killed amid a transaction, and one to be rebuilt.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from support.faultable import Diligence
from support.faults import Finding, Kind, Part, Start, count_calls, inject
from support.parallel import in_parallel
from support.sizes import Sizes

pytestmark = pytest.mark.needs("strace")
FAULTS = ["signal=SIGKILL", "error=EIO", "error=ENOSPC", "error=EACCES", "error=EMFILE"]
MORE_FAULTS = ["error=EPERM", "error=ENOMEM", "error=EROFS", "error=EDQUOT", "error=ENFILE"]


def test_no_fault_at_any_system_call_makes_a_wrong_set(sizes: Sizes) -> None:
    share = sizes.pick(test=0.03, check=1.0, soak=1.0)
    faults = sizes.pick(test=FAULTS, check=FAULTS, soak=FAULTS + MORE_FAULTS)
    chance = random.Random(3)  # noqa: S311 - to be reproducible is its purpose
    parts = []
    for start, kinds in zip(Start, in_parallel(count_calls, Start), strict=True):
        for fault in faults:
            chosen = [(kind, _some(kind, share, chance)) for kind in kinds]
            parts.append(Part(start, fault, [(kind, places) for kind, places in chosen if places]))
    parts.sort(key=lambda part: part.count, reverse=True)  # so that none goes on alone at the end
    findings = sum(in_parallel(inject, parts), Counter())
    assert findings == {Finding.HELD: sum(part.count for part in parts)}


def _some(kind: Kind, share: float, chance: random.Random) -> list[int]:
    """Some of the calls of a kind, by place; each call has the same chance."""
    return [place for place in range(1, kind.count + 1) if chance.random() < share]


def test_the_control_a_store_that_acknowledges_too_early_makes_wrong_sets() -> None:
    kinds = {kind.name: kind for kind in count_calls(Start.OLD)}
    syncs = kinds["fdatasync"]
    every = [(syncs, range(1, syncs.count + 1))]
    part = Part(Start.OLD, "signal=SIGKILL", every, Diligence.HASTY)
    assert inject(part)[Finding.WRONG] > 0
