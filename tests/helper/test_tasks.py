"""The table of duties: every one has its spec, and they bound something."""

from __future__ import annotations

from rootsd.helper.protocol import TASK_SPECS, HelperTask


def test_every_duty_has_terms_that_bound_it() -> None:
    assert TASK_SPECS.keys() == set(HelperTask)
    for spec in TASK_SPECS.values():
        assert spec.max_workers > 0
        assert spec.memory > 0
