from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest
from hypothesis import Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from msgspec.structs import replace

from rootsd.core import context, decide, grants, rules, transition
from rootsd.core import plan as plan_module
from rootsd.core.access import Access
from rootsd.core.catalog import Catalog
from rootsd.core.changes import ChangeVerb, ProjectChange, RuleChange
from rootsd.core.encoding import to_ns
from rootsd.core.errors import DeniedHere, NameTaken, RefusedPlace, UnknownProject, UnknownRule
from rootsd.core.inputs import (
    AddRule,
    Approve,
    Deny,
    Forget,
    Observation,
    ProjectGone,
    ProjectObserved,
    ProjectUnsafe,
    RemoveRule,
)
from rootsd.core.model import Expiry, Identity, LapseReason, Project, Rule, Verdict
from rootsd.core.paths import text_of
from rootsd.core.plan import plan
from support.approval_machine import ApprovalMachine
from support.core_samples import ANN, HOME, LATER, NOTHING_KNOWN, NOW, after, identity, seen

SRC = HOME + b"/src"
API = SRC + b"/api"
INNER = API + b"/inner"
WORKTREE = SRC + b"/api-fix"
END = Expiry(LATER, "boot", 1)


def approve(path: bytes, number: int = 1, name: str | None = None) -> Approve:
    return Approve(path, identity(number), ANN, name)


def allow(pattern: bytes) -> AddRule:
    return AddRule(pattern, Verdict.APPROVED, ANN)


def forbid(pattern: bytes) -> AddRule:
    return AddRule(pattern, Verdict.DENIED, ANN)


def run(machine: type[ApprovalMachine], sizing: settings) -> None:
    run_state_machine_as_test(machine, settings=settings(sizing, stateful_step_count=40))


def test_only_projects_approved_by_their_newest_order_are_published() -> None:
    run(ApprovalMachine, settings())


def _nothing_above(_: bytes) -> tuple[bytes, ...]:
    return ()


def _unlapsed(project: Project, _reason: object, _now: object) -> Project:
    return project


def _no_deny_rule(all_rules: tuple[Rule, ...], project: Project, verdict: Verdict) -> Rule | None:
    return None if verdict is Verdict.DENIED else rules.first_match(all_rules, project, verdict)


def _any_rule(*_: object) -> Rule:
    return Rule(1, b"/", Verdict.APPROVED, ANN, NOW)


# Any seed finds each fault, but some seeds take seconds. One of these finds it soon.
# Any seed finds each fault, but some seeds take seconds. These find it soon.
@pytest.mark.parametrize(
    ("where", "name", "broken", "fails_soon"),
    [
        pytest.param(Identity, "same_as", lambda *_: True, 17, id="identity not compared"),
        pytest.param(transition, "_lapsed", _unlapsed, 17, id="approvals kept when exposed"),
        pytest.param(decide, "ancestors", _nothing_above, 4, id="denial above not seen"),
        pytest.param(context, "ancestors", _nothing_above, 4, id="denied inside not seen"),
        pytest.param(decide, "first_match", _no_deny_rule, 17, id="deny rules not read"),
        pytest.param(decide, "approving_rule", _any_rule, 4, id="removed rules still count"),
        pytest.param(
            context, "_approved_since", lambda *_: to_ns(NOW), 4, id="any checkout will do"
        ),
        pytest.param(
            grants, "inheritance_blocker", lambda *_: None, 17, id="older worktrees inherit"
        ),
        pytest.param(
            plan_module, "affected_paths", lambda touched, *_: set(touched), 4,
            id="neighbors not judged",
        ),
        pytest.param(
            grants, "_can_be_granted", lambda *_: True, 4, id="refused places granted by rule"
        ),
        pytest.param(
            plan_module, "_coalesce_observations", list, 4, id="a second scan changes something"
        ),
    ],
)  # fmt: skip
def test_the_harness_detects_a_broken_decision(
    monkeypatch: pytest.MonkeyPatch,
    where: object,
    name: str,
    broken: Callable[..., object],
    fails_soon: int,
) -> None:
    class Machine(ApprovalMachine):
        pass

    monkeypatch.setattr(where, name, broken)
    # A planted fault can also damage the machine's own table of projects.
    with pytest.raises((AssertionError, KeyError, ExceptionGroup)):
        run(seed(fails_soon)(Machine), settings(max_examples=5_000, phases=[Phase.generate]))


def test_an_approval_publishes_under_the_name_that_the_person_saw() -> None:
    catalog = after(NOTHING_KNOWN, seen(API))
    assert catalog.proposed_names[API] == "api"
    made = plan(catalog, [seen(b"/srv/api", 2), approve(API)], NOW)
    assert [root.name for root in made.catalog.roots.values()] == ["api"]
    change = made.changes[-1]
    assert (change.verb, change.actor) == (ChangeVerb.APPROVED, ANN)


def test_approving_a_denied_project_ends_the_denial_of_projects_below() -> None:
    catalog = after(NOTHING_KNOWN, seen(b"/srv/mono"), seen(b"/srv/mono/api", 2))
    catalog = after(catalog, Deny(b"/srv/mono", ANN))
    assert catalog.judgments[b"/srv/mono/api"].verdict is Verdict.DENIED
    catalog = after(catalog, approve(b"/srv/mono"))
    assert list(catalog.roots) == [b"/srv/mono"]
    assert catalog.judgments[b"/srv/mono/api"].verdict is Verdict.PENDING


def test_a_name_frozen_in_the_same_batch_is_taken_and_an_abandoned_one_is_free() -> None:
    both = after(NOTHING_KNOWN, seen(API), seen(b"/srv/b", 2))
    made = plan(both, [approve(b"/srv/b", 2, "api"), approve(API)], NOW).catalog
    assert {root.name for root in made.roots.values()} == {"api", "src/api"}
    catalog = after(both, approve(API, 1, "main"))
    freed = plan(catalog, [Forget(API, ANN), approve(b"/srv/b", 2, "main")], NOW).catalog
    assert freed.roots[b"/srv/b"].name == "main"
    with pytest.raises(NameTaken, match=f"'?main'? belongs to {text_of(API)}") as refused:
        plan(catalog, [approve(b"/srv/b", 2, "main")], NOW)
    assert refused.value.remedy == f"rootsd show {text_of(API)}"


def test_ids_are_permanent_and_a_returning_project_keeps_its_id() -> None:
    catalog = plan(NOTHING_KNOWN, [seen(API), seen(b"/srv/b", 2)], NOW).catalog
    first = catalog.projects[API].id
    assert after(catalog, ProjectGone(API), seen(API)).projects[API].id == first
    assert len(catalog.ids) == 2


@pytest.mark.parametrize("place", [HOME, b"/etc/app", HOME + b"/.ssh/keys", SRC + b"/\xff"])
def test_neither_persons_nor_rules_can_approve_a_refused_place(place: bytes) -> None:
    catalog = after(NOTHING_KNOWN, seen(place))
    with pytest.raises(RefusedPlace):
        plan(catalog, [approve(place)], NOW)
    assert after(catalog, allow(b"/")).projects[place].ruling.grants == ()


@pytest.mark.parametrize(
    ("obstacle", "remedy"),
    [
        ([seen(SRC), Deny(SRC, ANN)], "rootsd forget /home/ann/src"),
        ([forbid(b"/home/*/src")], "rootsd rule rm 1"),
        ([seen(INNER, 5), Deny(INNER, ANN)], "rootsd forget ID"),
    ],
)
def test_an_approval_under_a_denial_is_refused_with_a_remedy(
    obstacle: list[ProjectObserved | Deny | AddRule], remedy: str
) -> None:
    catalog = after(NOTHING_KNOWN, seen(API), *obstacle)
    with pytest.raises(DeniedHere) as refused:
        plan(catalog, [approve(API)], NOW)
    inner = catalog.projects.get(INNER)
    assert refused.value.remedy == remedy.replace("ID", inner.id if inner else "")
    assert catalog.roots == {}


def test_an_order_for_an_unknown_project_refuses_the_whole_batch() -> None:
    catalog = after(NOTHING_KNOWN, seen(API))
    for order in (approve(SRC), Deny(SRC, ANN), Forget(SRC, ANN)):
        with pytest.raises(UnknownProject, match="/home/ann/src") as refused:
            plan(catalog, [approve(API), order], NOW)
        assert refused.value.remedy == "rootsd scan"
    with pytest.raises(UnknownRule, match="no rule 7"):
        plan(catalog, [RemoveRule(7, ANN)], NOW)
    assert catalog.roots == {}


def test_rule_numbers_are_never_reused() -> None:
    made = plan(NOTHING_KNOWN, [allow(b"/w//x/"), RemoveRule(1, ANN), forbid(b"/w")], NOW)
    assert [rule.number for rule in made.catalog.rules] == [2]
    added, removed, _ = made.changes
    assert isinstance(added, RuleChange)
    assert added.after is not None
    assert added.after.pattern == b"/w/x"
    assert (removed.before, removed.after) == (added.after, None)


def test_a_later_event_in_the_batch_overrides_the_approval() -> None:
    catalog = after(NOTHING_KNOWN, seen(API))
    made = plan(catalog, [approve(API), seen(API, 2)], NOW)
    assert [change.verb for change in made.changes] == [ChangeVerb.APPROVED, ChangeVerb.LAPSED]
    assert made.catalog.roots == {}
    gone = plan(catalog, [approve(API), ProjectGone(API), Forget(API, ANN)], NOW).catalog
    assert gone.projects == {}


def test_two_observations_of_one_project_are_one_change() -> None:
    look: list[Observation] = [seen(API), ProjectUnsafe(API, LapseReason.EXPOSED)]
    first = plan(NOTHING_KNOWN, look, NOW)
    (change,) = first.changes
    assert isinstance(change, ProjectChange)
    assert change.before is None
    assert change.after == first.catalog.projects[API]
    assert plan(first.catalog, look, LATER).changes == ()
    assert plan(NOTHING_KNOWN, [seen(API), ProjectGone(API)], NOW).catalog is NOTHING_KNOWN


def test_a_replaced_catalog_is_freed_at_once() -> None:
    """A large catalog must not wait for the garbage collector."""
    catalog = after(
        NOTHING_KNOWN, seen(API), seen(WORKTREE, 2, API), approve(API), forbid(b"/srv")
    )
    replaced = weakref.ref(catalog)
    gc.disable()
    try:
        catalog = after(catalog, seen(SRC + b"/new", 3), Deny(API, ANN))
        assert replaced() is None
    finally:
        gc.enable()
    assert catalog.roots == {}


def _moved(*, then: Deny | None = None) -> Catalog:
    """Return a catalog in which directory 1 was approved at one path and is now at another."""
    approval = Approve(
        API, identity(1), ANN, name="shop", tags=("work",), access=Access.READ, origin="there",
        expires=END,
    )  # fmt: skip
    catalog = after(NOTHING_KNOWN, seen(API), approval, *([then] if then else []))
    return plan(catalog, [ProjectGone(API), seen(SRC + b"/new")], NOW).catalog


def test_approving_a_moved_project_keeps_what_the_order_does_not_override() -> None:
    made = plan(_moved(), [Approve(SRC + b"/new", identity(1), ANN, tags=("x",))], NOW)
    ruling = made.catalog.projects[SRC + b"/new"].ruling
    assert (ruling.name, ruling.tags, ruling.access) == ("shop", ("work", "x"), Access.READ)
    assert ruling.origin == "there"
    assert ruling.decision is not None
    assert ruling.decision.expires == END
    assert API not in made.catalog.projects
    assert [change.verb for change in made.changes] == [ChangeVerb.FORGOTTEN, ChangeVerb.APPROVED]
    order = Approve(SRC + b"/new", identity(1), ANN, name="other", origin="here")
    ruling = after(_moved(), order).projects[SRC + b"/new"].ruling
    assert (ruling.name, ruling.tags, ruling.origin) == ("other", ("work",), "here")


def test_a_denial_stays_at_its_path_and_does_not_follow_a_move() -> None:
    approval = Approve(SRC + b"/new", identity(1), ANN)
    earlier = after(_moved(then=Deny(API, ANN)), approval)
    at_once = plan(_moved(), [Deny(API, ANN), approval], NOW).catalog
    for catalog in (earlier, at_once):
        assert catalog.is_denied(catalog.projects[API])
        ruling = catalog.projects[SRC + b"/new"].ruling
        assert (ruling.name, ruling.tags) == ("new", ())


def test_another_folder_with_the_same_origin_gets_no_settings() -> None:
    catalog = after(_moved(), seen(SRC + b"/other", 2))
    order = Approve(SRC + b"/other", identity(2), ANN, origin="there")
    catalog = after(catalog, order)
    assert catalog.projects[SRC + b"/other"].ruling.name == "other"
    assert API in catalog.projects


def test_a_renewed_approval_has_a_new_number_and_a_restored_one_its_own() -> None:
    once = plan(NOTHING_KNOWN, [seen(API), seen(b"/srv/b", 2), approve(API, name="x")], NOW)
    again = plan(once.catalog, [approve(API)], LATER).catalog
    root = once.catalog.roots[API]
    assert again.roots[API] == replace(root, approval=root.approval + 1)
    orders = [replace(approve(API), number=7), approve(b"/srv/b", 2)]
    known = plan(NOTHING_KNOWN, [seen(API), seen(b"/srv/b", 2)], NOW).catalog
    roots = plan(known, orders, NOW).catalog.roots
    assert [roots[path].approval for path in (API, b"/srv/b")] == [7, 1]
