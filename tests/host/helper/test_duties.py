"""The table of duties: every one has its terms, and they bound something."""

from __future__ import annotations

from rootsd.host.helper.duties import TERMS, Duty


def test_every_duty_has_terms_that_bound_it() -> None:
    assert TERMS.keys() == set(Duty)
    for terms in TERMS.values():
        assert terms.at_once > 0
        assert terms.memory > 0
