"""The state of a parent, with a reason and a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.core.model import Parent, ScanCoverage
from rootsd.discovery.candidate import Arrival
from rootsd.discovery.parent_tree import ParentTree
from rootsd.discovery.status import ParentState, report_for
from rootsd.disk.markers import WalkRules
from rootsd.watch.events import Watcher, WatchOutcome
from rootsd.watch.polling import PollingWatcher
from support.fake_watchers import RecordingWatcher
from support.repositories import fake_repository, raw
from support.tree_observers import RecordingObserver


def _tree(top: Path, watcher: Watcher) -> ParentTree:
    parent = Parent(raw(top))
    tree = ParentTree(parent, WalkRules.of(parent), watcher, RecordingObserver())
    tree.explore(Arrival.FOUND)
    return tree


def test_a_watched_parent_has_no_remedy(tmp_path: Path) -> None:
    fake_repository(tmp_path / "one")
    report = report_for(_tree(tmp_path, RecordingWatcher()), scanning=False)
    assert (report.state, report.coverage) == (ParentState.WATCHED, ScanCoverage.FULL)
    assert report.reason == ""


@pytest.mark.parametrize(
    "watcher",
    [
        RecordingWatcher(budget=0),
        PollingWatcher(),
        PollingWatcher(WatchOutcome.NO_INSTANCE),
        PollingWatcher(WatchOutcome.FAILED),
    ],
)
def test_a_polled_parent_says_why(tmp_path: Path, watcher: Watcher) -> None:
    report = report_for(_tree(tmp_path, watcher), scanning=False)
    assert report.state is ParentState.POLLED
    assert report.reason


def test_a_missing_parent_names_the_command(tmp_path: Path) -> None:
    report = report_for(_tree(tmp_path / "none", RecordingWatcher()), scanning=False)
    assert report.state is ParentState.MISSING
    assert "rootsd parent rm" in report.remedy


def test_a_parent_being_scanned_says_so(tmp_path: Path) -> None:
    report = report_for(_tree(tmp_path, RecordingWatcher()), scanning=True)
    assert report.state is ParentState.SCANNING
