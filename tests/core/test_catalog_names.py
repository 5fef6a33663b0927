"""Frozen names never look alike."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rootsd.core.catalog import Catalog
from rootsd.core.errors import NameTaken
from rootsd.core.inputs import Approve
from rootsd.core.model import Project
from rootsd.core.plan import plan
from support.ledger_harness import PLACES, path
from support.sample_decisions import NOON, PERSON, approved, identity, project


def _frozen(number: int, name: str) -> Project:
    known = approved(number)
    return replace(known, ruling=replace(known.ruling, name=name))


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
