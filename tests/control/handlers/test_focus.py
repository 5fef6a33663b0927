"""The focus: an order, what it leaves, and what it does not touch."""

from __future__ import annotations

import pytest

from rootsd.core.changes import FocusChange
from rootsd.core.errors import UnknownProject
from rootsd.core.model import Focus, Ruling
from rootsd.wire.decisions import ApplyMode, FocusQuery, FocusTarget, SetFocusRequest
from support.decisions import PERSON, approved, granted, project
from support.desks import Office
from support.fakes import DiskRefuses


async def test_a_focus_is_kept_told_and_leaves_the_published_set_alone() -> None:
    office = Office(approved(1), granted(2))
    before = office.world.ledger.catalog
    told = await office.ask(SetFocusRequest("work"))
    assert (told["tag"], told["roots"], told["warnings"]) == ("work", ["p1"], [])
    assert await office.ask(FocusQuery()) == told
    assert office.world.ledger.catalog is before
    assert office.world.saver.batches == [(FocusChange("work", PERSON),)]
    assert office.world.ledger.focus == Focus("work", 1)


async def test_the_same_again_changes_nothing_and_a_sweep_does() -> None:
    office = Office(approved(1))
    await office.ask(SetFocusRequest("work"))
    revision = office.world.ledger.revision
    await office.ask(SetFocusRequest("work"))
    assert office.world.ledger.revision == revision
    await office.ask(SetFocusRequest("work", FocusTarget.ALL))
    assert office.world.ledger.revision == revision + 1
    assert office.world.ledger.focus.tag_for(Focus()) == "work"


async def test_to_clear_it_lets_sessions_see_all() -> None:
    office = Office(approved(1), approved(2))
    await office.ask(SetFocusRequest("work"))
    told = await office.ask(SetFocusRequest(None, FocusTarget.ALL))
    assert (told["tag"], told["roots"]) == (None, ["p1", "p2"])


async def test_a_tag_that_only_a_pending_project_has_is_warned_of() -> None:
    tagged = project(2, Ruling(tags=("home",)))
    office = Office(approved(1), tagged)
    told = await office.ask(SetFocusRequest("home", effect=ApplyMode.DRY_RUN))
    assert told["warnings"] == ["no published root is tagged home: sessions see none"]
    assert office.world.ledger.focus == Focus()


@pytest.mark.parametrize("effect", ApplyMode)
async def test_a_tag_that_no_project_has_fails_and_the_tags_are_listed(effect: ApplyMode) -> None:
    office = Office(approved(1))
    with pytest.raises(UnknownProject, match=r"no project has the tag wrok; the tags are: work$"):
        await office.ask(SetFocusRequest("wrok", effect=effect))
    with pytest.raises(UnknownProject, match=r"tag a\\u\{1b\}b;"):
        await office.ask(SetFocusRequest("a\x1bb"))
    assert office.world.ledger.focus == Focus()
    with pytest.raises(UnknownProject, match=r"no project has the tag work$"):
        await Office().ask(SetFocusRequest("work"))


async def test_what_the_disk_refuses_to_keep_is_not_so() -> None:
    office = Office(approved(1))
    office.world.saver.refusing = True
    with pytest.raises(DiskRefuses):
        await office.ask(SetFocusRequest("work", FocusTarget.ALL))
    assert office.world.ledger.focus == Focus()


def test_it_is_an_order_and_a_rehearsal_is_none() -> None:
    desk = Office().desk
    order = desk.order_in(SetFocusRequest("work", FocusTarget.ALL))
    assert order is not None
    assert order.words == "focus work --now"
    order = desk.order_in(SetFocusRequest(None))
    assert order is not None
    assert order.words == "focus --clear"
    assert desk.order_in(SetFocusRequest("work", effect=ApplyMode.DRY_RUN)) is None
    assert desk.order_in(FocusQuery()) is None
