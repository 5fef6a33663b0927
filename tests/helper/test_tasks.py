"""The table of duties: every one has its terms, and they bound something."""

from __future__ import annotations

from rootsd.helper.protocol import TASK_SPECS, HelperTask


def test_every_duty_has_terms_that_bound_it() -> None:
    assert TASK_SPECS.keys() == set(HelperTask)
    for terms in TASK_SPECS.values():
        assert terms.at_once > 0
        assert terms.memory > 0
