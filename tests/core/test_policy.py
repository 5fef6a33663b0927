"""The machine's policy: it denies, approves, and never widens anything by its denials."""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from rootsd.core import decide
from rootsd.core.catalog import Catalog
from rootsd.core.changes import ChangeVerb, ProjectChange
from rootsd.core.decide import VerdictReason, is_published, judge
from rootsd.core.errors import DeniedHere, RefusedPlace
from rootsd.core.inputs import AddRule, Approve, Deny, PolicyRuleEnded, ProjectUnsafe, Reinstate
from rootsd.core.model import ActorKind, LapseReason, Verdict
from rootsd.core.paths import PolicyEntry, RefusedPlaces
from rootsd.core.plan import plan
from rootsd.core.policy import NO_POLICY, MachinePolicy, broken_policy
from rootsd.state.effects import grantable_projects, plan_deferred_grants, policy_grants_that_ended
from support.approval_machine import COVERED, PATHS, ApprovalMachine
from support.core_samples import (
    ANN,
    HOME,
    LATER,
    NOTHING_KNOWN,
    NOW,
    after,
    identity,
    seen,
    uri_seen,
)
from support.sizes import Sizes

API, WEB, URI = b"/w/api", b"/w/web", b"https://api.example.com/v1"
WHERE = "/etc/rootsd/policy.toml, line 4"
BROKEN = broken_policy("the file belongs to user 7")


def entry(pattern: bytes) -> PolicyEntry:
    return PolicyEntry(pattern, WHERE)


def denies(*patterns: bytes) -> MachinePolicy:
    return MachinePolicy(denied=tuple(map(entry, patterns)), is_present=True)


def refuses(*places: bytes) -> MachinePolicy:
    return MachinePolicy(refused=tuple(map(entry, places)), is_present=True)


def approves(*patterns: bytes) -> MachinePolicy:
    return MachinePolicy(approved=tuple(map(entry, patterns)), is_present=True)


def under(catalog: Catalog, policy: MachinePolicy) -> Catalog:
    """Return the catalog after the ledger's steps for a new policy."""
    catalog = catalog.with_policy(policy)
    catalog = plan(catalog, policy_grants_that_ended(catalog), NOW).catalog
    return plan_deferred_grants(catalog, grantable_projects(catalog), NOW).catalog


@pytest.fixture
def approved() -> Catalog:
    """Two approved projects, and an approved URI."""
    return after(
        NOTHING_KNOWN,
        seen(API, 1),
        seen(WEB, 2),
        uri_seen(URI),
        Approve(API, identity(1), ANN),
        Approve(WEB, identity(2), ANN),
        Approve(URI, None, ANN),
    )


@pytest.mark.parametrize(
    ("policy", "left", "reason"),
    [
        (denies(b"/w/a*"), {WEB, URI}, VerdictReason.POLICY_DENY_RULE),
        (refuses(API), {WEB, URI}, VerdictReason.POLICY_PLACE),
        (refuses(API + b"/secrets"), {WEB, URI}, VerdictReason.POLICY_PLACE),
        (refuses(b"/"), {URI}, VerdictReason.POLICY_PLACE),
        (BROKEN, set(), VerdictReason.POLICY_BROKEN),
    ],
)
def test_an_approval_that_the_policy_denies_is_withheld_and_comes_back(
    approved: Catalog, policy: MachinePolicy, left: set[bytes], reason: VerdictReason
) -> None:
    ruled = under(approved, policy)
    assert set(ruled.roots) == left
    assert not ruled.withheld
    assert ruled.judgments[API].reason is reason
    assert ruled.projects == approved.projects
    assert under(ruled, NO_POLICY) == approved


@pytest.mark.parametrize("policy", [denies(b"/w/a*"), refuses(b"/w"), BROKEN])
def test_no_order_of_a_user_overrides_the_policy(policy: MachinePolicy) -> None:
    ruled = under(after(NOTHING_KNOWN, seen(API)), policy)
    with pytest.raises((DeniedHere, RefusedPlace)) as refused:
        plan(ruled, [Approve(API, identity(1), ANN)], NOW)
    assert "policy" in str(refused.value)
    assert (WHERE in str(refused.value)) is not bool(policy.problem)
    assert BROKEN.problem in str(refused.value) or not policy.problem
    by_rule = after(ruled, AddRule(b"/w", Verdict.APPROVED, ANN))
    assert not by_rule.roots
    assert not by_rule.projects[API].ruling.approves
    # It can still be denied, and the denial outlives the policy.
    denied = under(after(ruled, Deny(API, ANN)), NO_POLICY)
    assert denied.judgments[API].reason is VerdictReason.DENIED


def test_a_lapsed_grant_is_not_reinstated_under_a_denial_of_the_policy() -> None:
    granted = after(NOTHING_KNOWN, AddRule(b"/w", Verdict.APPROVED, ANN), seen(API, 1))
    lapsed = after(granted, ProjectUnsafe(API, LapseReason.STORE_RESTORED), seen(API, 1))
    ruled = under(lapsed, denies(API))
    again = Reinstate(API, Approve(API, identity(1), ANN), ANN)
    with pytest.raises(DeniedHere, match=WHERE):
        plan(ruled, [again], NOW)
    assert set(after(under(ruled, NO_POLICY), again).roots) == {API}


def test_a_root_that_holds_a_project_that_the_policy_denies_is_withheld() -> None:
    inner = API + b"/inner"
    known = after(NOTHING_KNOWN, seen(API, 1), seen(inner, 2), Approve(API, identity(1), ANN))
    ruled = under(known, denies(inner))
    assert not ruled.roots
    assert set(ruled.withheld) == {API}  # the wall masks the project
    with pytest.raises(DeniedHere, match=WHERE):
        plan(ruled, [Approve(API, identity(1), ANN)], NOW)


def test_an_approve_rule_of_the_policy_grants_now_and_later_and_a_user_narrows_it() -> None:
    secret = HOME + b"/.ssh/keys"
    ruled = under(after(NOTHING_KNOWN, seen(API, 1), seen(secret, 3)), approves(b"/w/*", b"/**"))
    (grant,) = ruled.projects[API].ruling.grants
    assert (grant.actor.kind, grant.actor.detail) == (ActorKind.POLICY, "/w/*")
    later = after(ruled, seen(WEB, 2))
    assert set(later.roots) == {API, WEB}, "the other place can never be a root"
    assert later.judgments[WEB].reason is VerdictReason.POLICY_APPROVE_RULE
    assert later.judgments[WEB].by == entry(b"/w/*")
    assert set(after(later, Deny(API, ANN)).roots) == {WEB}
    assert not after(later, AddRule(b"/w", Verdict.DENIED, ANN)).roots


def test_the_end_of_a_rule_is_recorded_as_withdrawn() -> None:
    ruled = under(after(NOTHING_KNOWN, seen(API)), approves(b"/w")).with_policy(NO_POLICY)
    (change,) = plan(ruled, policy_grants_that_ended(ruled), LATER).changes
    assert isinstance(change, ProjectChange)
    assert (change.verb, change.is_decision) == (ChangeVerb.WITHDRAWN, True)
    assert plan(ruled, [PolicyRuleEnded(b"/unknown", ANN)], LATER).changes == ()


def test_a_broken_policy_withholds_its_own_approvals_and_keeps_them() -> None:
    ruled = under(after(NOTHING_KNOWN, seen(API)), approves(b"/w"))
    broken = under(ruled, BROKEN)
    assert not broken.roots
    assert broken.projects == ruled.projects
    assert under(broken, approves(b"/w")) == ruled


def test_a_clone_during_a_broken_policy_gets_its_grant_when_the_policy_works() -> None:
    rule = after(NOTHING_KNOWN, AddRule(b"/w", Verdict.APPROVED, ANN))
    broken = after(under(rule, BROKEN), seen(API))
    assert not broken.roots
    assert set(under(broken, NO_POLICY).roots) == {API}


def test_a_worktree_inherits_from_a_checkout_that_the_policy_approves() -> None:
    ruled = under(after(NOTHING_KNOWN, seen(API)), approves(API))
    tree = b"/v/fix"
    with_tree = after(ruled, seen(tree, 2, API))
    assert set(with_tree.roots) == {API, tree}
    assert set(under(with_tree, NO_POLICY).roots) == set()


def test_configured_places_do_not_replace_those_of_the_policy(approved: Catalog) -> None:
    allowing = RefusedPlaces(HOME, allowed=(b"/w",))
    ruled = under(approved, refuses(b"/w")).with_places(allowing)
    assert set(ruled.roots) == {URI}
    assert ruled.places.why_no_root(API) == f"the policy refuses it ({WHERE})"
    assert ruled.places.why_lapsing(API) is None


_entries = st.lists(st.sampled_from(sorted(COVERED)).map(entry), max_size=2).map(tuple)
_places = st.lists(st.sampled_from(PATHS).map(entry), max_size=2).map(tuple)
narrowing = st.builds(
    MachinePolicy,
    refused=_places,
    denied=_entries,
    problem=st.sampled_from(("", "", "", "it is broken")),
    is_present=st.just(True),
)


class _NarrowedCatalogs(ApprovalMachine):
    """Random catalogs, each of them under random policies that approve nothing."""

    @rule(policy=narrowing)
    def narrow(self, policy: MachinePolicy) -> None:
        ruled = self.catalog.with_policy(policy)
        assert ruled.roots.items() <= self.catalog.roots.items()
        reachable = self.catalog.roots.keys() | self.catalog.withheld.keys()
        assert ruled.roots.keys() | ruled.withheld.keys() <= reachable
        assert ruled.with_policy(NO_POLICY) == self.catalog
        self.look_through(ruled)

    def look_through(self, ruled: Catalog) -> None:
        """Check that there is one decision function, which knows the policy."""
        for project in ruled.projects.values():
            judgment = judge(project, ruled.decision_context)
            assert is_published(project, judgment) is (project.path in ruled.roots)
            if (entry := ruled.policy.deny_rule(project.path)) is not None:
                assert judgment.verdict is Verdict.DENIED, entry


SMALL = settings(max_examples=15, stateful_step_count=25, phases=[Phase.generate])


def test_a_policy_that_approves_nothing_never_widens_what_is_published(sizes: Sizes) -> None:
    steps = settings(SMALL, max_examples=sizes.pick(test=8, check=300, soak=900))
    run_state_machine_as_test(_NarrowedCatalogs, settings=steps)


def test_the_test_for_narrowing_notices_a_policy_that_widens() -> None:
    class Widened(_NarrowedCatalogs):
        @rule(policy=narrowing)
        def narrow(self, policy: MachinePolicy) -> None:
            wider = policy._replace(approved=(entry(b"/w"),), problem="")
            ruled = under(self.catalog, wider)
            assert ruled.roots.items() <= self.catalog.roots.items()

    with pytest.raises(AssertionError):
        run_state_machine_as_test(Widened, settings=settings(SMALL, max_examples=500))


def test_the_test_for_narrowing_notices_a_decision_without_the_policy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Forgetful(_NarrowedCatalogs):
        pass

    monkeypatch.setattr(decide, "_policy_denials", lambda *_: iter(()))
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Forgetful, settings=settings(SMALL, max_examples=500))
