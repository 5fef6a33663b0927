"""A ledger publishes, tells, and keeps what `support.approval_model` permits, step by step."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import rule, run_state_machine_as_test

from rootsd.core.catalog import Catalog
from rootsd.core.inputs import Approve
from rootsd.state.ledger import Ledger
from support.approval_machine import ApprovalMachine, anywhere
from support.core_samples import ANN
from support.ledger_harness import DiskRefuses, LedgerWorld
from support.sizes import Sizes

STEPS = settings(stateful_step_count=25, phases=[Phase.generate])


class LedgerApprovals(ApprovalMachine):
    """The machine on a ledger, whose disk may also refuse an approval."""

    def make_world(self) -> LedgerWorld:
        self.ledger = LedgerWorld()
        return self.ledger

    @rule(path=anywhere)
    def approve_while_the_disk_refuses(self, path: bytes) -> None:
        known = self.catalog.projects.get(path)
        before = self.catalog.projects
        self.ledger.saver.refusing = True
        with suppress(DiskRefuses):
            self.take(Approve(path, known.observed.identity if known else None, ANN))
        assert self.catalog.projects == before
        self.ledger.saver.refusing = False


def test_only_what_the_model_permits_is_published_told_and_kept(sizes: Sizes) -> None:
    examples = sizes.pick(test=10, check=300, soak=900)
    run_state_machine_as_test(LedgerApprovals, settings=settings(STEPS, max_examples=examples))


async def _forget_to_write(_: Ledger) -> None:
    pass


def _apply_at_once(self: Ledger, catalog: Catalog) -> None:
    self._catalog = catalog


@pytest.mark.parametrize(
    ("method", "broken"), [("_write", _forget_to_write), ("_set_catalog", _apply_at_once)]
)
def test_the_machine_notices_a_ledger_that_does_not_write_or_publish(
    monkeypatch: pytest.MonkeyPatch, method: str, broken: object
) -> None:
    class Broken(LedgerApprovals):
        pass

    monkeypatch.setattr(Ledger, method, broken)
    with pytest.raises((AssertionError, ExceptionGroup)):
        run_state_machine_as_test(Broken, settings=settings(STEPS, max_examples=50))
