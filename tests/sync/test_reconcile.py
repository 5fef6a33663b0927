"""Plans for a settings file: only entries of ours are removed, in any order of changes."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.settings.errors import NotEditable
from rootsd.settings.json_spans import Items, insert, parse, remove
from rootsd.sync.entries import NOTHING_OWN, EntryKind, ListEntry, OwnEntries
from rootsd.sync.reconcile import keep_denials, plan_file, plan_profile

DENY, DIRS = ("permissions", "deny"), ("permissions", "additionalDirectories")
MAP = ("permission", "external_directory")
DENIAL = ListEntry(DENY, "Read(//x/**)", EntryKind.DENIAL)
GRANT = ListEntry(DIRS, "/a", EntryKind.GRANT)
ALLOWED = ListEntry(MAP, "/a/**", EntryKind.GRANT, "allow")
DENIED = ListEntry(MAP, "/a/**", EntryKind.DENIAL, "deny")


def test_a_missing_file_is_created_and_removed_again() -> None:
    plan = plan_file(None, [DENIAL], NOTHING_OWN)
    assert plan.text is not None
    assert json.loads(plan.text) == {"permissions": {"deny": ["Read(//x/**)"]}}
    assert plan_file(plan.text, [], plan.own) == plan_file(None, [], NOTHING_OWN)


def test_a_created_file_with_a_persons_entries_is_kept() -> None:
    plan = plan_file(None, [DENIAL], NOTHING_OWN)
    assert plan.text is not None
    mine, _ = insert(plan.text, Items(("model",), ["x"]))
    after = plan_file(mine, [], plan.own)
    assert after.text is not None
    assert json.loads(after.text) == {"model": ["x"]}


def test_a_persons_entry_is_never_treated_as_ours() -> None:
    text = '{"permissions": {"deny": ["Read(//x/**)"]}}'
    plan = plan_file(text, [DENIAL, GRANT], NOTHING_OWN)
    assert plan.own.entries == (GRANT,)
    assert plan_file(plan.text, [], plan.own).text == text


def test_the_end_withdraws_grants_and_keeps_denials() -> None:
    text = '{"model": "x"}'
    plan = plan_file(text, [DENIAL, GRANT], NOTHING_OWN)
    ended = plan_file(plan.text, keep_denials(plan.own), plan.own)
    assert ended.text is not None
    assert json.loads(ended.text)["permissions"] == {"deny": ["Read(//x/**)"]}
    assert ended.own.entries == (DENIAL,)
    assert plan_file(ended.text, [], ended.own).text == text


def test_a_denial_replaces_a_grant_at_the_same_place() -> None:
    plan = plan_file("{}", [ALLOWED], NOTHING_OWN)
    after = plan_file(plan.text, [DENIED], plan.own)
    assert after.text is not None
    assert json.loads(after.text)["permission"]["external_directory"] == {"/a/**": "deny"}
    assert after.own.entries == (DENIED,)


def test_another_value_of_a_person_is_a_conflict_and_stays() -> None:
    text = '{"permission": {"external_directory": {"/a/**": "ask"}}}'
    plan = plan_file(text, [DENIED], NOTHING_OWN)
    assert (plan.text, plan.own, plan.conflicts) == (text, NOTHING_OWN, (DENIED,))


@pytest.mark.parametrize("text", ['{"permissions": []}', '{"permissions": {"deny": "x"}}', "["])
def test_a_file_of_another_schema_is_left_alone(text: str) -> None:
    with pytest.raises(NotEditable):
        plan_file(text, [DENIAL], NOTHING_OWN)


TABLE = ("permissions", "rootsd")
PROFILE = [
    ListEntry(TABLE, "extends", EntryKind.DENIAL, ":workspace"),
    ListEntry((*TABLE, "filesystem"), "/it's \u00e9", EntryKind.DENIAL, "deny"),
]
MORE = ListEntry((*TABLE, "filesystem"), "/a", EntryKind.DENIAL, "deny")


def test_a_profile_is_written_anew_and_removed() -> None:
    plan = plan_profile(None, [*PROFILE, MORE], NOTHING_OWN)
    assert plan.text is not None
    assert tomllib.loads(plan.text) == {
        "default_permissions": "rootsd",
        "permissions": {"rootsd": {
            "extends": ":workspace",
            "filesystem": {"/a": "deny", "/it's \u00e9": "deny"},
        }},
    }  # fmt: skip
    ended = plan_profile(plan.text, PROFILE, plan.own)
    assert ended == plan_profile(None, PROFILE, NOTHING_OWN)
    assert plan_profile(ended.text, [], ended.own) == plan_profile(None, [], NOTHING_OWN)


def test_a_profile_from_before_a_kill_is_ours() -> None:
    """The record is written first, so it may have more entries than the file."""
    old = plan_profile(None, PROFILE, NOTHING_OWN)
    both = old.own.with_more(plan_profile(None, [MORE], NOTHING_OWN).own)
    assert plan_profile(old.text, [MORE], both) == plan_profile(None, [MORE], NOTHING_OWN)


@pytest.mark.parametrize("own", [NOTHING_OWN, OwnEntries(tuple(PROFILE), has_made_file=True)])
def test_a_profile_that_somebody_else_wrote_in_is_left_alone(own: OwnEntries) -> None:
    text = plan_profile(None, PROFILE, NOTHING_OWN).text
    for wanted in ([], PROFILE):
        with pytest.raises(NotEditable, match="move it away"):
            plan_profile(f"{text}\n[tui]\n", wanted, own)


OURS = [
    *(ListEntry(DENY, f"Read(//{name}/**)", EntryKind.DENIAL) for name in "xyz"),
    *(ListEntry(DIRS, f"/{name}", EntryKind.GRANT) for name in "abc"),
]
THEIRS = [Items(DENY, ["Bash(rm:*)"]), Items(DIRS, ["/home"]), Items(("model",), ["m"])]
STEPS = st.lists(
    st.tuples(st.just("sync"), st.sets(st.sampled_from(OURS)))
    | st.tuples(st.just("end"), st.none())
    | st.tuples(st.sampled_from(["write", "erase"]), st.sampled_from(THEIRS)),
    max_size=8,
)


@given(STEPS, st.sampled_from(["{}", '{\n  "a": 1 // c\n}\n', '{"permissions": {"deny": ["q"]}}']))
def test_after_any_steps_only_the_persons_entries_remain(
    steps: list[tuple[str, Any]], text: str
) -> None:
    own: OwnEntries = NOTHING_OWN
    alone = text
    for step, what in steps:
        match step:
            case "sync" | "end":
                wanted = keep_denials(own) if step == "end" else sorted(what, key=str)
                plan = plan_file(text, wanted, own)
                assert plan.text is not None
                assert set(plan.own.entries) == set(wanted)
                text, own = plan.text, plan.own
            case "write" if not _has(text, what):
                text, alone = insert(text, what)[0], insert(alone, what)[0]
            case "erase":
                text, alone = remove(text, what), remove(alone, what)
            case _:
                pass  # the person's entry already exists
    last = plan_file(text, [], own)
    assert last.text is not None
    assert last.own.entries == ()
    assert _pruned(parse(last.text).value) == _pruned(parse(alone).value)
    assert last.text.count("// c") == alone.count("// c")


def _has(text: str, items: Items) -> bool:
    value = parse(text).value
    for key in items.keys:
        value = value.get(key, {})
    return all(name in value for name in items.values)


def _pruned(value: object) -> object:
    """Return the value without empty containers: who made them first depends on the order."""
    if not isinstance(value, dict):
        return value
    pruned = {key: _pruned(each) for key, each in value.items()}
    return {key: each for key, each in pruned.items() if each not in ({}, [])}
