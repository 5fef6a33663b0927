"""The request about the last upgrade."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from rootsd.control.handlers.upgrade import UpgradeHandlers
from rootsd.control.routes import RequestContext
from rootsd.core.catalog import Catalog
from rootsd.core.model import NO_FOCUS, Actor, ActorKind, Lapse, LapseReason, Project, Ruling
from rootsd.state.store.upgrade import StoreUpgrade, save_upgrade
from rootsd.state.upgrade_notice import NO_UPGRADE, UpgradeNotice
from rootsd.wire.upgrade import UpgradeQuery
from support.ledger_harness import PLACES
from support.sample_decisions import PERSON, approved, granted, project, worktree

AGENT = Actor(ActorKind.CALLER, "an agent")
UPGRADE = StoreUpgrade("2026-11-25T12:00:00Z", 3, 7, "before.db", {"approved": 2})


@pytest.fixture
def notice(tmp_path: Path) -> UpgradeNotice:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    save_upgrade(folder, UPGRADE)
    return UpgradeNotice.in_folder(folder)


class FakeLedger:
    """A ledger with one catalog."""

    revision = 7
    focus = NO_FOCUS

    def __init__(self, *projects: Project) -> None:
        self.catalog = Catalog.of(projects, (), PLACES, 1)


async def ask(
    notice: UpgradeNotice, *projects: Project, actor: Actor = PERSON, is_look: bool = True
) -> Any:  # noqa: ANN401 - a JSON value
    handlers = UpgradeHandlers(FakeLedger(*projects), notice)  # type: ignore[arg-type]
    result = await handlers.upgrade(UpgradeQuery(is_look), RequestContext(actor))
    return result["upgrade"]


async def test_it_is_new_until_a_person_looks(notice: UpgradeNotice) -> None:
    assert (await ask(notice, is_look=False))["is_new"]
    assert (await ask(notice, actor=AGENT))["is_new"]
    assert (await ask(notice))["is_new"]
    assert not (await ask(notice))["is_new"]
    assert not UpgradeNotice.in_folder(notice.folder).is_new


async def test_without_an_upgrade_the_answer_is_null() -> None:
    assert await ask(NO_UPGRADE) is None


async def test_a_backup_that_is_gone_is_not_named(notice: UpgradeNotice) -> None:
    assert (await ask(notice))["backup"] is None
    backup = notice.folder / "backups/before.db"
    backup.parent.mkdir()
    backup.touch()
    found = await ask(notice)
    assert found["backup"] == str(backup)
    assert (found["from_release"], found["kept"]) == ("0.1.0", {"approved": 2})


async def test_worktrees_that_0_1_0_granted_are_named_while_they_wait(
    notice: UpgradeNotice,
) -> None:
    tree = worktree(2, main=1)
    (grant,) = tree.ruling.grants
    old = replace(grant, identity=replace(grant.identity, git_born_ns=None), since_ns=None)
    waiting = replace(tree, ruling=replace(tree.ruling, grants=(old,)))
    assert (await ask(notice, approved(1), waiting))["waiting_worktrees"] == ["p2"]
    assert (await ask(notice, approved(1), tree))["waiting_worktrees"] == []


async def test_roots_with_a_larger_workspace_are_named(notice: UpgradeNotice) -> None:
    alone = replace(approved(4), ruling=replace(approved(4).ruling, tags=()))
    found = await ask(notice, approved(1), worktree(2, main=1), approved(3), alone, granted(5))
    assert found["wider_workspaces"] == [
        {"name": "p1", "also": ["p2", "p3"], "count": 2},
        {"name": "p3", "also": ["p1"], "count": 1},
    ]


async def test_approvals_that_lapsed_at_the_upgrade_are_counted(notice: UpgradeNotice) -> None:
    def lapsed(number: int, at: datetime) -> Project:
        return project(number, Ruling(lapse=Lapse(LapseReason.STORE_RESTORED, at)))

    upgraded = datetime.fromisoformat(UPGRADE.at)
    before = lapsed(2, upgraded - timedelta(days=1))
    assert (await ask(notice, approved(1), before))["lapsed"] == 0
    assert (await ask(notice, approved(1), lapsed(2, upgraded)))["lapsed"] == 1


async def test_names_that_look_the_same_are_listed(notice: UpgradeNotice) -> None:
    def named(number: int, name: str) -> Project:
        one = approved(number)
        return replace(one, ruling=replace(one.ruling, name=name))

    found = await ask(notice, named(1, "café"), named(2, "cafe\u0301"), approved(3))
    assert [each["stored"] for each in found["renamed"]] == ["café", "cafe\u0301"]
    assert all("~r" in each["name"] for each in found["renamed"])
