"""Frozen names never look alike; look-alike names of version 0.1.0 are shown with ids."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rootsd.core.catalog import Catalog
from rootsd.core.errors import NameTaken
from rootsd.core.inputs import Approve, Forget
from rootsd.core.model import Project
from rootsd.core.plan import plan
from support.ledger_harness import PLACES, path
from support.sample_decisions import NOON, PERSON, approved, identity, project


def _frozen(number: int, name: str) -> Project:
    known = approved(number)
    return replace(known, ruling=replace(known.ruling, name=name))


def test_look_alike_names_of_0_1_0_stay_stored_and_are_shown_with_ids() -> None:
    twins = _frozen(1, "café"), _frozen(2, "cafe\u0301")
    catalog = Catalog.of([*twins, project(3)], (), PLACES, 1)
    shown = {path(1): "café~r1", path(2): "cafe\u0301~r2"}
    assert {root.path: root.name for root in catalog.roots.values()} == shown
    assert {p.path: catalog.name_of(p) for p in twins} == shown
    assert catalog.frozen_names == {name: where for where, name in shown.items()}
    again = plan(catalog, [Approve(path(1), identity(1), PERSON, tags=("new",))], NOON).catalog
    assert again.projects[path(1)].ruling.name == "café"
    alone = plan(again, [Forget(path(1), PERSON)], NOON).catalog
    assert {root.name for root in alone.roots.values()} == {"cafe\u0301"}


@pytest.mark.parametrize("name", ["CAFE\u0301", "cafe\u0301", "café"])
def test_no_name_is_frozen_that_looks_like_another(name: str) -> None:
    catalog = Catalog.of([_frozen(1, "café"), project(2), project(3)], (), PLACES, 1)
    with pytest.raises(NameTaken, match="belongs to"):
        plan(catalog, [Approve(path(2), identity(2), PERSON, name=name)], NOON)
    both = [
        Approve(path(n), identity(n), PERSON, name=word) for n, word in ((2, "\ufb01"), (3, "FI"))
    ]
    with pytest.raises(NameTaken, match="belongs to"):
        plan(catalog, both, NOON)
