"""After a fault at any system call, the store has exactly the acknowledged decisions.

The calls are those of opening, deciding, a backup, and closing, including the anchors and the
folders. The store is new, old, killed during a transaction, or damaged.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from functools import partial

import pytest

from support.fault_target import Diligence, Start
from support.parallel import in_parallel
from support.sizes import Sizes
from support.syscall_faults import KILL, CallKind, FaultGroup, Outcome, inject

pytestmark = pytest.mark.needs("strace")
FAULTS = [KILL, "error=EIO", "error=ENOSPC", "error=EACCES", "error=EMFILE"]
MORE_FAULTS = ["error=EPERM", "error=ENOMEM", "error=EROFS", "error=EDQUOT", "error=ENFILE"]


def test_no_fault_at_a_system_call_gives_a_wrong_set(sizes: Sizes) -> None:
    # Most of the time of few faults is the start of a traced program for each start and fault.
    pairs = sizes.pick(
        test=list(zip(Start, FAULTS, strict=True)),
        check=[(start, fault) for start in Start for fault in FAULTS],
        soak=[(start, fault) for start in Start for fault in FAULTS + MORE_FAULTS],
    )
    processes = sizes.pick(test=1, check=None, soak=None)
    share = sizes.pick(test=0.012, check=0.3, soak=1.0)
    groups = [FaultGroup(start, fault, partial(_some, share)) for start, fault in pairs]
    findings = sum(in_parallel(inject, groups, processes), Counter())
    assert findings.keys() == {Outcome.HELD}


def test_a_kill_during_an_upgrade_loses_no_decision_and_no_way_back(sizes: Sizes) -> None:
    share = sizes.pick(test=0.03, check=1.0, soak=1.0)
    findings = inject(FaultGroup(Start.UPGRADED, KILL, partial(_some, share)))
    assert findings.keys() == {Outcome.HELD}


def _some(share: float, kind: CallKind) -> Sequence[int]:
    """Return some of the calls of a kind, by position. Each call has the same chance."""
    chance = random.Random(kind.name)  # noqa: S311 - to be reproducible is its purpose
    return [place for place in range(1, kind.count + 1) if chance.random() < share]


def test_control_a_store_that_acknowledges_too_early_gives_wrong_sets() -> None:
    group = FaultGroup(Start.OLD, KILL, partial(_every, 1, {"fdatasync"}), Diligence.HASTY)
    assert inject(group)[Outcome.WRONG] > 0


def test_control_a_store_that_is_backed_up_late_loses_the_way_back() -> None:
    syncs = partial(_every, 4, {"fdatasync", "fsync"})
    group = FaultGroup(Start.UPGRADED, KILL, syncs, Diligence.LATE)
    assert inject(group)[Outcome.WRONG] > 0


def _every(step: int, names: set[str], kind: CallKind) -> Sequence[int]:
    """Return each `step`-th call of the kinds with these names."""
    return range(1, kind.count + 1, step) if kind.name in names else ()
