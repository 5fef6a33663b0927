from __future__ import annotations

from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rootsd.core.catalog import Catalog, Count
from rootsd.core.decide import VerdictReason
from rootsd.core.encoding import to_ns
from rootsd.core.errors import OrderRefused, RefusedPlace
from rootsd.core.inputs import (
    AddRule,
    Approve,
    Deny,
    Forget,
    Input,
    ProjectGone,
    ProjectObserved,
    ProjectUnreachable,
    ProjectUnsafe,
    Rename,
)
from rootsd.core.model import Expiry, IncompleteReason, LapseReason, ProjectKind, Verdict
from rootsd.core.names import comparison_key
from rootsd.core.plan import plan
from rootsd.core.transition import NO_STABLE_IDENTITY
from support.core_samples import (
    ANN,
    NOTHING_KNOWN,
    NOW,
    PLACES,
    UNIDENTIFIABLE,
    after,
    identity,
    seen,
    tree,
    uri_seen,
)

SRC = b"/w/src"
API = SRC + b"/api"
LIB = API + b"/vendor/lib"
OTHER = b"/w/src-old/api"
ALL = (SRC, API, LIB, OTHER)
URI = b"https://example.com/v1"
KNOWN = plan(NOTHING_KNOWN, [seen(path, n) for n, path in enumerate(ALL)], NOW).catalog


def approved(*paths: bytes) -> Catalog:
    return after(KNOWN, *(Approve(path, identity(ALL.index(path)), ANN) for path in paths))


def forbid(pattern: bytes) -> AddRule:
    return AddRule(pattern, Verdict.DENIED, ANN)


DENIALS = [
    pytest.param(Deny(SRC, ANN), {OTHER}, id="the folder above"),
    pytest.param(Deny(API, ANN), {OTHER}, id="the folder itself"),
    pytest.param(Deny(LIB, ANN), {OTHER}, id="a folder inside"),
    pytest.param(Deny(OTHER, ANN), {SRC, API, LIB}, id="a neighbour"),
    pytest.param(forbid(b"/"), set(), id="a rule for everything"),
    pytest.param(forbid(SRC), {OTHER}, id="a rule for the folder above"),
    pytest.param(forbid(b"/w/*/api"), set(), id="a rule for two"),
    pytest.param(forbid(b"/**/vendor"), {OTHER}, id="a rule for what is inside"),
    pytest.param(forbid(b"/w/src/*/other"), set(ALL), id="a rule for nothing known"),
]  # fmt: skip


@pytest.mark.parametrize(("denial", "left"), DENIALS)
def test_a_denial_overrides_approvals_and_approve_rules_above_and_below(
    denial: Deny | AddRule, left: set[bytes]
) -> None:
    assert approved(*ALL).roots.keys() == set(ALL)
    assert after(approved(*ALL), denial).roots.keys() == left
    for pattern in (b"/", b"/w", b"/w/*/**", b"/w/src*"):
        allow = AddRule(pattern, Verdict.APPROVED, ANN)
        assert after(KNOWN, allow).roots.keys() == set(ALL)
        assert after(KNOWN, allow, denial).roots.keys() == left
        assert after(KNOWN, denial, allow).roots.keys() == left


def test_a_folder_above_a_denied_project_is_withheld_until_the_denial_is_forgotten() -> None:
    catalog = after(approved(API), Deny(LIB, ANN))
    assert catalog.judgments[API].reason is VerdictReason.HOLDS_DENIED
    assert not catalog.is_pending(catalog.projects[API])
    assert after(catalog, ProjectGone(LIB)).roots == {}
    assert after(catalog, Forget(LIB, ANN)).roots.keys() == {API}


def test_a_denied_uri_affects_no_folder() -> None:
    catalog = after(approved(SRC), uri_seen(URI), Deny(URI, ANN))
    assert catalog.roots.keys() == {SRC}
    assert catalog.is_denied(catalog.projects[URI])


@pytest.mark.parametrize("order", [(API, OTHER), (OTHER, API)])
def test_names_are_frozen_by_approval_and_do_not_depend_on_what_is_approved_first(
    order: tuple[bytes, bytes],
) -> None:
    first, second = order
    wanted = {API: "src/api", OTHER: "src-old/api"}
    catalog = approved(first)
    assert catalog.kept_keys == {wanted[first]: first}
    assert catalog.proposed_names == {SRC: "src", LIB: "lib", second: wanted[second]}
    assert {path: catalog.name_of(catalog.projects[path]) for path in order} == wanted
    assert {path: root.name for path, root in approved(first, second).roots.items()} == wanted


def test_an_abandoned_name_is_proposed_for_the_project_that_had_it_only() -> None:
    assert after(approved(LIB), Forget(LIB, ANN)).proposed_names[LIB] == "lib"
    named = after(approved(LIB), Rename(LIB, "api", ANN))
    gone = [ProjectGone(LIB), Forget(LIB, ANN)]
    for end in ([Forget(LIB, ANN)], [Rename(LIB, "books", ANN)], gone):
        given_up = after(named, *end, ProjectGone(OTHER))
        assert "api" not in given_up.kept_keys
        assert given_up.proposed_names[API] == "src/api"
        assert after(given_up, Rename(API, "api", ANN)).kept_keys[comparison_key("api")] == API
    assert after(named, Forget(LIB, ANN)).reserved == {"api": LIB, "lib": LIB}
    again = Catalog.of(KNOWN.projects.values(), (), PLACES, 1, reserved={"lib": OTHER})
    assert again.proposed_names[LIB] == "vendor/lib"


def test_an_unpublishable_project_is_not_pending() -> None:
    odd = b"/w/caf\xe9"
    alike = replace(seen(b"/w/x"), identity=UNIDENTIFIABLE)
    catalog = after(KNOWN, seen(odd, 9), alike)
    unpublishable = [p for p in catalog.projects.values() if catalog.is_unpublishable(p)]
    reasons = {p.path: catalog.why_unpublishable(p) for p in unpublishable}
    assert reasons == {odd: "its path is not UTF-8", b"/w/x": NO_STABLE_IDENTITY}
    assert not any(catalog.is_pending(p) for p in unpublishable)
    with pytest.raises(RefusedPlace, match="is not UTF-8"):
        after(catalog, Approve(odd, identity(9), ANN))


def test_projects_are_found_by_id_main_checkout_and_the_folders_around_them() -> None:
    catalog = after(KNOWN, uri_seen(URI), seen(b"/v/1", 8, API), seen(b"/v/2", 9, API))
    assert {KNOWN.ids[project.id] for project in KNOWN.projects.values()} == set(ALL)
    assert catalog.worktrees == {API: (b"/v/1", b"/v/2")}
    assert list(KNOWN.paths_below(SRC)) == [API, LIB]
    assert list(KNOWN.paths_below(URI)) == []
    over = [project.path for project in catalog.containing([LIB, LIB + b"/x", URI])]
    assert over == [LIB, API, SRC, URI]
    inside = (LIB + b"/x", API + b"/vendor", SRC, b"/w", URI)
    held = map(KNOWN.project_containing, inside)
    assert [project and project.path for project in held] == [LIB, API, SRC, None, None]


@pytest.mark.parametrize(
    ("event", "waits"),
    [
        (seen(API, 1), True),
        (seen(API, 2), True),
        (Approve(API, identity(1), ANN), False),
        (Deny(API, ANN), False),
        (Deny(SRC, ANN), False),
        (ProjectUnreachable(API), False),
        (ProjectUnsafe(API, LapseReason.EXPOSED), False),
        (ProjectObserved(API, ProjectKind.GIT, identity(1), IncompleteReason.LOCKED), False),
    ],
)
def test_undecided_present_complete_and_safe_projects_are_pending(
    event: Input, *, waits: bool
) -> None:
    catalog = after(KNOWN, event)
    assert catalog.is_pending(catalog.projects[API]) is waits


def test_worktrees_inherit_only_from_an_approved_main_checkout() -> None:
    catalog = after(approved(API), seen(b"/v/1", 8, API), Approve(b"/v/1", tree(8), ANN))
    speaks = catalog.decision_context.approved_since
    assert [speaks(path) for path in (API, LIB, b"/v/1", b"/v/nothing")] == [
        to_ns(NOW), None, None, None,
    ]  # fmt: skip


def test_a_moved_folder_is_recognized_by_its_identity_only() -> None:
    approval = Approve(b"/w/a", identity(1), ANN, name="api")
    moves: list[Input] = [ProjectGone(b"/w/a"), seen(b"/w/b", 1), seen(b"/w/c", 2)]
    catalog = plan(after(NOTHING_KNOWN, seen(b"/w/a", 1), approval), moves, NOW).catalog
    assert b"/w/b" not in catalog.roots
    for known in (catalog, after(catalog, Rename(b"/w/b", "mine", ANN))):
        assert known.moved_from(known.projects[b"/w/b"]) is known.projects[b"/w/a"]
        assert known.moved_from(known.projects[b"/w/c"]) is None
        assert known.moved_from(known.projects[b"/w/a"]) is None


def test_a_missing_project_is_recognized_by_its_origin() -> None:
    approval = Approve(b"/w/a", identity(1), ANN, name="api", origin="there")
    catalog = after(NOTHING_KNOWN, seen(b"/w/a", 1), approval, seen(b"/w/b", 2))
    assert catalog.missing_with_origin(catalog.projects[b"/w/b"], "there") is None
    assert not catalog.may_match_origin(catalog.projects[b"/w/b"])
    catalog = after(catalog, ProjectGone(b"/w/a"))
    again = catalog.projects[b"/w/b"]
    assert catalog.may_match_origin(again)
    assert catalog.missing_with_origin(again, "there") is catalog.projects[b"/w/a"]
    assert catalog.missing_with_origin(again, "elsewhere") is None
    catalog = after(catalog, Approve(b"/w/b", identity(2), ANN))
    assert catalog.missing_with_origin(catalog.projects[b"/w/b"], "there") is None


def test_a_present_unreachable_or_undecided_project_was_not_moved() -> None:
    approval = Approve(b"/w/a", identity(1), ANN)
    for first, then in (
        ((seen(b"/w/a", 1), approval), seen(b"/w/a", 1)),
        ((seen(b"/w/a", 1), approval), ProjectUnreachable(b"/w/a")),
        ((seen(b"/w/a", 1),), ProjectGone(b"/w/a")),
    ):
        catalog = plan(after(NOTHING_KNOWN, *first), [then, seen(b"/w/b", 1)], NOW).catalog
        assert catalog.moved_from(catalog.projects[b"/w/b"]) is None


def worked_out(catalog: Catalog) -> tuple[object, ...]:
    return (
        catalog.worktrees,
        catalog.missing_approved,
        catalog.expiring,
        catalog.ids,
        catalog.sorted_paths,
        catalog.kept_keys,
        catalog.proposed_names,
        catalog.named_paths,
    )


def in_order(catalog: Catalog) -> list[str]:
    return [root.name for root in catalog.sorted_roots]


LINKED = b"/w/linked"
ONE = Approve(OTHER, identity(ALL.index(OTHER)), ANN)


@pytest.mark.parametrize(
    "change",
    [
        seen(OTHER, 7),
        seen(b"/w/more", 7),
        seen(b"/w/more", 7, main=API),
        replace(ONE, name="another"),
        replace(ONE, expires=Expiry(NOW, "boot", 5)),
        Deny(API, ANN),
        Forget(API, ANN),
        Rename(API, "else", ANN),
        ProjectGone(API),
        ProjectGone(API, LapseReason.REPLACED),
        forbid(b"/w/**"),
    ],
)
def test_cached_values_equal_recomputed_ones(change: Input) -> None:
    before = after(approved(API), seen(LINKED, 6, main=API))
    known, ordered, counts = worked_out(before), before.sorted_roots, Counter(before.counts)
    catalog = after(before, change)
    projects = catalog.projects.values()
    parts = projects, catalog.rules, catalog.places, catalog.next_rule
    afresh = Catalog.of(*parts, reserved=catalog.reserved)
    assert worked_out(catalog) == worked_out(afresh)
    assert catalog.sorted_roots == afresh.sorted_roots
    is_kept = "counts" in catalog.__dict__
    assert is_kept is not isinstance(change, AddRule)  # a rule judges all projects again
    assert catalog.counts == afresh.counts
    assert catalog.counts[Count.PENDING] == sum(map(catalog.is_pending, projects))
    assert (worked_out(before), before.sorted_roots) == (known, ordered)
    assert before.counts == counts


def test_a_batch_of_a_scan_is_counted_alone() -> None:
    scan = [seen(b"/w/p%d" % number, number) for number in range(400)]
    before = plan(NOTHING_KNOWN, scan[:300], NOW).catalog
    assert before.counts[Count.PENDING] == 300
    catalog = plan(before, scan[290:], NOW).catalog
    assert "counts" in catalog.__dict__
    assert catalog.counts[Count.PENDING] == 400


@given(st.lists(st.tuples(st.sampled_from(ALL), st.sampled_from("pqrs"), st.booleans())))
def test_roots_stay_in_the_order_of_their_names(orders: list[tuple[bytes, str, bool]]) -> None:
    catalog = KNOWN
    assert catalog.sorted_roots == ()
    for path, name, is_approval in orders:
        approval = Approve(path, identity(ALL.index(path)), ANN, name=name)
        with suppress(OrderRefused):  # the name belongs to another
            catalog = after(catalog, approval if is_approval else Deny(path, ANN))
        assert in_order(catalog) == sorted(root.name for root in catalog.roots.values())


def test_values_that_a_change_does_not_affect_are_not_recomputed() -> None:
    before = approved(API)
    known, proposed = worked_out(before), before.proposed_names
    denied = after(before, Deny(API, ANN))
    assert all(a is b for a, b in zip(known, worked_out(denied), strict=True))
    assert after(before, Rename(API, "else", ANN)).proposed_names is not proposed


def test_a_missing_approved_root_is_kept_until_its_approval_lapses() -> None:
    catalog = after(approved(API), ProjectGone(API), ProjectGone(OTHER))
    assert catalog.missing_approved == {API: catalog.projects[API]}
    assert after(catalog, ProjectUnreachable(API)).missing_approved == {}
    assert after(catalog, seen(API, ALL.index(API))).missing_approved == {}
    assert after(catalog, Deny(API, ANN)).missing_approved == {}
    assert after(catalog, ProjectGone(API, LapseReason.REPLACED)).missing_approved == {}


def test_the_identities_are_those_of_the_published_folders() -> None:
    catalog = after(approved(API, OTHER), uri_seen(URI), Approve(URI, None, ANN))
    assert catalog.roots.keys() == {API, OTHER, URI}
    assert catalog.identities == {path: identity(ALL.index(path)) for path in (API, OTHER)}
    gone = after(catalog, ProjectGone(API))
    assert gone.identities.keys() == {OTHER}
