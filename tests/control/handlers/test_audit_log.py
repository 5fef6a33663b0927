"""The answers for `rootsd log` and `rootsd guard`."""

from __future__ import annotations

from typing import Any

import anyio
from msgspec.structs import replace

from rootsd.control.handlers.audit_log import log_items
from rootsd.core.changes import AuditNote, ChangeVerb, ProjectChange, RuleChange, SettingChange
from rootsd.core.guard_setting import Guard
from rootsd.core.history import CHAIN_START, events_for, fold, lapse_all_approvals
from rootsd.core.model import Actor, ActorKind, Verdict
from rootsd.core.paths import text_of
from rootsd.wire.guard import (
    LogQuery,
    UndoRequest,
)
from support.control_harness import APPROVE, DENY, ControlHarness
from support.ledger_harness import HANG_GUARD
from support.sample_decisions import (
    NOON,
    PERSON,
    add,
    approved,
    decide,
    identity,
    project,
    rule,
)

CALLER = Actor(ActorKind.CALLER, "pid 9: Goose started it")


def test_every_kind_of_event_has_a_text() -> None:
    other = approved(2)
    odd = ProjectChange(b"/home/ann/\xff", None, other, ChangeVerb.APPROVED, PERSON)
    changes = [
        decide(approved(1)),
        odd,
        add(replace(rule(1, Verdict.DENIED), pattern=b"/home/ann/x\x1b*")),
        SettingChange(Guard.OFF, PERSON, ChangeVerb.GUARD_SET),
        AuditNote(ChangeVerb.REFUSED, "approve api", CALLER),
    ]
    first, second, ruled, guard, refused = log_items(events_for(changes, NOON, CHAIN_START))
    assert (first["seq"], first["verb"], first["at"]) == (1, "approved", "2026-03-04T12:00:00Z")
    assert first["path"] == "/home/ann/src/p1"
    assert (second["path"], second["path_b64"]) == (None, "L2hvbWUvYW5uL/8=")
    assert ruled["what"] == "denied /home/ann/x\\u{1b}*"
    assert (guard["verb"], guard["what"], guard["actor"]) == ("guard set", "off", "person")
    assert refused == {
        "seq": 5, "at": "2026-03-04T12:00:00Z", "verb": "refused", "actor": "caller",
        "by": "pid 9: Goose started it", "path": None, "path_b64": None, "what": "approve api",
        "undid": None,
    }  # fmt: skip


def test_an_approval_that_includes_a_git_directory_says_so() -> None:
    known = approved(1)
    assert known.ruling.decision is not None
    decision = replace(known.ruling.decision, shared_git=identity(2))
    changes = [decide(replace(known, ruling=replace(known.ruling, decision=decision)))]
    (item,) = log_items(events_for(changes, NOON, CHAIN_START))
    assert item["what"] == "p1 (with the Git directory of its checkout)"


def test_a_change_of_a_parent_has_its_path_and_its_actor() -> None:
    changes = [
        AuditNote(ChangeVerb.PARENT_ADDED, text_of(b"/home/ann/src"), PERSON),
        AuditNote(ChangeVerb.PARENT_REMOVED, text_of(b"/home/ann/\xff"), None),
    ]
    added, removed = log_items(events_for(changes, NOON, CHAIN_START))
    assert (added["verb"], added["path"], added["actor"]) == (
        "parent added", "/home/ann/src", "person",
    )  # fmt: skip
    assert (removed["verb"], removed["path"]) == ("parent removed", None)
    assert removed["path_b64"] == "L2hvbWUvYW5uL/8="
    assert (removed["actor"], removed["by"]) == (None, "the configuration file was edited")


async def test_an_undo_names_the_entry_that_it_undid() -> None:
    control = ControlHarness(approved(1))
    await control.decide(DENY, "p1")
    await control.ask(UndoRequest())
    items = (await control.ask(LogQuery(1)))["items"]
    assert [(item["verb"], item["undid"]) for item in items] == [
        ("undone", {"seq": 1, "verb": "denied"})
    ]


def test_a_reinstated_rule_is_listed_by_its_number() -> None:
    added = events_for([add(rule(1, Verdict.APPROVED))], NOON, CHAIN_START)
    lost = lapse_all_approvals(fold(added), NOON)
    lapsed, approving = rule(1, Verdict.PENDING), rule(1, Verdict.APPROVED)
    again = RuleChange(1, lapsed, approving, ChangeVerb.APPROVED, PERSON)
    told = log_items([*lost, *events_for([again], NOON, lost[-1].head)])
    assert [(item["verb"], item["what"]) for item in told] == [
        ("lapsed", "rule 1 /srv/**"),
        ("approved", "rule 1 /srv/**"),
    ]


def test_an_event_without_an_order_has_no_actor() -> None:
    events = events_for(
        [decide(approved(1)), SettingChange(Guard.OFF, PERSON, ChangeVerb.GUARD_SET)],
        NOON,
        CHAIN_START,
    )
    lapsed, usual = log_items(lapse_all_approvals(fold(events), NOON))
    assert (lapsed["verb"], lapsed["actor"]) == ("lapsed", None)
    assert (usual["verb"], usual["what"], usual["by"]) == ("guard set", "the usual", None)


async def test_a_waiting_query_is_answered_when_an_event_is_stored() -> None:
    control = ControlHarness(project(1))
    await control.decide(APPROVE, "p1")
    listings: list[dict[str, Any]] = []

    async def follow() -> None:
        listings.append(await control.ask(LogQuery(after=1, wait_s=30)))

    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            await anyio.wait_all_tasks_blocked()
            assert listings == []
            await control.decide(DENY, "p1")
    assert [item["verb"] for item in listings[0]["items"]] == ["denied"]


async def test_a_query_without_wait_or_for_past_events_is_answered_at_once() -> None:
    control = ControlHarness(project(1))
    assert (await control.ask(LogQuery(after=0)))["items"] == []
    assert (await control.ask(LogQuery(wait_s=30)))["items"] == []
    await control.decide(APPROVE, "p1")
    answer = await control.ask(LogQuery(last=5, after=0, wait_s=10**9))
    assert [item["seq"] for item in answer["items"]] == [1]
    for verb in (DENY, APPROVE, DENY):
        await control.decide(verb, "p1")
    newest = await control.ask(LogQuery(last=2))
    assert [item["seq"] for item in newest["items"]] == [3, 4]
