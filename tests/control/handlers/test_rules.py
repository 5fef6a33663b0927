"""Rules: the typed pattern, the projects that it covers now, and its later effect."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from rootsd.core.errors import RefusedPlace, RootsdError, UnknownRule
from rootsd.core.model import Inspection, Project, Verdict
from rootsd.core.risks import RiskLimit
from rootsd.wire.decisions import AddRuleRequest, RemoveRuleRequest, RulesQuery
from rootsd.wire.guard import LogQuery
from rootsd.wire.projects import WhyQuery
from rootsd.wire.request import ApplyMode, BadRequest
from support.control_harness import CWD, ControlHarness, names
from support.ledger_harness import SOURCES, DiskRefuses, at, path, rule, sight
from support.sample_decisions import approved, denied, project

YES, NO = Verdict.APPROVED, Verdict.DENIED


async def add(
    control: ControlHarness, verdict: Verdict, pattern: str, cwd: str = CWD
) -> dict[str, Any]:
    return await control.ask(AddRuleRequest(verdict, pattern, cwd))


async def test_an_approve_rule_publishes_present_and_later_projects() -> None:
    control = ControlHarness(project(1), denied(2), at(b"/home/ann/other/p3", project(3)))
    ruled = await add(control, YES, "/home/ann/src/**")
    assert ruled["rule"] == {
        "number": 1,
        "verdict": "approved",
        "pattern": "/home/ann/src/**",
        "pattern_b64": None,
        "origin": None,
        "risk": None,
        "covers": 2,
        "added_at": "2026-03-04T12:00:00Z",
        "source": None,
    }
    assert [(item["name"], item["verdict"]) for item in ruled["items"]] == [
        ("p1", "approved"),
        ("p2", "denied"),
    ]
    assert (ruled["is_new"], ruled["revision"]) == (True, control.world.ledger.revision)
    await control.world.ledger.observe([sight(4)])
    control.world.disk.folders[path(4)] = project(4).observed.identity  # type: ignore[assignment]
    assert await control.world.told() == {path(1), path(4)}


async def narrow(
    control: ControlHarness,
    *,
    below: str = "",
    pattern: str = "",
    origin: str | None = None,
    risk: RiskLimit | None = None,
) -> dict[str, Any]:
    request = AddRuleRequest(YES, pattern, CWD, below=below, origin=origin, risk=risk)
    return await control.ask(request)


def seen(origin: str | None, risk: str = "") -> Inspection:
    return Inspection(b"1", origin, risk, ())


async def test_a_rule_with_an_origin_and_a_risk_covers_what_a_look_finds() -> None:
    control = ControlHarness(*(project(number) for number in range(1, 6)))
    control.reader.seen = {
        path(1): seen("github.com/acme/p1"),
        path(2): seen("github.com/mallory/p2"),
        path(3): seen("github.com/acme/p3", "secrets: .env"),
        path(4): seen(None),
    }
    ruled = await narrow(
        control, below="/home/ann/src", origin="github.com/acme/*", risk=RiskLimit.NONE
    )
    rule = ruled["rule"]
    assert (rule["pattern"], rule["covers"]) == ("/home/ann/src/**", 1)
    assert (rule["origin"], rule["risk"]) == ("github.com/acme/*", "none")
    assert control.world.published() == {path(1)}
    assert ruled["warnings"] == ["projects not read in time: 1; the rule decides about them later"]
    [logged] = [each for each in (await control.ask(LogQuery()))["items"] if each["seq"] == 1]
    assert logged["what"] == "approved /home/ann/src/** (origin github.com/acme/*, risk none)"
    whys = {}
    for number in range(1, 6):
        why = await control.ask(WhyQuery(path(number).decode()))
        reasons = [voice["by"] for voice in why["voices"] if voice["decides"] and voice["by"]]
        whys[number] = (*reasons, *why["obstacles"])
    assert whys == {
        1: ("1: /home/ann/src/** (origin github.com/acme/*, risk none)",),
        2: ("rule 1 does not cover it: its origin is github.com/mallory/p2",),
        3: ("rule 1 does not cover it: it has risks (secrets: .env)",),
        4: ("rule 1 does not cover it: it has no origin, or not one plain address",),
        5: ("rule 1 does not cover it: rootsd has not looked into the project yet",),
    }


async def test_rules_with_other_conditions_are_other_rules() -> None:
    control = ControlHarness()
    conditions: list[dict[str, Any]] = [{}, {"risk": RiskLimit.NONE}, {"origin": "a.org/b"}]
    for number, limits in enumerate(conditions, 1):
        for is_new in (True, False):
            ruled = await narrow(control, pattern="/home/ann/src/**", **limits)
            assert (ruled["rule"]["number"], ruled["is_new"]) == (number, is_new)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"origin": "github.com/acme/*"}, "needs a folder"),
        ({"origin": "*", "below": "/srv"}, "takes a host and a path"),
        ({"origin": "https://ann:s3cret@a.org/*", "below": "/srv"}, "takes a host and a path"),
        ({"origin": "https://ann:s3cret@a.org/b"}, "needs a folder"),
        ({"below": "/srv", "pattern": "/srv/*"}, "not both"),
        ({"below": "~", "origin": "github.com/acme/*"}, "every folder in your home"),
    ],
)
async def test_a_rule_that_claims_alone_would_decide_is_refused(
    fields: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    control = ControlHarness(project(1))
    with pytest.raises(RootsdError, match=why) as refusal:
        await narrow(control, **fields)
    assert "s3cret" not in f"{refusal.value.message} {refusal.value.remedy}"
    assert not control.world.ledger.catalog.rules


async def test_a_deny_rule_takes_no_claim() -> None:
    with pytest.raises(BadRequest, match="only an approve rule"):
        await ControlHarness().ask(AddRuleRequest(NO, "/srv", CWD, risk=RiskLimit.NONE))


async def test_a_deny_rule_withdraws_its_projects_and_they_are_never_pending() -> None:
    control = ControlHarness(approved(1), project(2))
    ruled = await add(control, NO, "p*", CWD)
    assert {item["verdict"] for item in ruled["items"]} == {"denied"}
    await control.world.ledger.observe([sight(3)])
    catalog = control.world.ledger.catalog
    assert not [p for p in catalog.projects.values() if catalog.is_pending(p)]
    assert await control.world.told() == set()


@pytest.mark.parametrize(
    ("typed", "pattern"),
    [
        ("/home/ann/src/**", "/home/ann/src/**"),
        ("*/api", "/home/ann/src/*/api"),
        ("/home/ann/link/**", "/home/ann/src/p1/**"),
        ("/home/ann/src/", "/home/ann/src"),
        ("/srv/[ab]/c", "/srv/[ab]/c"),
        ("../x/../y/*", "/home/ann/y/*"),
        ("~/a*", "/home/ann/a*"),
    ],
)
async def test_a_pattern_is_made_absolute_and_its_literal_folders_are_resolved(
    typed: str, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert (await add(ControlHarness(), YES, typed))["rule"]["pattern"] == pattern


@pytest.mark.parametrize("typed", ["", "a\0b", "/src/*/../x", "/a/[b-a]/c", "\ud800\n/*"])
async def test_an_invalid_pattern_or_verdict_is_refused(typed: str) -> None:
    control = ControlHarness()
    with pytest.raises(BadRequest) as refused:
        await add(control, YES, typed, "/home/ann/src/[z-a]" if typed == "\ud800\n/*" else CWD)
    assert refused.value.message.isprintable()
    with pytest.raises(BadRequest):
        await add(control, Verdict.PENDING, "/srv/**")
    assert control.world.ledger.catalog.rules == ()


@pytest.mark.parametrize("typed", ["/", "/**", "/home", "/home/*", "/home/ann", "/home/ann/**"])
async def test_a_rule_that_approves_everything_is_refused(typed: str) -> None:
    control = ControlHarness(project(1))
    with pytest.raises(RefusedPlace, match="every folder"):
        await add(control, YES, typed)
    assert (await add(control, NO, typed))["items"][0]["verdict"] == "denied"


async def test_the_same_rule_twice_is_one_rule() -> None:
    control = ControlHarness(project(1))
    await add(control, YES, "/home/ann/src/**")
    again = await add(control, YES, "/home/ann/src//**/")
    assert (again["is_new"], again["rule"]["number"]) == (False, 1)
    assert len(control.world.ledger.catalog.rules) == 1
    assert (await add(control, NO, "/home/ann/src/**"))["rule"]["number"] == 2


async def test_removing_a_rule_ends_the_decisions_that_only_it_made() -> None:
    control = ControlHarness(project(1), approved(2))
    await add(control, YES, "/home/ann/src/**")
    await add(control, NO, "/home/ann/src/p2")
    assert await control.world.told() == {path(1)}
    ruled = await control.ask(RemoveRuleRequest(1))
    assert [(item["name"], item["verdict"]) for item in ruled["items"]] == [
        ("p1", "pending"),
        ("p2", "denied"),
    ]
    ruled = await control.ask(RemoveRuleRequest(2))
    assert [(item["name"], item["published"]) for item in ruled["items"]] == [("p2", True)]
    listing = await control.ask(RulesQuery())
    assert listing["items"] == []
    with pytest.raises(UnknownRule, match="no rule 2"):
        await control.ask(RemoveRuleRequest(2))


async def test_rules_are_listed_in_order_with_their_projects() -> None:
    control = ControlHarness(project(1), project(2))
    await add(control, YES, "p1")
    await add(control, NO, "/home/ann/src/**")
    await add(control, NO, "/srv/\udcff*")
    listing = await control.ask(RulesQuery())
    told = [(rule["number"], rule["verdict"], rule["covers"]) for rule in listing["items"]]
    assert told == [(1, "approved", 1), (2, "denied", 2), (3, "denied", 0)]
    assert (listing["items"][2]["pattern"], listing["items"][2]["pattern_b64"]) == (
        None,
        "L3Nydi//Kg==",
    )
    json.dumps(listing).encode()


async def test_on_a_refusing_disk_an_approve_rule_fails_and_a_deny_rule_holds() -> None:
    control = ControlHarness(approved(1), project(2))
    control.world.saver.refusing = True
    with pytest.raises(DiskRefuses):
        await add(control, YES, "/home/ann/src/**")
    assert control.world.ledger.catalog.rules == ()
    assert names((await add(control, NO, "p1"))["items"]) == ["p1"]
    assert await control.world.told() == set()


async def test_a_folder_with_glob_characters_in_its_name_is_taken_literally() -> None:
    odd = SOURCES + b"/a[b]c"
    control = ControlHarness(at(odd, project(1)), at(SOURCES + b"/abc", project(2)))
    ruled = await add(control, YES, "**", "/home/ann/odd-link")
    assert ruled["rule"]["pattern"] == "/home/ann/src/a[[]b]c/**"
    assert await control.world.told() == {odd}


async def test_a_dry_run_shows_the_effect_of_a_rule_and_changes_nothing() -> None:
    control = ControlHarness(project(1), approved(2))
    would = await control.ask(AddRuleRequest(YES, "/home/ann/src/**", CWD, ApplyMode.DRY_RUN))
    assert [(item["name"], item["published"]) for item in would["items"]] == [
        ("p1", True),
        ("p2", True),
    ]
    assert await control.world.told() == {path(2)}
    assert control.world.ledger.catalog.rules == ()
    await add(control, NO, "/home/ann/src/**")
    would = await control.ask(RemoveRuleRequest(1, ApplyMode.DRY_RUN))
    assert [(item["name"], item["verdict"]) for item in would["items"]] == [
        ("p1", "pending"),
        ("p2", "approved"),
    ]
    assert await control.world.told() == set()
    assert len(control.world.ledger.catalog.rules) == 1
    assert control.world.is_kept()


async def test_adding_a_lapsed_rule_again_restores_it() -> None:
    lapsed = rule(Verdict.PENDING, SOURCES + b"/**")
    control = ControlHarness(project(1), rules=[lapsed])
    listing = await control.ask(RulesQuery())
    assert [item["verdict"] for item in listing["items"]] == ["pending"]
    ruled = await add(control, YES, "/home/ann/src/**")
    assert (ruled["rule"]["number"], ruled["rule"]["verdict"]) == (1, "approved")
    assert ruled["is_new"]
    assert await control.world.told() == {path(1)}
    denying = await add(control, NO, "/home/ann/src/**")
    assert denying["rule"]["number"] > 1


@pytest.mark.parametrize(
    ("verdict", "pattern", "warned"),
    [
        (YES, "/home/ann/other/**", True),
        (YES, "/home/ann/src/**", False),
        (YES, "/home/ann/src/deep/**", False),
        (YES, "/home/*/src/**", False),
        (NO, "/home/ann/other/**", False),
    ],
)
async def test_an_approve_rule_for_folders_that_nobody_watches_says_what_it_will_do(
    verdict: Verdict, pattern: str, warned: bool
) -> None:
    control = ControlHarness(project(1))
    told = [
        each for each in (await add(control, verdict, pattern))["warnings"] if "parent" in each
    ]
    assert bool(told) is warned
    if warned:
        assert told[0].startswith("/home/ann/other is in no parent. Once you watch it, this rule")
        assert (await add(control, verdict, pattern))["warnings"] == [], "it is no new rule"


def covers(request: AddRuleRequest, project: Project, look: Inspection | None) -> bool:
    """Return whether the rule should publish a project, by the words of the page on rules."""
    if request.below == "/srv" or project.ruling.decision is not None:
        return False
    if request.origin is None and request.risk is None:
        return True
    if look is None or (request.risk is RiskLimit.NONE and look.risk):
        return False
    return request.origin is None or f"{look.origin}/".startswith(request.origin.rstrip("*"))


async def test_a_dry_run_lists_what_the_rule_then_publishes() -> None:
    random = Random(36)  # noqa: S311 - worlds, not secrets
    looks = [
        None,
        seen(None),
        seen("github.com/acme/api"),
        seen("github.com/acme-evil/api"),
        seen("github.com/acme/api", "secrets: .env"),
        seen("github.com/mallory/api", "?"),
    ]
    published = 0
    for _ in range(200):
        known = [random.choice([approved, denied, project, project])(n) for n in range(1, 6)]
        found = {each.path: random.choice(looks) for each in known}
        request = AddRuleRequest(
            YES,
            "",
            CWD,
            below=random.choice(["/home/ann/src", "/home/ann/src", "/srv"]),
            origin=random.choice([None, "github.com/acme/*", "github.com/**"]),
            risk=random.choice([None, RiskLimit.NONE]),
        )
        control = ControlHarness(*known)
        control.reader.seen = {at: look for at, look in found.items() if look is not None}
        before = control.world.published()
        dry = await control.ask(replace(request, effect=ApplyMode.DRY_RUN))
        assert (control.world.published(), control.world.ledger.catalog.rules) == (before, ())
        done = await control.ask(request)
        assert dry["items"] == done["items"]
        new = {each.path for each in known if covers(request, each, found[each.path])}
        assert control.world.published() == before | new
        published += len(new)
    assert published
