"""The records of paths: what was reported, orphans, and missing roots."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from rootsd.core.inputs import ProjectGone, ProjectObserved, ProjectUnreachable, ProjectUnsafe
from rootsd.core.model import IncompleteReason, LapseReason, ObservedState, Project, ProjectKind
from rootsd.discovery.tracked import TrackedPaths
from rootsd.disk.identity import identify
from support.repositories import raw
from support.system_parts import folder_safety


@pytest.fixture
def tracked() -> TrackedPaths:
    return TrackedPaths(folder_safety())


def _seen(path: Path, incomplete: IncompleteReason | None = None) -> ProjectObserved:
    return ProjectObserved(raw(path), ProjectKind.GIT, identify(raw(path)), incomplete)


def _project(path: bytes, kind: ProjectKind = ProjectKind.GIT, *, named: bool = False) -> Project:
    first_seen = datetime(2026, 1, 1, tzinfo=UTC)
    return Project(path, "r7k2", ObservedState(kind, None, first_seen, named=named))


# Reports


def test_the_same_observation_is_reported_once_unless_on_demand(
    tracked: TrackedPaths, tmp_path: Path
) -> None:
    seen, again = _seen(tmp_path), _seen(tmp_path)
    assert again == seen
    assert tracked.filesystem(seen.path) is None
    tracked.report(seen)
    tracked.report(again)
    assert tracked.take() == (seen,)
    assert tracked.take() == ()
    identity = tracked.identity(seen.path)
    assert identity is not None
    assert identity is seen.identity
    assert tracked.filesystem(seen.path) == identity.filesystem
    tracked.report_again(seen.path)
    tracked.report(seen)
    assert tracked.take() == (seen,)
    changed = _seen(tmp_path, IncompleteReason.LOCKED)
    tracked.report(changed)
    assert tracked.take() == (changed,)


def test_an_equal_identity_is_held_once(tracked: TrackedPaths, tmp_path: Path) -> None:
    path, before, now = raw(tmp_path), identify(raw(tmp_path)), identify(raw(tmp_path))
    observed = ObservedState(ProjectKind.GIT, before, datetime(2026, 1, 1, tzinfo=UTC))
    tracked.load([Project(path, "r7k2", observed)])
    assert tracked.reuse_identity(path, now) is before
    other = replace(now, inode=now.inode + 1)
    assert tracked.reuse_identity(path, other) is other


def test_a_project_that_returned_is_new_again(tracked: TrackedPaths, tmp_path: Path) -> None:
    seen, gone = _seen(tmp_path), ProjectGone(raw(tmp_path))
    for observation in (seen, gone, gone, seen):
        tracked.report(observation)
    assert tracked.take() == (seen, gone, seen)


def test_the_end_of_an_unknown_project_is_not_reported(tracked: TrackedPaths) -> None:
    tracked.report(ProjectGone(b"/a"))
    tracked.report(ProjectUnreachable(b"/b"))
    assert tracked.take() == ()


def test_the_end_of_a_stored_project_is_reported(tracked: TrackedPaths) -> None:
    tracked.load([_project(b"/a"), _project(b"https://a/b", ProjectKind.URI)])
    assert b"/a" in tracked
    assert b"https://a/b" not in tracked
    tracked.report(ProjectGone(b"/a"))
    assert tracked.take() == (ProjectGone(b"/a"),)
    assert b"/a" not in tracked


def test_a_hazard_follows_the_observation(tracked: TrackedPaths, tmp_path: Path) -> None:
    (tmp_path / "open" / "one").mkdir(parents=True)
    (tmp_path / "open").chmod(0o777)
    seen = _seen(tmp_path / "open" / "one")
    tracked.report(seen)
    assert tracked.take() == (seen, ProjectUnsafe(seen.path, LapseReason.EXPOSED))
    (tmp_path / "open").chmod(0o755)
    tracked.report(seen)
    assert tracked.take() == (seen,)


# Orphans


def test_a_project_in_a_tree_or_a_missing_one_is_not_an_orphan(tracked: TrackedPaths) -> None:
    tracked.load(_project(path) for path in (b"/held", b"/gone", b"/still"))
    tracked.adopt_by_tree(b"/held")
    tracked.report(ProjectGone(b"/gone"))
    assert tracked.orphans() == [b"/still"]
    tracked.forget(b"/still")
    assert not tracked.has_work()


def test_orphans_below_a_lost_project_are_returned_once(tracked: TrackedPaths) -> None:
    tracked.load(_project(path) for path in (b"/one/deep/two", b"/one-more"))
    assert tracked.take_orphans_below_lost() == []
    tracked.add_orphan(b"/one")
    tracked.add_lost(b"/one")
    assert tracked.take_orphans_below_lost() == [b"/one/deep/two"]
    assert tracked.take_orphans_below_lost() == []


def test_a_named_folder_stays_named_until_it_is_in_a_tree(tracked: TrackedPaths) -> None:
    tracked.load([_project(b"/stored", named=True)])
    tracked.add_named(b"/new")
    assert tracked.is_named(b"/stored")
    assert tracked.is_named(b"/new")
    for path in (b"/stored", b"/new"):
        tracked.adopt_by_tree(path)
        tracked.add_orphan(path)
        assert not tracked.is_named(path)


# Missing roots


def test_only_missing_roots_at_or_below_a_change_are_returned(tracked: TrackedPaths) -> None:
    missing = {path: _project(path) for path in (b"/a/one", b"/a/one-more")}
    assert tracked.missing_roots_below([b"/a"]) == []
    assert tracked.set_missing_roots(missing) == missing.keys()
    assert tracked.has_work()
    assert tracked.missing_roots_below([b"/a/one"]) == [b"/a/one"]
    assert tracked.missing_roots_below([b"/a"]) == [b"/a/one", b"/a/one-more"]
    assert tracked.set_missing_roots({b"/a/one": missing[b"/a/one"]}) == set()
