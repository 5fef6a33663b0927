"""Reading the store without a daemon: decisions are listed, and nothing is published."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from rootsd.control.offline import OFFLINE_WARNING, answer_offline, has_store
from rootsd.core.errors import Busy, UnknownProject
from rootsd.core.model import ProjectKind, Verdict
from rootsd.files.lock import DaemonLock, LockRecord
from rootsd.places.daemon_folders import Places
from rootsd.state.store.store import Store
from rootsd.wire.decisions import RulesQuery
from rootsd.wire.guard import LogQuery
from rootsd.wire.projects import ProjectsQuery, RiskFilter, RiskReading, Selection
from support.sample_decisions import NOON, add, approved, decide, denied, rule
from support.stores import outside


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Return a store that a daemon left behind: two decisions and a rule."""
    state = tmp_path / "state"
    state.mkdir(0o700)
    with closing(Store.open(state, outside(state))) as store:
        changes = [decide(approved(1)), decide(denied(2)), add(rule(1, Verdict.DENIED))]
        store.append(changes, NOON)
    return Places(b"/config", bytes(state), b"/log", bytes(outside(state)))


def told(places: Places, query: ProjectsQuery) -> list[tuple[str, str, bool]]:
    items = answer_offline(places, query)["items"]
    return [(item["name"], item["verdict"], item["published"]) for item in items]


def test_decisions_are_listed_and_nothing_is_published(places: Places) -> None:
    assert told(places, ProjectsQuery("/")) == [("p1", "approved", False), ("p2", "denied", False)]
    assert told(places, ProjectsQuery("/", verdict=Verdict.DENIED)) == [("p2", "denied", False)]
    assert told(places, ProjectsQuery("/", tag="work")) == [("p1", "approved", False)]
    assert told(places, ProjectsQuery("/", select=Selection.PUBLISHED)) == []
    assert told(places, ProjectsQuery("/", select=Selection.PENDING)) == []
    assert told(places, ProjectsQuery("/", refs=("p2",))) == [("p2", "denied", False)]
    assert told(places, ProjectsQuery("/", kinds=(ProjectKind.HG,))) == []
    assert told(places, ProjectsQuery("/", since="2999-01-01T00:00:00Z")) == []
    assert told(places, ProjectsQuery("/", risk=(RiskFilter.NONE,))) == []
    with pytest.raises(UnknownProject):
        told(places, ProjectsQuery("/", refs=("none",)))
    assert answer_offline(places, ProjectsQuery("/"))["warnings"] == [OFFLINE_WARNING]


def test_nobody_knows_the_risks_without_a_daemon(places: Places) -> None:
    query = ProjectsQuery("/", risks=RiskReading.QUICK, risk=(RiskFilter.ANY,))
    assert [item["risk"] for item in answer_offline(places, query)["items"]] == [None, None]


def test_the_log_and_the_rules_equal_those_of_the_daemon_and_reading_writes_nothing(
    places: Places,
) -> None:
    for _ in range(2):
        events = answer_offline(places, LogQuery(last=2))["items"]
        assert [(event["seq"], event["verb"]) for event in events] == [
            (2, "denied"),
            (3, "rule added"),
        ]
        (listed,) = answer_offline(places, RulesQuery())["items"]
        assert (listed["number"], listed["verdict"], listed["pattern"]) == (1, "denied", "/srv/**")


def test_while_a_daemon_runs_the_store_is_not_read(places: Places) -> None:
    state = Path(os.fsdecode(places.state))
    with (
        DaemonLock.acquire(state, LockRecord(os.getpid(), "0", {})),
        pytest.raises(Busy),
    ):
        answer_offline(places, LogQuery())
    assert answer_offline(places, LogQuery())["items"]


def test_without_a_store_there_is_an_error_and_nothing_is_created(tmp_path: Path) -> None:
    places = Places(b"/config", bytes(tmp_path / "state"), b"/log", bytes(tmp_path / "data"))
    assert not has_store(places)
    assert not (tmp_path / "state").exists()
