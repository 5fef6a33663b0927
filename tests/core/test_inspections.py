"""What a look into a project changes: rules, and what a person is told."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rootsd.core.catalog import Catalog
from rootsd.core.changes import ChangeVerb
from rootsd.core.errors import IdentityChanged
from rootsd.core.inputs import (
    Accept,
    AddRule,
    Approve,
    Input,
    ProjectInspected,
    Reinstate,
    RemoveRule,
)
from rootsd.core.model import Inspection, LapseReason, Project, Verdict
from rootsd.core.plan import plan
from rootsd.core.risks import RiskLimit
from support.core_samples import ANN, LATER, NOTHING_KNOWN, NOW, after, identity, seen, tree

API = b"/home/ann/work/api"
TREE = b"/home/ann/work/api-fix"
WORK = b"/home/ann/work/**"
ORIGIN = "github.com/acme/api"
HAS_MCP = (("mcp", "1"),)
APPROVE = Approve(API, identity(1), ANN)
NO_RISK = AddRule(WORK, Verdict.APPROVED, ANN, risk=RiskLimit.NONE)
ACME = AddRule(WORK, Verdict.APPROVED, ANN, "github.com/acme/*")


def look(
    *files: tuple[str, str],
    risk: str = "",
    origin: str | None = ORIGIN,
    number: int = 1,
    lapse: LapseReason | None = None,
) -> ProjectInspected:
    return ProjectInspected(
        API, identity(number), Inspection(repr(files).encode(), origin, risk, files), lapse
    )


def is_published(*inputs: Input) -> bool:
    return API in after(NOTHING_KNOWN, *inputs).roots


def api_after(*inputs: Input) -> Project:
    return after(NOTHING_KNOWN, *inputs).projects[API]


@pytest.mark.parametrize("rule", [NO_RISK, ACME])
def test_a_rule_with_a_condition_waits_for_a_look_and_then_publishes(rule: AddRule) -> None:
    for order in ((rule, seen(API)), (seen(API), rule)):
        assert not is_published(*order)
        assert is_published(*order, look())
    assert is_published(seen(API), look(), rule)


def test_a_look_takes_the_approval_of_a_rule_away_and_gives_it_back() -> None:
    risky, other = look(risk="runs code: .mcp.json"), look(origin="github.com/mallory/api")
    published = (NO_RISK, seen(API), look())
    assert not is_published(*published, risky)
    assert is_published(*published, risky, look())
    assert is_published(*published, other)
    by_origin = (ACME, seen(API), look())
    assert not is_published(*by_origin, other)
    assert is_published(*by_origin, risky)
    assert is_published(*by_origin, other, APPROVE), "a person may approve it"
    assert not is_published(*by_origin, RemoveRule(1, ANN))


def test_a_look_into_another_folder_counts_for_nothing() -> None:
    assert not is_published(NO_RISK, seen(API), look(number=2))
    assert not is_published(NO_RISK, seen(API), look(), seen(API, 2))
    assert is_published(NO_RISK, seen(API), look(), seen(API, 2), look(number=2))


def test_a_worktree_follows_its_main_checkout_and_the_rule() -> None:
    known = after(NOTHING_KNOWN, ACME, seen(API), look())
    with_tree = after(known, replace(seen(TREE, 2, API), identity=tree(2)))
    assert TREE in with_tree.roots
    assert TREE not in after(with_tree, look(origin=None)).roots


@pytest.mark.parametrize(
    "inputs", [(seen(API), look(*HAS_MCP), APPROVE), (seen(API), APPROVE, look(*HAS_MCP))]
)
def test_an_approval_is_based_on_the_last_look_before_it_or_the_first_after_it(
    inputs: tuple[Input, ...],
) -> None:
    assert api_after(*inputs).changed_files == {}
    later = look(("mcp", "2"), (".envrc", "1"))
    assert api_after(*inputs, later).changed_files == {"mcp": "changed", ".envrc": "new"}
    assert is_published(*inputs, later)
    assert api_after(*inputs, later, look(*HAS_MCP)).changed_files == {}
    assert api_after(*inputs, look()).changed_files == {}, "a file that is gone is no risk"


def test_the_first_look_after_a_grant_is_noted_once() -> None:
    granted = after(NOTHING_KNOWN, AddRule(WORK, Verdict.APPROVED, ANN), seen(API))
    (noted,) = plan(granted, [look(*HAS_MCP)], NOW).changes
    assert noted.verb is ChangeVerb.NOTED
    (observed,) = plan(after(granted, look(*HAS_MCP)), [look()], NOW).changes
    assert observed.verb is ChangeVerb.OBSERVED


def test_a_lapse_after_a_look_is_logged_as_a_lapse() -> None:
    known = after(NOTHING_KNOWN, seen(API), APPROVE, look(*HAS_MCP))
    (lapsed,) = plan(known, [seen(API, 2)], NOW).changes
    assert lapsed.verb is ChangeVerb.LAPSED


def changed(*more: Input) -> Catalog:
    return after(NOTHING_KNOWN, AddRule(WORK, Verdict.APPROVED, ANN), seen(API), look(), *more)


def test_an_approval_ends_with_a_change_only_if_it_should_and_no_rule_gives_it_back() -> None:
    lapse = LapseReason.CHANGED
    assert API in changed(look(*HAS_MCP)).roots
    ended = changed(look(*HAS_MCP, lapse=lapse))
    assert API not in ended.roots
    assert API not in after(ended, look(lapse=lapse), seen(API)).roots
    assert API in after(ended, APPROVE).roots
    again = after(ended, Reinstate(API, APPROVE, ANN))
    assert API in again.roots
    assert again.projects[API].changed_files == {}
    assert API in after(again, look(lapse=lapse), look(*HAS_MCP, lapse=lapse)).roots
    replaced = after(again, seen(API, 2), replace(APPROVE, identity=identity(2)))
    assert replaced.projects[API].ruling.files is None, "another folder is there"
    assert API in changed(look(lapse=lapse)).roots


def test_a_person_accepts_only_what_the_last_look_found() -> None:
    known = changed(look(*HAS_MCP))
    accepted = plan(known, [Accept(API, ANN, HAS_MCP)], LATER)
    assert accepted.catalog.projects[API].changed_files == {}
    assert accepted.catalog.roots == known.roots
    assert [change.verb for change in accepted.changes] == [ChangeVerb.ACCEPTED]
    both = after(accepted.catalog, look(("mcp", "2")), Accept(API, ANN, (("mcp", "2"),)))
    back = after(both, look(*HAS_MCP))
    assert back.projects[API].changed_files == {}, "a person accepted that before"
    assert after(both, look(("mcp", "3"))).projects[API].changed_files == {"mcp": "changed"}
    for other in ((), (("mcp", "2"),)):
        with pytest.raises(IdentityChanged, match="not those that you were shown"):
            plan(known, [Accept(API, ANN, other)], LATER)
