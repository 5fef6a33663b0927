"""When the scheduler polls folders without events."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.core.inputs import ProjectObserved
from rootsd.core.model import Parent
from rootsd.discovery.engine import DiscoveryEngine
from rootsd.discovery.periodic import ROOTS_POLL_CPU_SHARE, ROOTS_POLL_INTERVAL_S, PollScheduler
from rootsd.processes.activity import folders_of_tools
from rootsd.watch.events import Watcher
from rootsd.watch.polling import PollingWatcher, poll_interval
from support.fake_watchers import Clock, RecordingWatcher
from support.repositories import fake_repository, raw
from support.system_parts import folder_safety


@pytest.fixture
def clock() -> Clock:
    return Clock()


def _engine(clock: Clock, watcher: Watcher, parent: Path) -> DiscoveryEngine:
    engine = DiscoveryEngine(
        watcher, folder_safety(), lambda _: frozenset(), clock, folders_of_tools
    )
    for tree in engine.set_parents([Parent(raw(parent))]):
        engine.explore(tree)
    return engine


def test_a_polled_parent_is_checked_when_due(tmp_path: Path, clock: Clock) -> None:
    engine = _engine(clock, PollingWatcher(), tmp_path)
    scheduler = PollScheduler(engine, clock)
    scheduler.poll_if_due()
    assert scheduler.due() == clock.now + poll_interval(0.0)
    fake_repository(tmp_path / "one")
    clock.now += poll_interval(0.0) - 0.1
    scheduler.poll_if_due()
    assert engine.take() == ()
    clock.now += 0.1
    scheduler.poll_if_due()
    engine.tick()
    assert [type(seen) for seen in engine.take()] == [ProjectObserved]
    assert scheduler.due() == clock.now + poll_interval(0.0)


def test_if_everything_is_watched_only_roots_are_swept(tmp_path: Path, clock: Clock) -> None:
    one = tmp_path / "one"
    one.mkdir()
    engine = _engine(clock, RecordingWatcher(), tmp_path)
    scheduler = PollScheduler(engine, clock)
    scheduler.poll_if_due()
    assert scheduler.due() == clock.now + ROOTS_POLL_INTERVAL_S


def test_a_slow_sweep_runs_rarely(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = _engine(clock, RecordingWatcher(), tmp_path)
    scheduler = PollScheduler(engine, clock)

    def take_half_a_second() -> None:
        clock.now += 0.5

    monkeypatch.setattr(engine, "sweep", take_half_a_second)
    clock.now += ROOTS_POLL_INTERVAL_S
    scheduler.poll_if_due()
    due = scheduler.due()
    assert due is not None
    assert due - clock.now == pytest.approx(0.5 / ROOTS_POLL_CPU_SHARE)


def test_a_removed_parent_is_not_swept(tmp_path: Path, clock: Clock) -> None:
    engine = _engine(clock, PollingWatcher(), tmp_path)
    scheduler = PollScheduler(engine, clock)
    scheduler.poll_if_due()
    engine.set_parents(())
    scheduler.poll_if_due()
    assert scheduler.due() is None
