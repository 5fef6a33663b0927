"""Orders on what is not named one by one: globs and selections."""

from __future__ import annotations

import pytest

from rootsd.core.errors import (
    UnknownProject,
)
from rootsd.wire.control import Effect, Selection
from support.decisions import approved, denied, project
from support.desks import APPROVE, DENY, FORGET, Office, names
from support.fakes import (
    SOURCES,
    at,
    lapsed,
    missing,
    path,
)


async def test_a_glob_overturns_no_denial_and_leaves_out_what_cannot_be_approved() -> None:
    office = Office(
        project(1),
        denied(2),
        missing(lapsed(project(3))),
        project(4),
        at(path(4) + b"/p5", denied(5)),
        at(path(4) + b"/p5/p6", project(6)),
        approved(7),
    )
    done = await office.decide(APPROVE, "p*")
    assert (names(done["items"]), names(done["unchanged"])) == (["p1"], ["p7"])
    assert await office.world.told() == {path(1), path(7)}
    with pytest.raises(UnknownProject):
        await office.decide(APPROVE, "p2*")
    await office.decide(APPROVE, "p2")
    assert path(2) in await office.world.told()


async def test_a_glob_denies_and_forgets_whatever_it_matches() -> None:
    office = Office(approved(1), denied(2), project(3))
    done = await office.decide(DENY, "p*")
    assert (names(done["items"]), names(done["unchanged"])) == (["p1", "p3"], ["p2"])
    assert names((await office.decide(FORGET, "p*"))["items"]) == ["p1", "p2", "p3"]


async def test_a_sweep_approves_what_waits_and_tells_what_it_left_out() -> None:
    office = Office(
        project(1), denied(2), lapsed(project(3)), project(4), at(path(4) + b"/in", denied(5))
    )
    done = await office.decide(APPROVE, select=Selection.WAITING)
    assert names(done["items"]) == ["p1", "p3"]
    assert done["warnings"] == ["p4 is left out: it holds a denied project"]
    assert await office.world.told() == {path(1), path(3)}


async def test_a_sweep_that_denies_leaves_nothing_out() -> None:
    office = Office(project(4), at(path(4) + b"/in", denied(5)))
    done = await office.decide(DENY, select=Selection.WAITING)
    assert (names(done["items"]), done["warnings"]) == (["p4"], [])


async def test_a_sweep_may_be_narrowed_to_what_lapsed_and_to_a_folder() -> None:
    office = Office(project(1), lapsed(project(2)), at(SOURCES + b"/sub/p3", lapsed(project(3))))
    under = "/home/ann/src/sub"
    done = await office.decide(
        APPROVE, select=Selection.LAPSED, under=under, effect=Effect.DRY_RUN
    )
    assert [item["id"] for item in done["items"]] == ["r3"]
    done = await office.decide(
        APPROVE, select=Selection.WAITING, under="sub", effect=Effect.DRY_RUN
    )
    assert [item["id"] for item in done["items"]] == ["r3"]
    with pytest.raises(UnknownProject):
        await office.decide(APPROVE, select=Selection.WAITING, under="/home/ann/src/su")


async def test_a_selection_of_what_is_published_denies_just_that() -> None:
    office = Office(approved(1), project(2))
    assert names((await office.decide(DENY, select=Selection.PUBLISHED))["items"]) == ["p1"]
