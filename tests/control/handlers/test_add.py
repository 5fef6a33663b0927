"""Projects that a person adds: folders that no scan found, and URIs."""

from __future__ import annotations

from typing import Any

import pytest

from rootsd.core.errors import NameTaken, NotPresent
from rootsd.core.model import Verdict
from rootsd.wire.decisions import AddRequest
from rootsd.wire.projects import Selection
from rootsd.wire.request import ApplyMode, BadRequest
from support.control_harness import APPROVE, CWD, DENY, FORGET, ControlHarness
from support.ledger_harness import path
from support.sample_decisions import approved, identity, project

NAME = "api.example.com/v1"
URI = f"https://{NAME}"


async def add(control: ControlHarness, what: str, name: str | None = None) -> dict[str, Any]:
    return await control.ask(AddRequest(what, CWD, name))


async def test_an_added_uri_is_pending_approved_with_all_denied_and_removed_by_a_forget() -> None:
    control = ControlHarness(project(1))
    added = await add(control, "HTTPS://API.example.com/v1")
    (item,) = added["items"]
    assert added["is_new"]
    assert (item["kind"], item["uri"], item["path"], item["name"]) == ("uri", URI, None, NAME)
    assert (item["verdict"], item["presence"]) == ("pending", "present")
    assert await control.world.told() == set()
    done = await control.decide(APPROVE, select=Selection.PENDING)
    assert [item["published"] for item in done["items"]] == [True, True]
    roots = {root.uri: root.name for root in (await control.world.ledger.current()).roots}
    assert roots[URI] == NAME
    assert control.world.is_kept()
    await control.decide(DENY, "v1")
    assert await control.world.told() == {path(1)}
    await control.decide(FORGET, URI)
    assert control.world.ledger.catalog.projects.keys() == {path(1)}
    assert control.world.is_kept()


async def test_a_folder_is_proposed_and_may_be_named() -> None:
    control = ControlHarness()
    control.world.disk.folders[b"/home/ann/notes"] = identity(7)
    added = await add(control, "../notes", "diary")
    (item,) = added["items"]
    assert (item["path"], item["name"], item["verdict"]) == ("/home/ann/notes", "diary", "pending")
    await control.decide(APPROVE, "diary")
    assert [root.name for root in (await control.world.ledger.current()).roots] == ["diary"]


async def test_adding_again_changes_only_the_name() -> None:
    control = ControlHarness()
    await add(control, URI, "api")
    batches = len(control.world.saver.batches)
    again = await add(control, URI, "api")
    assert (again["is_new"], again["items"][0]["name"]) == (False, "api")
    assert len(control.world.saver.batches) == batches
    assert (await add(control, URI, "other"))["items"][0]["name"] == "other"
    assert (await add(control, URI))["items"][0]["name"] == "other"
    assert control.world.is_kept()


async def test_a_published_root_is_renamed_for_its_clients_too() -> None:
    control = ControlHarness(approved(1))
    control.discovery.finds = ()
    await add(control, "/home/ann/src/p1", "hammer")
    assert [root.name for root in (await control.world.ledger.current()).roots] == ["hammer"]
    assert control.world.verdict(path(1)) is Verdict.APPROVED


async def test_an_unusable_folder_or_uri_is_refused_without_a_trace() -> None:
    control = ControlHarness(approved(1))
    for what in ("file:///etc", "https://a b", "https://a/\x1b[m", "x://\ud800"):
        with pytest.raises(BadRequest) as refused:
            await add(control, what)
        assert refused.value.message.isprintable()
    with pytest.raises(NotPresent):
        await add(control, "/home/ann/none")
    for name in ("a\nb", "..", "/x", "\u202ea", "a" * 65):
        with pytest.raises(BadRequest):
            await add(control, URI, name)
    assert set(control.world.ledger.catalog.projects) == {path(1)}
    with pytest.raises(NameTaken):
        await add(control, URI, "p1")


@pytest.mark.parametrize(
    ("what", "kind", "name"),
    [(URI, "uri", None), (URI, "uri", "diary"), ("../notes", "git", "diary")],
)
async def test_a_dry_run_shows_the_proposal_and_changes_nothing(
    what: str, kind: str, name: str | None
) -> None:
    control = ControlHarness()
    control.world.disk.folders[b"/home/ann/notes"] = identity(7)
    would = await control.ask(AddRequest(what, CWD, name, ApplyMode.DRY_RUN))
    (item,) = would["items"]
    assert (item["kind"], item["verdict"], item["name"]) == (
        kind,
        "pending",
        name or NAME,
    )
    assert would["is_new"]
    assert control.discovery.proposed == []
    assert control.world.ledger.catalog.projects == {}


async def test_a_dry_run_is_refused_like_the_order() -> None:
    control = ControlHarness(approved(1))
    for what, error in (("../nowhere", NotPresent), ("https://a b", BadRequest), (URI, NameTaken)):
        with pytest.raises(error):
            await control.ask(AddRequest(what, CWD, "p1", ApplyMode.DRY_RUN))
