"""The inspector looks into what matters, tells of each change once, and may end approvals."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rootsd.config.schema import ChangePolicy
from rootsd.core.model import IncompleteReason, Inspection, Presence, Project, Rule, Verdict
from rootsd.core.risks import RiskLimit
from support.control_harness import ControlHarness
from support.ledger_harness import SOURCES, path
from support.sample_decisions import NOON, PERSON, approved, denied, granted, project, worktree


def found(*files: tuple[str, str], risk: str = "") -> Inspection:
    return Inspection(repr(files).encode(), None, risk, files)


async def looked_into(*projects: Project, rules: tuple[Rule, ...] = ()) -> set[bytes]:
    """Return the projects into which a sweep looks."""
    control = ControlHarness(*projects, rules=rules)
    control.reader.seen = {each.path: found() for each in projects}
    await control.inspector.sweep()
    known = control.world.ledger.catalog.projects.values()
    return {each.path for each in known if each.observed.inspection is not None}


async def test_a_sweep_looks_into_approved_projects_and_where_a_rule_needs_it() -> None:
    allow = Rule(1, SOURCES, Verdict.APPROVED, PERSON, NOON)
    inherits = worktree(6, 1)
    known = (approved(1), denied(2), project(3), granted(4), inherits)
    assert await looked_into(*known, rules=(allow,)) == {path(1), path(4), path(6)}
    careful = replace(allow, risk=RiskLimit.NONE)
    assert {path(1), path(3), path(4)} <= await looked_into(*known, rules=(careful,))


async def test_a_sweep_leaves_out_what_is_gone_or_incomplete() -> None:
    gone = replace(approved(1).observed, presence=Presence.MISSING)
    cut = replace(approved(2).observed, incomplete=IncompleteReason.INTERRUPTED)
    known = replace(approved(1), observed=gone), replace(approved(2), observed=cut)
    assert await looked_into(*known) == set()


async def test_each_change_is_told_once() -> None:
    control = ControlHarness(approved(1), approved(2))

    async def sweep(*files: tuple[str, str]) -> list[str]:
        control.changed.clear()
        control.reader.seen = {path(1): found(*files), path(2): None}
        await control.inspector.sweep()
        return list(control.changed)

    assert await sweep(("mcp", "1")) == []
    assert await sweep(("mcp", "2")) == ["p1/mcp"]
    assert await sweep(("mcp", "3"), ("hook", "1")) == ["p1/hook"]
    assert await sweep(("mcp", "1")) == []
    assert control.world.published() == {path(1), path(2)}


async def test_a_worktree_that_inherits_is_compared_with_its_main_checkout() -> None:
    """One content is told once for all of its worktrees. Control: the main checkout's is not."""
    control = ControlHarness(approved(1), worktree(6, 1), worktree(7, 1))
    same, other = found(("mcp", "1")), found(("mcp", "2"), ("hook", "1"))
    control.reader.seen = {path(1): same, path(6): same, path(7): same}
    await control.inspector.sweep()
    assert control.changed == []
    control.reader.seen = {path(1): None, path(6): other, path(7): other}
    await control.inspector.sweep()
    assert sorted(control.changed) == ["p6/hook", "p6/mcp"]
    known = control.world.ledger.catalog.projects
    assert known[path(7)].changed_files == {"mcp": "changed", "hook": "new"}
    assert known[path(1)].changed_files == {}


async def test_a_new_worktree_with_other_files_loses_its_approval_by_that_policy() -> None:
    control = ControlHarness(approved(1), worktree(6, 1), worktree(7, 1))
    control.inspector.policy = ChangePolicy.PENDING
    same, other = found(("mcp", "1")), found(("mcp", "2"))
    control.reader.seen = {path(1): same, path(6): same, path(7): other}
    await control.inspector.sweep()
    assert control.world.published() == {path(1), path(6)}
    assert control.world.ledger.catalog.projects[path(7)].ruling.is_lapsed


async def test_a_switch_between_two_branches_is_told_once() -> None:
    control = ControlHarness(approved(1))

    async def sweep(content: str) -> list[str]:
        control.changed.clear()
        control.reader.seen = {path(1): found(("mcp", content))}
        await control.inspector.sweep()
        return list(control.changed)

    assert [await sweep(each) for each in ("main", "fix", "main", "fix")] == [
        [],
        ["p1/mcp"],
        [],
        [],
    ]
    await sweep("main")
    assert await sweep("other") == ["p1/mcp"]


async def test_a_look_that_ends_after_a_later_one_counts_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    control = ControlHarness(approved(1))

    async def find_late(*_: object) -> dict[bytes, Inspection | None]:
        control.reader.seen = {path(1): found(("mcp", "new"))}
        monkeypatch.undo()
        await control.inspector.sweep()
        return {path(1): found(("mcp", "old"))}

    monkeypatch.setattr(control.reader, "inspections", find_late)
    await control.inspector.sweep()
    known = control.world.ledger.catalog.projects[path(1)]
    assert known.ruling.files == (("mcp", "new"),)
    assert known.changed_files == {}


async def test_an_approval_ends_with_a_change_only_by_that_policy() -> None:
    control = ControlHarness(approved(1))
    for files in ((), (("mcp", "1"),)):
        control.reader.seen = {path(1): found(*files)}
        await control.inspector.sweep()
    assert control.world.published() == {path(1)}
    control.inspector.policy = ChangePolicy.PENDING
    control.reader.seen = {path(1): None}  # nothing new since: the change is known
    await control.inspector.sweep()
    assert control.world.published() == set()
    assert control.world.ledger.catalog.projects[path(1)].ruling.is_lapsed
