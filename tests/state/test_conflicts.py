"""An order is refused if another decision was made since the person saw the project."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rootsd.core.catalog import Catalog
from rootsd.core.model import Project
from rootsd.state.ledger import Conflict, refuse_conflicts
from support.ledger_harness import PLACES, lapsed
from support.sample_decisions import approved, denied, project


def catalog(*projects: Project) -> Catalog:
    return Catalog.of(projects, (), PLACES, 1)


@pytest.mark.parametrize("now", [approved(1), denied(1)], ids=["approved", "denied"])
def test_a_project_with_a_newer_decision_is_refused(now: Project) -> None:
    with pytest.raises(Conflict):
        refuse_conflicts([project(2), project(1)], catalog(now, project(2)))


def test_a_lapsed_project_that_somebody_denied_since_is_refused() -> None:
    with pytest.raises(Conflict):
        refuse_conflicts([lapsed(approved(1))], catalog(denied(1)))


@pytest.mark.parametrize(
    "now",
    [approved(1), lapsed(approved(1)), replace(approved(1), id="zzzz")],
    ids=["the same", "lapsed since", "decided the same"],
)
def test_a_project_without_a_newer_decision_is_accepted(now: Project) -> None:
    refuse_conflicts([approved(1)], catalog(now))
    refuse_conflicts([approved(1)], catalog())
    with pytest.raises(Conflict):
        refuse_conflicts([approved(1), project(2)], catalog(now, denied(2)))
