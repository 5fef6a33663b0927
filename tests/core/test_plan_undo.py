"""Undo, renames and tags in plans."""

from __future__ import annotations

import pytest

from rootsd.core.changes import ChangeVerb
from rootsd.core.errors import DeniedHere, NameTaken, RefusedPlace
from rootsd.core.inputs import (
    AddRule,
    Approve,
    Deny,
    Forget,
    RemoveRule,
    Rename,
    Restore,
    RestoreRule,
    Retag,
)
from rootsd.core.model import Verdict
from rootsd.core.plan import plan
from support.core_samples import ANN, HOME, LATER, NOTHING_KNOWN, NOW, PLACES, identity, seen

SRC = HOME + b"/src"
API = SRC + b"/api"
WORKTREE = SRC + b"/api-fix"


def approve(path: bytes, number: int = 1, name: str | None = None) -> Approve:
    return Approve(path, identity(number), ANN, name)


def allow(pattern: bytes) -> AddRule:
    return AddRule(pattern, Verdict.APPROVED, ANN)


def forbid(pattern: bytes) -> AddRule:
    return AddRule(pattern, Verdict.DENIED, ANN)


def test_an_undo_restores_the_state_and_is_an_event() -> None:
    found = plan(NOTHING_KNOWN, [seen(API, 1)], NOW)
    done = plan(found.catalog, [approve(API)], NOW)
    before, after_ = found.catalog.projects[API], done.catalog.projects[API]
    back = plan(done.catalog, [Restore(API, after_.ruling, before.ruling, ANN)], LATER)
    assert back.catalog.roots == {}
    assert [change.verb for change in back.changes] == [ChangeVerb.UNDONE]
    again = plan(back.catalog, [Restore(API, before.ruling, after_.ruling, ANN)], LATER)
    assert again.catalog.roots == done.catalog.roots


def test_an_approval_is_not_restored_below_a_denial_with_a_used_name_or_in_a_refused_place() -> (
    None
):
    known = plan(NOTHING_KNOWN, [seen(API, 1), seen(WORKTREE, 2)], NOW).catalog
    done = plan(known, [approve(API)], NOW).catalog
    undecided = plan(done, [Forget(API, ANN)], NOW).catalog
    restore = Restore(API, undecided.projects[API].ruling, done.projects[API].ruling, ANN)
    covered = plan(undecided, [forbid(SRC + b"/**")], NOW).catalog
    taken = plan(undecided, [approve(WORKTREE, 2, "api")], NOW).catalog
    refusing = undecided.with_places(PLACES._replace(own=(API,)))
    for catalog, why in (
        (covered, DeniedHere), (taken, NameTaken), (refusing, RefusedPlace),
    ):  # fmt: skip
        with pytest.raises(why):
            plan(catalog, [restore], LATER)


def test_undoing_a_denial_affects_projects_below() -> None:
    inner = API + b"/inner"
    known = plan(NOTHING_KNOWN, [seen(API, 1), seen(inner, 2)], NOW).catalog
    approved_inner = plan(known, [approve(inner, 2)], NOW).catalog
    denied_above = plan(approved_inner, [Deny(API, ANN)], NOW).catalog
    assert denied_above.roots == {}
    restore = Restore(API, denied_above.projects[API].ruling, known.projects[API].ruling, ANN)
    assert set(plan(denied_above, [restore], LATER).catalog.roots) == {inner}


def test_undo_restores_and_removes_a_rule_with_its_number() -> None:
    known = plan(NOTHING_KNOWN, [seen(API, 1), allow(SRC + b"/**"), forbid(b"/x/**")], NOW).catalog
    first = known.rules[0]
    removed = plan(known, [RemoveRule(1, ANN)], NOW).catalog
    assert set(removed.roots) == set()
    back = plan(removed, [RestoreRule(1, first, ANN)], LATER)
    assert back.catalog.rules == known.rules
    assert set(back.catalog.roots) == {API}
    gone = plan(back.catalog, [RestoreRule(1, None, ANN)], LATER).catalog
    assert [rule.number for rule in gone.rules] == [2]


def test_tags_and_names_are_events_and_a_name_is_unique() -> None:
    known = plan(NOTHING_KNOWN, [seen(API, 1), seen(WORKTREE, 2)], NOW).catalog
    done = plan(known, [Rename(API, "x", ANN), Retag(API, ("go",), (), ANN)], NOW)
    assert [change.verb for change in done.changes] == [ChangeVerb.RENAMED, ChangeVerb.TAGGED]
    with pytest.raises(NameTaken):
        plan(done.catalog, [Rename(WORKTREE, "x", ANN)], NOW)
