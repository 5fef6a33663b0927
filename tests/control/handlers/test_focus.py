"""The focus: the order that sets it, and its effects."""

from __future__ import annotations

import pytest

from rootsd.core.changes import ChangeVerb, SettingChange
from rootsd.core.encoding import FocusRecord
from rootsd.core.errors import UnknownProject
from rootsd.core.model import Focus, Ruling
from rootsd.wire.decisions import FocusQuery, FocusTarget, SetFocusRequest
from rootsd.wire.request import ApplyMode
from support.control_harness import ControlHarness
from support.ledger_harness import DiskRefuses
from support.sample_decisions import PERSON, approved, granted, project


async def test_a_focus_is_stored_and_does_not_change_the_published_set() -> None:
    control = ControlHarness(approved(1), granted(2))
    before = control.world.ledger.catalog
    told = await control.ask(SetFocusRequest("work"))
    assert (told["tag"], told["roots"], told["warnings"]) == ("work", ["p1"], [])
    assert await control.ask(FocusQuery()) == told
    assert control.world.ledger.catalog is before
    assert control.world.saver.batches == [
        (SettingChange(FocusRecord("work"), PERSON, ChangeVerb.FOCUS_SET),)
    ]
    assert control.world.ledger.focus == Focus("work", 1)


async def test_the_same_focus_again_changes_nothing_except_for_all_sessions() -> None:
    control = ControlHarness(approved(1))
    await control.ask(SetFocusRequest("work"))
    revision = control.world.ledger.revision
    await control.ask(SetFocusRequest("work"))
    assert control.world.ledger.revision == revision
    await control.ask(SetFocusRequest("work", FocusTarget.ALL))
    assert control.world.ledger.revision == revision + 1
    assert control.world.ledger.focus.tag_for(Focus()) == "work"


async def test_clearing_the_focus_shows_all_roots() -> None:
    control = ControlHarness(approved(1), approved(2))
    await control.ask(SetFocusRequest("work"))
    told = await control.ask(SetFocusRequest(None, FocusTarget.ALL))
    assert (told["tag"], told["roots"]) == (None, ["p1", "p2"])


async def test_a_tag_that_only_a_pending_project_has_gives_a_warning() -> None:
    tagged = project(2, Ruling(tags=("home",)))
    control = ControlHarness(approved(1), tagged)
    told = await control.ask(SetFocusRequest("home", effect=ApplyMode.DRY_RUN))
    assert told["warnings"] == ["no published root is tagged home: sessions see none"]
    assert control.world.ledger.focus == Focus()


@pytest.mark.parametrize("effect", ApplyMode)
async def test_a_tag_that_no_project_has_fails_and_others_are_named(effect: ApplyMode) -> None:
    control = ControlHarness(approved(1))
    with pytest.raises(UnknownProject, match=r"no project has the tag wrok; did you mean work\?$"):
        await control.ask(SetFocusRequest("wrok", effect=effect))
    with pytest.raises(UnknownProject, match=r"tag a\\u\{1b\}b; the tags are: work$"):
        await control.ask(SetFocusRequest("a\x1bb"))
    assert control.world.ledger.focus == Focus()
    with pytest.raises(UnknownProject, match=r"no project has the tag work$"):
        await ControlHarness().ask(SetFocusRequest("work"))


async def test_a_focus_that_the_disk_refuses_does_not_take_effect() -> None:
    control = ControlHarness(approved(1))
    control.world.saver.refusing = True
    with pytest.raises(DiskRefuses):
        await control.ask(SetFocusRequest("work", FocusTarget.ALL))
    assert control.world.ledger.focus == Focus()
