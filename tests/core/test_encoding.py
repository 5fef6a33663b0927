"""Every value is encoded and decoded without loss, and damaged text is refused."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from rootsd.core.access import Access
from rootsd.core.encoding import (
    ProjectRecord,
    decode,
    decode_actor,
    encode,
    encode_actor,
    from_ns,
    to_ns,
)
from rootsd.core.model import (
    UNDECIDED,
    Actor,
    Identity,
    ObservedState,
    ProjectKind,
    Rule,
    Ruling,
)
from rootsd.core.record import BadRecord
from support.decision_strategies import actors, moments, names, rules, rulings, sightings
from support.sample_decisions import NOON, approved


@given(names, st.sampled_from(ProjectKind), rulings)
def test_a_project_is_decoded_from_its_text_which_is_ascii_sorted_and_holds_no_null(
    name: str, kind: ProjectKind, ruling: Ruling
) -> None:
    project = ProjectRecord(name, kind, ruling)
    text = encode(project)
    assert decode(ProjectRecord, text) == project
    assert text.isascii()
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    assert None not in json.loads(text)["ruling"].values()


def test_the_access_of_a_lapsed_approval_is_kept_and_written_only_if_narrower() -> None:
    project = ProjectRecord("r1", ProjectKind.GIT, Ruling(kept_access=Access.READ))
    assert decode(ProjectRecord, encode(project)) == project
    assert "access" not in encode(ProjectRecord("r1", ProjectKind.GIT, UNDECIDED))


@given(rules, sightings, st.none() | actors, moments)
def test_a_rule_a_sighting_an_actor_and_a_time_are_decoded_from_their_text(
    rule: Rule, observed: ObservedState, actor: Actor | None, moment: datetime
) -> None:
    assert decode(Rule, encode(rule), number=rule.number) == rule
    assert decode(ObservedState, encode(observed)) == observed
    assert decode_actor(encode_actor(actor)) == actor
    assert from_ns(to_ns(moment)) == moment


def test_equal_values_of_records_are_shared() -> None:
    one, other = (
        decode(ProjectRecord, encode(ProjectRecord("r1", ProjectKind.GIT, approved(n).ruling)))
        for n in (1, 2)
    )
    first, second = one.ruling.decision, other.ruling.decision
    assert first is not None
    assert second is not None
    assert first.actor is second.actor
    assert first.at is second.at
    assert first.identity is not None
    assert second.identity is not None
    assert first.identity.filesystem is second.identity.filesystem
    assert first.identity.handle != second.identity.handle


def test_the_text_of_an_approval_equals_that_of_old_stores() -> None:
    ruling = approved(7).ruling
    identity = (
        '"identity":{"born":1000000000000000007,"filesystem":"6469736b",'
        '"handle":"68616e646c652d37","inode":1007,"owner":1000}'
    )
    decision = (
        '{"access":"read-write","actor":{"detail":"pts/3","kind":"person"},'
        f'"at":1772625600000000000,{identity},"verdict":"approved"}}'
    )
    assert encode(ProjectRecord("r7", ProjectKind.GIT, ruling)) == (
        f'{{"id":"r7","kind":"git","ruling":{{"decision":{decision},'
        '"name":"p7","tags":["work"]}}'
    )


def test_keys_of_a_later_version_are_ignored() -> None:
    text = '{"id":"r1","kind":"git","later":[1],"ruling":{"later":{}}}'
    assert decode(ProjectRecord, text) == ProjectRecord("r1", ProjectKind.GIT, UNDECIDED)


IDENTITY = '{"filesystem":"00","inode":1,"owner":1}'


@pytest.mark.parametrize(
    ("kind", "text", "key"),
    [
        (ProjectRecord, '{"id":"r1","kind":"git"}', "ruling"),
        (ProjectRecord, '{"id":1,"kind":"git","ruling":{}}', "id"),
        (ProjectRecord, '{"id":"r1","kind":"tape","ruling":{}}', "kind"),
        (ProjectRecord, '{"id":"r1","kind":"git","ruling":[]}', "ruling"),
        (Ruling, '{"decision":null}', "decision"),
        (Ruling, '{"decision":{"verdict":"approved"}}', "actor"),
        (Ruling, '{"grants":{}}', "grants"),
        (Ruling, '{"grants":[[]]}', "grants"),
        (Ruling, '{"tags":[1]}', "tags"),
        (Ruling, '{"by_person":true}', "by_person"),
        (Actor, '{"kind":"person"}', "detail"),
        (Identity, IDENTITY.replace("1}", '"1"}'), "owner"),
        (Identity, IDENTITY.replace("1}", "1.0}"), "owner"),
        (Identity, IDENTITY.replace('"00"', '"0g"'), "filesystem"),
        (Identity, IDENTITY.replace('"00"', '"FF"'), "filesystem"),
        (Identity, IDENTITY.replace('"00"', '"00 11"'), "filesystem"),
        (Identity, IDENTITY.replace('"00"', "[]"), "filesystem"),
    ],
)
def test_a_damaged_text_is_refused_by_its_key_and_never_misread(
    kind: type[Struct], text: str, key: str
) -> None:
    assert decode(Identity, IDENTITY) == Identity(b"\0", 1, None, None, 1)
    with pytest.raises(BadRecord, match=key):
        decode(kind, text)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "null", "[" * 100_000, "9" * 10_000])
def test_a_text_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(BadRecord):
        decode(Actor, text)


def test_a_time_beyond_the_calendar_is_refused() -> None:
    with pytest.raises(BadRecord):
        from_ns(10**30)
    assert from_ns(to_ns(NOON)) == NOON
