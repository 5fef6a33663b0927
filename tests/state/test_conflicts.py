"""An order that was chosen by what somebody saw is refused where somebody decided since."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rootsd.core.catalog import Catalog
from rootsd.core.model import Project
from rootsd.state.ledger import Conflict, refuse_conflicts
from support.decisions import approved, denied, project
from support.fakes import PLACES, lapsed


def catalog(*projects: Project) -> Catalog:
    return Catalog.of(projects, (), PLACES, 1)


@pytest.mark.parametrize("now", [approved(1), denied(1)], ids=["approved", "denied"])
def test_a_project_that_was_decided_about_since_is_refused(now: Project) -> None:
    with pytest.raises(Conflict):
        refuse_conflicts([project(2), project(1)], catalog(now, project(2)))


@pytest.mark.parametrize(
    "now",
    [approved(1), lapsed(approved(1)), replace(approved(1), id="zzzz")],
    ids=["the same", "lapsed since", "decided the same"],
)
def test_what_nobody_decided_about_since_is_taken(now: Project) -> None:
    refuse_conflicts([approved(1)], catalog(now))
    refuse_conflicts([approved(1)], catalog())
    with pytest.raises(Conflict):
        refuse_conflicts([approved(1), project(2)], catalog(now, denied(2)))
