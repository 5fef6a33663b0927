"""Projects as items of the public schema."""

from __future__ import annotations

import json
from base64 import b64decode
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rootsd.control.items import dropped_project_items, project_items
from rootsd.core.access import Access
from rootsd.core.catalog import Catalog
from rootsd.core.model import (
    Decision,
    Expiry,
    IncompleteReason,
    Lapse,
    LapseReason,
    Parent,
    Presence,
    Project,
    ProjectKind,
    Rule,
    Ruling,
    Verdict,
)
from rootsd.core.timestamps import rfc3339
from rootsd.wire.projects import ProjectItem
from support.ledger_harness import HOME, PLACES, SOURCES, at, path, rule
from support.sample_decisions import (
    NOON,
    PERSON,
    approved,
    denied,
    granted,
    identity,
    project,
    worktree,
)

# The fields of an item in the schema `rootsd/1`, in order.
FIELDS_OF_THE_CONTRACT = [
    "id", "name", "path", "path_b64", "uri", "kind", "verdict", "presence", "published", "lapsed",
    "incomplete", "tags", "access", "parent", "discovered_at", "decided_at", "expires_at",
    "origin", "branch", "worktree_of", "declared_names", "project_files", "findings", "note",
]  # fmt: skip


def item_of(
    known: Project,
    *others: Project,
    rules: tuple[Rule, ...] = (),
    parents: tuple[Parent, ...] = (),
) -> ProjectItem:
    catalog = Catalog.of([known, *others], rules, PLACES, 9)
    return project_items(catalog, [known], parents)[0]


def seen(known: Project, **observed: object) -> Project:
    return replace(known, observed=replace(known.observed, **observed))  # type: ignore[arg-type]


def test_an_approved_project_has_all_fields() -> None:
    known = replace(
        approved(1),
        ruling=Ruling(
            Decision(Verdict.APPROVED, PERSON, NOON, identity(1), Access.READ),
            name="hammer",
            tags=("a", "b"),
        ),
    )
    item = item_of(known, parents=(Parent(HOME), Parent(SOURCES)))
    assert [*item] == [field for field in FIELDS_OF_THE_CONTRACT if field in item]
    assert item.keys() == ProjectItem.__required_keys__
    assert item == {
        "id": "r1",
        "name": "hammer",
        "path": "/home/ann/src/p1",
        "path_b64": None,
        "uri": "file:///home/ann/src/p1",
        "kind": "git",
        "verdict": "approved",
        "presence": "present",
        "published": True,
        "lapsed": None,
        "incomplete": None,
        "tags": ["a", "b"],
        "access": "read",
        "parent": "/home/ann/src",
        "discovered_at": "2026-03-04T12:00:00Z",
        "decided_at": "2026-03-04T12:00:00Z",
        "expires_at": None,
        "origin": None,
        "branch": None,
        "worktree_of": None,
        "declared_names": None,
        "project_files": None,
        "findings": None,
        "note": None,
    }


def test_a_pending_project_has_the_name_proposed_for_it_and_no_decision() -> None:
    item = item_of(project(1))
    assert (item["name"], item["verdict"], item["published"]) == ("p1", "pending", False)
    assert (item["decided_at"], item["parent"], item["access"]) == (None, None, "read-write")


def test_a_moved_project_names_its_former_state() -> None:
    ruling = Ruling(
        Decision(Verdict.APPROVED, PERSON, NOON, identity(1)), name="api", tags=("work",)
    )
    before = seen(project(1, ruling), presence=Presence.MISSING, absent_since=NOON)
    moved = replace(project(2), observed=replace(project(2).observed, identity=identity(1)))
    note = item_of(moved, before)["note"]
    assert note == "moved from /home/ann/src/p1, was approved as api #work"
    assert item_of(project(2), before)["note"] is None


THERE = "https://example.org/api"


@pytest.mark.parametrize(
    ("origin", "note"),
    [
        (THERE, "approval lapsed: replaced; same origin"),
        ("https://evil.example/api", f"approval lapsed: replaced; its origin was {THERE}"),
        (None, "approval lapsed: replaced"),
    ],
)
def test_a_project_cloned_again_in_place_says_whether_the_origin_is_the_same(
    origin: str | None, note: str
) -> None:
    known = project(1, Ruling(lapse=Lapse(LapseReason.REPLACED, NOON), origin=THERE))
    origins = {known.path: origin} if origin else {}
    (item,) = project_items(Catalog.of([known], (), PLACES, 9), [known], (), origins=origins)
    assert (item["origin"], item["note"]) == (origin, note)


def test_a_project_cloned_again_elsewhere_names_its_possible_former_path() -> None:
    ruling = replace(approved(1).ruling, name="api", origin=THERE)
    before = seen(project(1, ruling), presence=Presence.MISSING, absent_since=NOON)
    catalog = Catalog.of([before, project(2), project(3)], (), PLACES, 9)
    origins = {path(2): THERE, path(3): "https://example.org/other"}
    again, other = project_items(catalog, [project(2), project(3)], (), origins=origins)
    assert again["note"] == "same origin as /home/ann/src/p1, was approved as api #work"
    assert other["note"] is None


def test_an_approved_project_says_if_its_origin_has_changed() -> None:
    known = replace(approved(1), ruling=replace(approved(1).ruling, origin=THERE))
    catalog = Catalog.of([known], (), PLACES, 9)
    for origin, note in ((THERE, None), ("else", f"its origin was {THERE}")):
        (item,) = project_items(catalog, [known], (), origins={known.path: origin})
        assert item["note"] == note


def test_an_approval_with_an_end_shows_it_before_and_after_that_time() -> None:
    end = Expiry(NOON + timedelta(hours=8), "a start", 9)
    ruling = Ruling(Decision(Verdict.APPROVED, PERSON, NOON, identity(1), expires=end))
    assert item_of(project(1, ruling))["expires_at"] == "2026-03-04T20:00:00Z"
    over = item_of(project(1, Ruling(lapse=Lapse(LapseReason.EXPIRED, end.at))))
    assert (over["lapsed"], over["expires_at"]) == (None, None)
    assert over["note"] == "its approval ended 2026-03-04T20:00:00Z"


def test_an_approval_that_a_rule_gave_has_the_time_of_its_grant() -> None:
    item = item_of(granted(1), rules=(rule(Verdict.APPROVED),))
    assert item["published"]
    assert item["decided_at"] == "2026-03-04T12:00:00Z"
    assert item["note"] == "approve rule 1"


def test_a_path_that_is_not_utf8_is_in_base64_and_has_no_uri() -> None:
    known = at(SOURCES + b"/caf\xe9", approved(1))
    item = item_of(known)
    assert (item["path"], item["uri"], item["published"]) == (None, None, False)
    assert b64decode(item["path_b64"] or "") == SOURCES + b"/caf\xe9"
    assert item["note"] == "not published: the path is not UTF-8"


def test_a_uri_has_no_path() -> None:
    known = seen(project(1), kind=ProjectKind.URI, identity=None)
    item = item_of(at(b"https://api.example.org/v1", known))
    assert (item["path"], item["path_b64"]) == (None, None)
    assert item["uri"] == "https://api.example.org/v1"


@pytest.mark.parametrize(
    ("known", "field", "value"),
    [
        (seen(approved(1), presence=Presence.MISSING, absent_since=NOON), "presence", "missing"),
        (seen(approved(1), presence=Presence.SUSPENDED), "presence", "suspended"),
        (seen(project(1), incomplete=IncompleteReason.NO_HEAD), "incomplete", "no HEAD"),
        (
            replace(project(1), ruling=Ruling(lapse=Lapse(LapseReason.REPLACED, NOON))),
            "lapsed",
            "replaced",
        ),
        (seen(project(1), main_checkout=SOURCES + b"/main"), "worktree_of", "/home/ann/src/main"),
    ],
)
def test_each_obstacle_to_publishing_has_a_field(known: Project, field: str, value: str) -> None:
    item: dict[str, object] = {**item_of(known)}
    assert item[field] == value
    assert item["published"] is False


@pytest.mark.parametrize(
    ("known", "others", "rules", "note"),
    [
        (
            approved(1),
            (at(path(1) + b"/in", denied(2)),),
            (),
            "withheld: contains in, which is denied",
        ),
        (
            at(path(1) + b"/in", approved(2)),
            (denied(1),),
            (),
            "a folder above is denied: /home/ann/src/p1",
        ),
        (approved(1), (), (rule(Verdict.DENIED, number=4),), "deny rule 4"),
        (
            replace(project(1), ruling=Ruling(lapse=Lapse(LapseReason.EXPOSED, NOON))),
            (),
            (),
            "approval lapsed: exposed",
        ),
        (seen(approved(1), hazard=LapseReason.EXPOSED), (), (), "cannot be published: exposed"),
        (denied(1), (), (), None),
    ],
)
def test_a_note_repeats_no_field(
    known: Project, others: tuple[Project, ...], rules: tuple[Rule, ...], note: str | None
) -> None:
    item = item_of(known, *others, rules=rules)
    assert item["note"] == note
    assert item["published"] is False


def test_the_note_of_a_worktree_names_the_project_that_it_was_approved_with() -> None:
    item = item_of(worktree(1, 2), approved(2))
    assert (item["published"], item["note"]) == (True, "approved with p2")


def test_the_parent_is_the_innermost_one_compared_by_components() -> None:
    parents = (Parent(SOURCES + b"/p"), Parent(SOURCES), Parent(HOME))
    assert item_of(project(1), parents=parents)["parent"] == "/home/ann/src"


def test_a_dropped_project_is_gone_and_undecided() -> None:
    known = replace(
        seen(denied(1), presence=Presence.SUSPENDED),
        ruling=replace(denied(1).ruling, lapse=Lapse(LapseReason.REPLACED, NOON)),
    )
    before = Catalog.of([known], (), PLACES, 1)
    item = dropped_project_items(before, [known], ())[0]
    assert (item["id"], item["name"], item["path"]) == ("r1", "p1", "/home/ann/src/p1")
    assert (item["verdict"], item["presence"]) == ("pending", "missing")
    assert (item["published"], item["lapsed"], item["note"]) == (False, None, None)


def test_times_are_in_utc_with_whole_seconds() -> None:
    moment = datetime(2026, 11, 21, 14, 0, 59, 999_999, tzinfo=timezone(timedelta(hours=2)))
    assert rfc3339(moment) == "2026-11-21T12:00:59Z"
    assert rfc3339(moment.astimezone(UTC)) == "2026-11-21T12:00:59Z"


components = st.binary(min_size=1, max_size=12).map(
    lambda raw: raw.translate(None, b"/\0") or b"x"
)


@given(st.lists(components, min_size=1, max_size=4), st.text(min_size=1, max_size=5))
def test_no_name_can_break_the_json_or_be_lost_in_it(parts: list[bytes], name: str) -> None:
    where = b"/" + b"/".join(parts)
    item = item_of(
        replace(at(where, project(1)), ruling=Ruling(name=name)), parents=(Parent(b"/"),)
    )
    told = json.loads(json.dumps(item))
    assert told == item
    assert told["name"] == name
    raw = told["path"].encode() if told["path_b64"] is None else b64decode(told["path_b64"])
    assert raw == where


def test_a_root_request_is_noted_only_while_the_project_is_pending() -> None:
    def note_on(_: bytes) -> str:
        return "an agent asks"

    for known, note in ((project(1), "an agent asks"), (approved(2), None), (denied(3), None)):
        catalog = Catalog.of([known], (), PLACES, 9)
        assert project_items(catalog, [known], (), note_on)[0]["note"] == note
    replaced = replace(project(4), ruling=Ruling(lapse=Lapse(LapseReason.REPLACED, NOON)))
    catalog = Catalog.of([replaced], (), PLACES, 9)
    note = project_items(catalog, [replaced], (), note_on)[0]["note"]
    assert note == "approval lapsed: replaced; an agent asks"
