"""Frozen names never look alike, and a name that a list showed stays with its path."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rootsd.core.catalog import Catalog
from rootsd.core.errors import NameTaken, OrderRefused
from rootsd.core.inputs import Approve, Forget, Input, ProjectGone, ProjectNamed, Rename
from rootsd.core.model import Project
from rootsd.core.plan import plan
from support import core_samples
from support.core_samples import NOTHING_KNOWN, seen
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


HOMES = (b"/w/api", b"/w/acme/api", b"/w/beta/api", b"/v/acme/api", b"/w/API", b"/w/web")
steps = st.lists(
    st.tuples(
        st.sampled_from(("appear", "vanish", "approve", "forget", "restart")),
        st.sampled_from(HOMES),
    ),
    max_size=20,
)


def _named(catalog: Catalog) -> Catalog:
    """Return the catalog after the end of a scan, when all names are kept."""
    proposed = catalog.proposed_names.items()
    return plan(catalog, [ProjectNamed(*each) for each in proposed], NOON).catalog


def _restarted(catalog: Catalog, *, remembers: bool = True) -> Catalog:
    reserved = catalog.reserved if remembers else {}
    return Catalog.of(catalog.projects.values(), (), PLACES, 1, reserved=reserved)


@given(steps)
def test_a_shown_name_stays_with_its_path(taken: list[tuple[str, bytes]]) -> None:
    catalog, shown = NOTHING_KNOWN, dict[str, bytes]()
    for verb, where in taken:
        before = {each.path: catalog.name_of(each) for each in catalog.projects.values()}
        inputs: dict[str, Input] = {
            "appear": seen(where, HOMES.index(where)),
            "vanish": ProjectGone(where),
            "approve": Approve(where, core_samples.identity(HOMES.index(where)), PERSON),
            "forget": Forget(where, PERSON),
        }
        with suppress(OrderRefused):  # nothing is there
            catalog = (
                _restarted(catalog)
                if verb == "restart"
                else _named(plan(catalog, [inputs[verb]], NOON).catalog)
            )
        for each in catalog.projects.values():
            name = catalog.name_of(each)
            assert before.get(each.path, name) == name
            assert shown.setdefault(name, each.path) == each.path


def test_a_newcomer_would_take_over_a_name_that_is_forgotten() -> None:
    """The control of the test above."""
    first, second = HOMES[:2]
    for remembers, name in ((True, "acme/api"), (False, "api")):
        catalog = _named(plan(NOTHING_KNOWN, [seen(first)], NOON).catalog)
        assert catalog.kept_keys == {"api": first}
        catalog = _restarted(
            plan(catalog, [ProjectGone(first)], NOON).catalog, remembers=remembers
        )
        assert _named(plan(catalog, [seen(second)], NOON).catalog).kept_keys == {name: second}


# Labels that grow when they are folded, so that their keys are longer than a label.
growing = st.builds(str.__mul__, st.sampled_from(("ß", "ﬁ", "™", "ss", "a")), st.integers(1, 70))
grown_paths = st.lists(growing, min_size=1, max_size=4).map(lambda some: "/" + "/".join(some))


@given(st.lists(st.lists(grown_paths, min_size=1, max_size=3), max_size=4))
def test_the_plan_takes_each_name_that_the_catalog_proposes(scans: list[list[str]]) -> None:
    """So the end of a scan names every project, and naming ends."""
    catalog = NOTHING_KNOWN
    for found in scans:
        news = [seen(where.encode(), 1) for where in found]
        catalog = plan(catalog, news, NOON).catalog
        proposed = catalog.proposed_names
        catalog = _named(catalog)
        assert not catalog.proposed_names
        assert {where: catalog.projects[where].name for where in proposed} == proposed


def test_namesakes_of_one_scan_get_names_of_one_form_and_keep_them() -> None:
    catalog = _named(plan(NOTHING_KNOWN, map(seen, HOMES[:2]), NOON).catalog)
    assert catalog.kept_keys == {"w/api": HOMES[0], "acme/api": HOMES[1]}
    again = plan(catalog, [ProjectGone(HOMES[0]), seen(HOMES[1], 2)], NOON).catalog
    assert _named(again).kept_keys == {"acme/api": HOMES[1]}


def test_what_is_named_at_the_same_time_gets_no_name_that_looks_like_a_taken_one() -> None:
    first, second = HOMES[0], HOMES[-1]
    known = plan(NOTHING_KNOWN, [seen(first), seen(second)], NOON).catalog
    for earlier in (ProjectNamed(first, "api"), Rename(first, "api", PERSON)):
        catalog = plan(known, [earlier, ProjectNamed(second, "API")], NOON).catalog
        assert catalog.kept_keys == {"api": first}
        catalog = plan(catalog, [ProjectNamed(second, "API")], NOON).catalog
        assert catalog.kept_keys == {"api": first}


def test_the_oldest_names_of_what_is_gone_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rootsd.core.catalog.MAX_GONE", 2)
    paths = [b"/w/%d" % number for number in range(5)]
    catalog = _named(plan(NOTHING_KNOWN, map(seen, paths), NOON).catalog)
    for where in (*paths[:3], paths[0], paths[3]):
        there = _named(plan(catalog, [seen(where)], NOON).catalog)
        catalog = plan(there, [ProjectGone(where)], NOON).catalog
    # One more, because one project is there.
    assert catalog.reserved == {"2": paths[2], "0": paths[0], "3": paths[3]}


def test_a_person_takes_a_kept_name_only_after_its_project_gave_it_up() -> None:
    first, second = HOMES[0], HOMES[-1]
    known = _named(plan(NOTHING_KNOWN, [seen(first), seen(second)], NOON).catalog)
    with pytest.raises(NameTaken, match="the name api belongs to /w/api"):
        plan(known, [Rename(second, "api", PERSON)], NOON)
    orders = Rename(first, "old", PERSON), Rename(second, "api", PERSON), Forget(first, PERSON)
    catalog = _named(plan(known, orders, NOON).catalog)
    assert catalog.kept_keys == {"api": second, "w/api": first}
    # A store whose observed states are older than its decisions names no two alike, either.
    older = [replace(catalog.projects[first], observed=known.projects[first].observed)]
    again = _named(Catalog.of([*older, catalog.projects[second]], (), PLACES, 1))
    assert again.kept_keys == {"api": second, "w/api": first}
