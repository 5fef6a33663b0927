"""Hypothesis strategies for decisions, and for all that the store keeps.

They are apart from `support.sample_decisions`, which the programs of the harnesses import: to load
Hypothesis would take most of the time of their start.
"""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st
from msgspec.structs import replace

from rootsd.core.access import Access
from rootsd.core.model import (
    Actor,
    ActorKind,
    Decision,
    Expiry,
    GitEntry,
    Grant,
    Identity,
    IncompleteReason,
    Inspection,
    Lapse,
    LapseReason,
    MountBinding,
    ObservedState,
    Presence,
    ProjectKind,
    Rule,
    Ruling,
    Verdict,
)
from rootsd.core.risks import RiskLimit

moments = st.datetimes(
    min_value=datetime(1900, 1, 1),  # noqa: DTZ001 - Hypothesis wants them naive here
    max_value=datetime(2200, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
names = st.text(min_size=1, max_size=8)
actors = st.builds(Actor, st.sampled_from(ActorKind), st.text(max_size=8))
folders = st.builds(
    Identity,
    filesystem=st.binary(max_size=16),
    inode=st.integers(0, 2**64 - 1),
    handle=st.none() | st.binary(max_size=24),
    born_ns=st.none() | st.integers(-(2**63), 2**63 - 1),
    owner=st.integers(0, 2**32 - 1),
    mount=st.none()
    | st.builds(
        MountBinding,
        st.text(max_size=8),
        st.integers(0, 2**64 - 1),
        st.integers(0, 2**64 - 1),
        st.binary(max_size=8),
    ),
    inside=st.lists(st.binary(max_size=16), max_size=2).map(tuple),
)
identities = st.builds(
    replace,
    folders,
    git=st.none() | st.sampled_from(GitEntry),
    git_target=st.none() | folders,
    git_born_ns=st.none() | st.integers(-(2**63), 2**63 - 1),
)
sinces = st.none() | st.integers(0, 2**63 - 1)
# A file may have any name, also one that looks like a key of the text.
files = st.lists(st.tuples(st.sampled_from(["name", '"name":"x"', "\udcff"]), names), max_size=3)
inspections = st.builds(
    Inspection,
    state=st.binary(max_size=16),
    origin=st.none() | names,
    risk=st.text(max_size=8),
    files=files.map(tuple),
)
sightings = st.builds(
    ObservedState,
    kind=st.sampled_from(ProjectKind),
    identity=st.none() | identities,
    first_seen=moments,
    presence=st.sampled_from(Presence),
    absent_since=st.none() | moments,
    incomplete=st.none() | st.sampled_from(IncompleteReason),
    main_checkout=st.none() | st.binary(max_size=16),
    named=st.booleans(),
    inspection=st.none() | inspections,
)
expiries = st.builds(Expiry, moments, st.text(max_size=8), st.integers(0, 2**63 - 1))
decisions = st.builds(
    Decision,
    st.sampled_from([Verdict.APPROVED, Verdict.DENIED]),
    actors,
    moments,
    st.none() | identities,
    st.sampled_from(Access),
    st.none() | expiries,
    number=st.integers(0, 99),
    since_ns=sinces,
    shared_git=st.none() | identities,
)
rulings = st.builds(
    Ruling,
    decision=st.none() | decisions,
    grants=st.lists(st.builds(Grant, actors, identities, moments, sinces), max_size=2).map(tuple),
    lapse=st.none()
    | st.builds(
        Lapse,
        st.sampled_from(LapseReason),
        moments,
        st.none() | st.sampled_from(ActorKind),
        st.none() | expiries,
    ),
    name=st.none() | names,
    tags=st.lists(names, max_size=3).map(tuple),
    origin=st.none() | st.text(max_size=16),
    by_person=st.booleans(),
    files=st.none() | files.map(tuple),
)
rules = st.builds(
    Rule,
    number=st.integers(1, 99),
    pattern=st.binary(min_size=1, max_size=16),
    verdict=st.sampled_from([Verdict.APPROVED, Verdict.DENIED]),
    actor=actors,
    at=moments,
    origin=st.none() | names,
    risk=st.none() | st.sampled_from(RiskLimit),
)
