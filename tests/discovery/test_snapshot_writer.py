"""A start with a snapshot has the same result as one without, but lists only changed folders."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rootsd.core.inputs import ProjectObserved
from rootsd.core.model import Parent
from rootsd.discovery.engine import DiscoveryEngine
from rootsd.discovery.periodic import SNAPSHOT_INTERVAL_S, SnapshotWriter
from rootsd.disk import file_clock
from rootsd.disk.walk import AddWatch, FolderListing, Walker, WalkFolder
from rootsd.processes.activity import folders_of_tools
from support.engine_harness import run_down
from support.fake_watchers import Clock, RecordingWatcher
from support.random_changes import RandomChanges
from support.repositories import fake_repository, raw
from support.sizes import Sizes
from support.system_parts import folder_safety


class Run:
    """One run of discovery on a folder, without threads, from the saved state of the last one."""

    def __init__(self, parent: Parent, file: Path | None, clock: Clock) -> None:
        self.clock = clock
        self.watcher = RecordingWatcher()
        judge = folder_safety()
        self.engine = DiscoveryEngine(
            self.watcher, judge, lambda _folders: frozenset(), clock, folders_of_tools
        )
        self.keeping = SnapshotWriter(file, clock)
        for tree in self.engine.set_parents([parent]):
            self.keeping.restore(tree)
            self.engine.explore(tree)
        (self.tree,) = self.engine.trees
        self.changes = self.tree.changes

    def end(self) -> None:
        self.keeping.write(self.engine.trees)

    def result(self) -> dict[object, object]:
        """Return everything that this run knows."""
        while self.tree.has_deferred_work():
            self.tree.catch_up(3)
        run_down(self.engine, self.clock)
        result: dict[object, object] = {seen.path: seen for seen in self.engine.take()}
        return result | {"coverage": self.tree.coverage, "watched": self.watcher.watched}


def fresh(parent: Parent, clock: Clock) -> dict[object, object]:
    """Return everything that a run without a snapshot knows."""
    life = Run(parent, None, clock)
    result = life.result()
    life.end()
    return result


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "discovery.index"


@pytest.fixture
def src(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    return tmp_path / "src"


@pytest.fixture
def later(src: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that makes all earlier changes old. A stamp is trusted only after its
    clock moved on.
    """
    monkeypatch.setattr(file_clock, "_SLACK_NS", 0)
    probe = src.parent / "clock"

    def wait() -> None:
        begin = time.time_ns()
        while True:
            probe.touch()
            if probe.stat().st_ctime_ns > begin:
                return

    return wait


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the folders that were listed to find projects."""
    listed: list[str] = []
    list_folder = Walker._list

    def remember(
        walker: Walker, place: WalkFolder, before: int, add_watch: AddWatch | None
    ) -> FolderListing | None:
        listed.append(os.path.basename(os.fsdecode(place.path)))
        return list_folder(walker, place, before, add_watch)

    monkeypatch.setattr(Walker, "_list", remember)
    return listed


def test_only_changed_folders_are_listed(
    src: Path, file: Path, later: Callable[[], None], listed: list[str]
) -> None:
    for name in ("a/one", "a/two", "b/three"):
        fake_repository(src / name)
    parent, clock = Parent(raw(src)), Clock()
    later()
    Run(parent, file, clock).end()
    (src / "b" / "new").mkdir()
    later()
    listed.clear()
    life = Run(parent, file, clock)
    assert sorted(listed) == ["b", "new"]
    assert life.result() == fresh(parent, clock)
    life.end()


def test_a_folder_from_before_1970_is_restored(
    src: Path, file: Path, later: Callable[[], None], listed: list[str]
) -> None:
    (src / "old").mkdir()
    os.utime(src / "old", (0, -1))
    later()
    Run(Parent(raw(src)), file, Clock()).end()
    listed.clear()
    Run(Parent(raw(src)), file, Clock()).end()
    assert listed == []


def test_remembered_folders_are_checked_again_in_small_groups(
    src: Path, file: Path, later: Callable[[], None]
) -> None:
    for number in range(5):
        fake_repository(src / f"r{number}")
    parent, clock = Parent(raw(src)), Clock()
    later()
    Run(parent, file, clock).end()
    (src / "r3" / ".git" / "HEAD").unlink()
    life = Run(parent, file, clock)
    assert (life.engine.take(), life.tree.count_projects()) == ((), 5)
    life.tree.catch_up(2)
    assert len(life.engine.take()) == 2
    assert life.tree.has_deferred_work()
    life.tree.refresh(thorough=True)
    assert not life.tree.has_deferred_work()
    run_down(life.engine, clock)
    seen = [o for o in life.engine.take() if isinstance(o, ProjectObserved) and o.incomplete]
    assert [o.path for o in seen] == [raw(src / "r3")]
    life.end()


def test_with_other_rules_or_groups_the_snapshot_is_not_used(
    src: Path,
    file: Path,
    later: Callable[[], None],
    listed: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_repository(src / "a" / "one")
    later()
    parent, groups = Parent(raw(src)), os.getgroups()
    Run(parent, file, Clock()).end()
    for used, member_of, again in (
        (parent, groups, set()),
        (Parent(raw(src), skip=(b"x",)), groups, {"src", "a", "one"}),
        (parent, groups, {"src", "a", "one"}),
        (parent, [*groups, 4711], {"src", "a", "one"}),
    ):
        monkeypatch.setattr(os, "getgroups", lambda member_of=member_of: member_of)
        listed.clear()
        Run(used, file, Clock()).end()
        assert set(listed) == again


def test_a_young_stamp_is_not_saved(src: Path, file: Path, listed: list[str]) -> None:
    fake_repository(src / "one")
    Run(Parent(raw(src)), file, Clock()).end()
    listed.clear()
    life = Run(Parent(raw(src)), file, Clock())
    life.result()
    life.end()
    assert {"src", "one"} <= set(listed)


def test_a_missing_or_replaced_parent_is_not_restored(
    src: Path, file: Path, later: Callable[[], None]
) -> None:
    fake_repository(src / "one")
    fake_repository(src / "two")
    later()
    parent, clock = Parent(raw(src)), Clock()
    Run(parent, file, clock).end()
    kept = file.read_bytes()
    src.rename(src.with_name("away"))
    gone = Run(parent, file, clock)
    assert gone.tree.count_projects() == 0
    fake_repository(src / "two")
    assert file.read_bytes() == kept
    life = Run(parent, file, clock)
    assert life.tree.count_projects() == 1
    assert life.result() == fresh(parent, clock)
    life.end()


def test_a_snapshot_is_written_after_changes_and_not_too_often(src: Path, file: Path) -> None:
    life = Run(Parent(raw(src)), file, Clock())
    due = life.keeping.due()
    assert due == life.clock.now + SNAPSHOT_INTERVAL_S
    life.keeping.write_if_due(life.engine.trees)
    assert not file.exists()
    life.clock.now = due
    life.keeping.write_if_due(life.engine.trees)
    file.unlink()
    life.end()
    assert not file.exists()
    (src / "new").mkdir()
    life.tree.refresh(thorough=True)
    life.end()
    assert file.exists()


def test_without_a_file_nothing_is_saved(src: Path, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    life = Run(Parent(raw(src)), None, Clock())
    assert life.keeping.due() is None
    life.end()
    assert set(tmp_path.iterdir()) == before


def test_a_file_that_cannot_be_written_is_reported_without_a_failure(
    src: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    life = Run(Parent(raw(src)), tmp_path / "none" / "index", Clock())
    with caplog.at_level(logging.WARNING):
        life.end()
    assert "No such file" in caplog.text


def test_a_start_with_a_snapshot_equals_a_start_without(
    src: Path, file: Path, later: Callable[[], None], sizes: Sizes
) -> None:
    changes = RandomChanges(src, seed=11)
    parent, clock = Parent(raw(src)), Clock()
    remembered = 0
    for _ in range(sizes.pick(test=60, check=2_000, soak=6_000)):
        for _ in range(changes.random.randint(0, 4)):
            changes.step()
        if changes.random.random() < 0.8:
            later()
        life = Run(parent, file, clock)
        remembered += life.changes < len(life.tree)
        assert life.result() == fresh(parent, clock)
        life.end()
    assert remembered > 10
