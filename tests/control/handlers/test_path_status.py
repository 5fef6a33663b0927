"""Where a path stands, and everything that speaks for or against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rootsd.control.handlers.path_status import PathStatusHandlers
from rootsd.core.decide import VerdictReason
from rootsd.core.model import (
    Access,
    Decision,
    IncompleteReason,
    LapseReason,
    Presence,
    Project,
    ProjectKind,
    Ruling,
    Verdict,
)
from rootsd.core.paths import bytes_of, text_of
from rootsd.wire.projects import CheckQuery, PathCheckResult, WhyQuery, WhyResult
from rootsd.wire.request import BadRequest
from support.control_harness import ControlHarness
from support.decisions import NOON, PERSON, approved, denied, granted, identity, project
from support.fakes import at, lapsed, path, rule


def seen(known: Project, **changes: object) -> Project:
    return replace(known, observed=replace(known.observed, **changes))  # type: ignore[arg-type]


def suspended(known: Project) -> Project:
    return seen(known, presence=Presence.SUSPENDED)


def read_only(known: Project) -> Project:
    decision = Decision(Verdict.APPROVED, PERSON, NOON, known.observed.identity, Access.READ)
    return replace(known, ruling=replace(known.ruling, decision=decision))


INSIDE = at(path(1) + b"/in", approved(2))


@pytest.mark.parametrize(
    ("projects", "where", "published", "verdict", "root"),
    [
        ([approved(1)], "/home/ann/src/p1", True, "approved", "p1"),
        ([approved(1)], "/home/ann/src/p1/deep/file", True, "approved", "p1"),
        ([approved(1)], "/home/ann/link/file", True, "approved", "p1"),
        ([approved(1)], "/home/ann/src/p10", False, None, None),
        ([approved(1)], "/home/ann/src", False, None, None),
        ([project(1)], "/home/ann/src/p1/x", False, "pending", None),
        ([lapsed(project(1))], "/home/ann/src/p1", False, "pending", None),
        ([denied(1)], "/home/ann/src/p1/x", False, "denied", None),
        ([denied(1), INSIDE], "/home/ann/src/p1/in/x", False, "denied", None),
        ([suspended(approved(1))], "/home/ann/src/p1", False, "pending", None),
        ([approved(1), replace(INSIDE, ruling=denied(2).ruling)], "/home/ann/src/p1", False,
         "pending", None),
        ([], "/", False, None, None),
    ],
)  # fmt: skip
async def test_where_a_path_stands(
    projects: Sequence[Project],
    where: str,
    published: bool,
    verdict: str | None,
    root: str | None,
) -> None:
    checked = await ControlHarness(*projects).ask(CheckQuery(where))
    assert list(checked) == list(PathCheckResult.__annotations__)
    access = "read-write" if published else None
    assert checked == {
        "published": published, "verdict": verdict, "root": root, "access": access,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("outer", "inner", "access"),
    [
        (approved(1), read_only(INSIDE), "read"),
        (read_only(approved(1)), INSIDE, "read-write"),
    ],
)
async def test_where_roots_lie_in_each_other_the_innermost_speaks(
    outer: Project, inner: Project, access: str
) -> None:
    control = ControlHarness(outer, inner)
    checked = await control.ask(CheckQuery("/home/ann/src/p1/in/file"))
    assert (checked["root"], checked["access"]) == ("p2", access)
    assert (await control.ask(CheckQuery("/home/ann/src/p1/file")))["root"] == "p1"


async def test_a_uri_stands_as_its_project_does_and_what_is_below_it_is_not_known() -> None:
    uri = "https://example.com/v1"
    observed = replace(project(1).observed, kind=ProjectKind.URI, identity=None)
    decision = Decision(Verdict.APPROVED, PERSON, NOON, None)
    known = Project(bytes_of(uri), "u1", observed, Ruling(decision, name="docs"))
    control = ControlHarness(known, at(b"https://example.com/v2", denied(2)))
    assert (await control.ask(CheckQuery(uri)))["root"] == "docs"
    why = await control.ask(WhyQuery(uri))
    assert (why["published"], why["path"], why["items"][0]["uri"]) == (True, uri, uri)
    assert [voice["ground"] for voice in why["voices"] if voice["decides"]] == ["approved"]
    assert (await control.ask(CheckQuery("https://example.com/v2")))["verdict"] == "denied"
    for other in (uri + "/x", "https://example.com", "https://example.com/v10"):
        assert (await control.ask(CheckQuery(other)))["verdict"] is None
        assert (await control.ask(WhyQuery(other)))["items"] == []


async def test_a_check_looks_at_the_folder_of_the_root_first() -> None:
    control = ControlHarness(approved(1))
    control.world.disk.folders[path(1)] = identity(10)
    checked = await control.ask(CheckQuery("/home/ann/src/p1"))
    assert (checked["published"], checked["verdict"]) == (False, "pending")


@pytest.mark.parametrize("where", ["src/p1", "", ".", "/a\0b", "/\ud800", "a://\ud800"])
async def test_only_an_absolute_path_or_a_uri_is_checked(where: str) -> None:
    with pytest.raises(BadRequest):
        await ControlHarness(approved(1)).ask(CheckQuery(where))


async def test_all_voices_are_told_in_the_order_that_decides_and_one_decides() -> None:
    ruled = [rule(Verdict.APPROVED, b"/home/ann/src/*", 1), rule(Verdict.DENIED, path(2), 2)]
    ruling = replace(approved(1).ruling, grants=granted(1).ruling.grants)
    both = replace(approved(1), ruling=ruling)
    why = await ControlHarness(both, approved(2), rules=ruled).ask(
        WhyQuery("/home/ann/src/p1/in/file")
    )
    assert list(why) == list(WhyResult.__annotations__)
    assert [(v["ground"], v["verdict"], v["by"]) for v in why["voices"]] == [
        ("denied", None, None),
        ("a folder above is denied", None, None),
        ("deny rule", None, None),
        ("holds a denied project", None, None),
        ("approved", "approved", "/home/ann/src/p1"),
        ("approve rule", "approved", "1: /home/ann/src/*"),
        ("worktree of an approved checkout", None, None),
    ]
    assert [v["ground"] for v in why["voices"] if v["decides"]] == ["approved"]
    assert (why["published"], why["obstacles"]) == (True, [])
    assert why["items"][0]["name"] == "p1"


async def test_what_is_overruled_speaks_too() -> None:
    ruled = [rule(Verdict.DENIED, path(1), 7)]
    why = await ControlHarness(approved(1), rules=ruled).ask(WhyQuery("/home/ann/src/p1"))
    spoken = [(v["ground"], v["by"], v["decides"]) for v in why["voices"] if v["verdict"]]
    assert spoken == [
        ("deny rule", "7: /home/ann/src/p1", True),
        ("approved", "/home/ann/src/p1", False),
    ]
    assert not why["published"]


@pytest.mark.parametrize("known", [denied(1), replace(approved(1), ruling=denied(1).ruling)])
async def test_a_rule_that_covers_a_denied_project_is_told(known: Project) -> None:
    ruled = [rule(Verdict.APPROVED, b"/home/ann/src/*", 3)]
    why = await ControlHarness(known, rules=ruled).ask(WhyQuery("/home/ann/src/p1"))
    assert [(v["ground"], v["by"], v["decides"]) for v in why["voices"] if v["verdict"]] == [
        ("denied", "/home/ann/src/p1", True),
        ("approve rule", "3: /home/ann/src/*", False),
    ]
    assert not why["published"]


@pytest.mark.parametrize(
    ("known", "ground", "obstacles"),
    [
        (project(1), VerdictReason.UNDECIDED, []),
        (suspended(approved(1)), VerdictReason.APPROVED, ["it is suspended"]),
        (
            seen(project(1), incomplete=IncompleteReason.LOCKED),
            VerdictReason.UNDECIDED,
            ["it is incomplete: left locked"],
        ),
        (
            seen(approved(1), hazard=LapseReason.EXPOSED),
            VerdictReason.APPROVED,
            ["it cannot be published: exposed"],
        ),
    ],
)
async def test_what_keeps_a_project_from_clients_is_told_beside_its_verdict(
    known: Project, ground: VerdictReason, obstacles: list[str]
) -> None:
    why = await ControlHarness(known).ask(WhyQuery("/home/ann/src/p1"))
    assert [v["ground"] for v in why["voices"] if v["decides"]] == [ground.value]
    assert (why["published"], why["obstacles"]) == (False, obstacles)


async def test_why_looks_at_the_folder_first() -> None:
    control = ControlHarness(approved(1))
    control.world.disk.folders[path(1)] = identity(10)
    why = await control.ask(WhyQuery("/home/ann/link"))
    assert [v["ground"] for v in why["voices"] if v["decides"]] == ["approval lapsed"]
    assert not why["published"]


@pytest.mark.parametrize(
    ("where", "reason"),
    [("/srv/none", []), ("/home/ann", ["it is your home folder"])],
)
async def test_a_path_that_no_project_holds_is_told_so(where: str, reason: list[str]) -> None:
    why = await ControlHarness(approved(1)).ask(WhyQuery(where))
    assert (why["items"], why["voices"]) == ([], [])
    assert why["obstacles"] == ["no project is known at or above it", *reason]


@pytest.mark.parametrize("where", ["src/p1", "", ".", "/a\0b", "/\ud800"])
async def test_only_an_absolute_path_has_a_reason(where: str) -> None:
    with pytest.raises(BadRequest):
        await ControlHarness(approved(1)).ask(WhyQuery(where))


async def test_a_path_that_is_plain_is_followed_by_no_thread() -> None:
    control = ControlHarness(approved(1))
    asked: list[bytes] = []

    def is_plain(where: bytes) -> bool:
        asked.append(where)
        return where == path(1)

    def real_path(_typed: str, _cwd: str) -> bytes:
        return path(2)

    handlers = PathStatusHandlers(control.world.ledger, real_path, list, lambda _: None, is_plain)
    assert (await handlers.check(CheckQuery(text_of(path(1)))))["root"] == "p1"
    assert (await handlers.check(CheckQuery("/home/ann/link")))["published"] is False
    assert asked == [path(1), b"/home/ann/link"]
