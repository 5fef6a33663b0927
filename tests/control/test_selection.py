"""An approval binds to the directories that the person saw."""

from __future__ import annotations

import pytest

from rootsd.core.encoding import identity_fingerprint
from rootsd.core.errors import IdentityChanged
from rootsd.wire.decisions import DecideRequest
from rootsd.wire.projects import ShowQuery
from rootsd.wire.request import BadRequest
from support.control_harness import APPROVE, CWD, ControlHarness, names
from support.ledger_harness import path, sight
from support.sample_decisions import identity, project

URI = "https://api.example.com/v1"


async def shown_in(control: ControlHarness, *references: str) -> tuple[str, ...]:
    items = (await control.ask(ShowQuery(CWD, references)))["items"]
    return tuple(item["identity"] for item in items)


def approve(shown: tuple[str, ...], *references: str) -> DecideRequest:
    return DecideRequest(APPROVE, CWD, references, shown=shown)


async def test_an_unchanged_directory_is_approved() -> None:
    control = ControlHarness(project(1), project(2))
    shown = await shown_in(control, "p1", "p2")
    assert shown == (identity_fingerprint(identity(1)), identity_fingerprint(identity(2)))
    done = await control.ask(approve(shown, "p1", "p2"))
    assert names(done["items"]) == ["p1", "p2"]
    assert await control.world.told() == {path(1), path(2)}


async def test_one_replaced_directory_refuses_the_whole_approval() -> None:
    control = ControlHarness(project(1), project(2))
    shown = await shown_in(control, "p1", "p2")
    control.world.disk.folders[path(2)] = identity(40)
    await control.world.ledger.observe([sight(2, now=40)])
    with pytest.raises(IdentityChanged, match="p2 is not the folder you were shown"):
        await control.ask(approve(shown, "p1", "p2"))
    assert await control.world.told() == set()
    done = await control.ask(approve(await shown_in(control, "p2"), "p2"))
    assert names(done["items"]) == ["p2"]


async def test_an_unreported_replacement_is_found_on_the_disk() -> None:
    control = ControlHarness(project(1))
    shown = await shown_in(control, "p1")
    control.world.disk.folders[path(1)] = identity(40)
    with pytest.raises(IdentityChanged):
        await control.ask(approve(shown, "p1"))
    assert await control.world.told() == set()


@pytest.mark.parametrize("shown", [("x",), ("x", "y", "z")])
async def test_each_reference_must_match_one_shown_directory(shown: tuple[str, ...]) -> None:
    control = ControlHarness(project(1), project(2))
    with pytest.raises(BadRequest):
        await control.ask(approve(shown, "p1", "p2"))
    with pytest.raises(BadRequest):
        await control.ask(approve((*shown, "w"), "p*"))
