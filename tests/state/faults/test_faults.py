"""After a fault at any system call, the store has exactly the acknowledged decisions.

The calls are those of opening, deciding, a backup, and closing, including the anchors and the
folders. The store is new, old, killed during a transaction, or damaged.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from support.fault_target import Diligence
from support.parallel import in_parallel
from support.sizes import Sizes
from support.syscall_faults import (
    KILL,
    CallKind,
    FaultGroup,
    Outcome,
    Start,
    count_calls,
    inject,
)

pytestmark = pytest.mark.needs("strace")
FAULTS = [KILL, "error=EIO", "error=ENOSPC", "error=EACCES", "error=EMFILE"]
MORE_FAULTS = ["error=EPERM", "error=ENOMEM", "error=EROFS", "error=EDQUOT", "error=ENFILE"]


def test_no_fault_at_a_system_call_gives_a_wrong_set(sizes: Sizes) -> None:
    share = sizes.pick(test=0.015, check=1.0, soak=1.0)
    # Most of the time of few faults is the start of a traced program for each start and fault.
    faults_by_start = sizes.pick(
        test=[[fault] for fault in FAULTS],
        check=[FAULTS] * len(Start),
        soak=[FAULTS + MORE_FAULTS] * len(Start),
    )
    chance = random.Random(3)  # noqa: S311 - to be reproducible is its purpose
    parts = []
    counted = in_parallel(count_calls, Start)
    for start, kinds, faults in zip(Start, counted, faults_by_start, strict=True):
        for fault in faults:
            chosen = [(kind, _some(kind, share, chance)) for kind in kinds]
            parts.append(
                FaultGroup(start, fault, [(kind, places) for kind, places in chosen if places])
            )
    parts.sort(
        key=lambda part: part.count, reverse=True
    )  # so that no process runs alone at the end
    findings = sum(in_parallel(inject, parts), Counter())
    assert findings == {Outcome.HELD: sum(part.count for part in parts)}


def test_a_kill_during_an_upgrade_loses_no_decision_and_no_summary(sizes: Sizes) -> None:
    share = sizes.pick(test=0.05, check=1.0, soak=1.0)
    chance = random.Random(4)  # noqa: S311 - to be reproducible is its purpose
    chosen = [(kind, _some(kind, share, chance)) for kind in count_calls(Start.UPGRADED)]
    part = FaultGroup(Start.UPGRADED, KILL, [(kind, places) for kind, places in chosen if places])
    assert inject(part) == {Outcome.HELD: part.count}


def _some(kind: CallKind, share: float, chance: random.Random) -> list[int]:
    """Return some of the calls of a kind, by position. Each call has the same chance."""
    return [place for place in range(1, kind.count + 1) if chance.random() < share]


def test_control_a_store_that_acknowledges_too_early_gives_wrong_sets() -> None:
    kinds = {kind.name: kind for kind in count_calls(Start.OLD)}
    syncs = kinds["fdatasync"]
    every = [(syncs, range(1, syncs.count + 1))]
    part = FaultGroup(Start.OLD, KILL, every, Diligence.HASTY)
    assert inject(part)[Outcome.WRONG] > 0


def test_control_a_store_that_records_its_upgrade_late_loses_the_summary() -> None:
    syncs = [kind for kind in count_calls(Start.UPGRADED) if kind.name in {"fdatasync", "fsync"}]
    some = [(kind, range(1, kind.count + 1, 4)) for kind in syncs]
    part = FaultGroup(Start.UPGRADED, KILL, some, Diligence.LATE)
    assert inject(part)[Outcome.WRONG] > 0
