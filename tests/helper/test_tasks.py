"""The table of tasks: each has limits."""

from __future__ import annotations

from rootsd.helper.protocol import TASK_SPECS, HelperTask


def test_every_task_has_limits() -> None:
    assert TASK_SPECS.keys() == set(HelperTask)
    for spec in TASK_SPECS.values():
        assert spec.max_workers > 0
        assert spec.memory > 0
