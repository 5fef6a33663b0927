"""Nothing is told twice, and nobody hears of the end of what they never heard of."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rootsd.core.inputs import ProjectGone, ProjectObserved, ProjectUnreachable, ProjectUnsafe
from rootsd.core.model import IncompleteReason, LapseReason, ObservedState, Project, ProjectKind
from rootsd.discovery.tracked import ReportCache, ReportCounts
from rootsd.disk.identity import identify
from rootsd.disk.safety import FolderSafety
from support.repos import raw


@pytest.fixture
def told() -> ReportCache:
    return ReportCache(FolderSafety(os.getuid()))


def _seen(path: Path, incomplete: IncompleteReason | None = None) -> ProjectObserved:
    return ProjectObserved(raw(path), ProjectKind.GIT, identify(raw(path)), incomplete)


def _project(path: bytes, kind: ProjectKind) -> Project:
    return Project(path, "r7k2", ObservedState(kind, None, datetime(2026, 1, 1, tzinfo=UTC)))


def test_the_same_sighting_is_told_once(told: ReportCache, tmp_path: Path) -> None:
    seen = _seen(tmp_path)
    told.tell(seen)
    told.tell(seen)
    assert told.take() == (seen,)
    assert told.take() == ()
    changed = _seen(tmp_path, IncompleteReason.LOCKED)
    told.tell(changed)
    assert told.take() == (changed,)
    assert told.take_tally() == ReportCounts(new=1, changed=1)


def test_an_identity_is_held_once_for_us_and_the_catalogue(
    told: ReportCache, tmp_path: Path
) -> None:
    path, before, now = raw(tmp_path), identify(raw(tmp_path)), identify(raw(tmp_path))
    observed = ObservedState(ProjectKind.GIT, before, datetime(2026, 1, 1, tzinfo=UTC))
    told.know([Project(path, "r7k2", observed)])
    assert told.as_held(path, now) is before
    other = replace(now, inode=now.inode + 1)
    assert told.as_held(path, other) is other


def test_what_is_seen_again_is_held_once(told: ReportCache, tmp_path: Path) -> None:
    first, again = _seen(tmp_path), _seen(tmp_path)
    told.tell(first)
    told.tell(again)
    assert again == first
    assert told.identity(raw(tmp_path)) is first.identity


def test_gone_and_back(told: ReportCache, tmp_path: Path) -> None:
    seen, gone = _seen(tmp_path), ProjectGone(raw(tmp_path))
    for observation in (seen, gone, gone, seen):
        told.tell(observation)
    assert told.take() == (seen, gone, seen)
    assert told.take_tally() == ReportCounts(new=2, gone=1)
    assert told.take_tally() == ReportCounts()


def test_what_nobody_knew_is_not_told_to_be_gone(told: ReportCache) -> None:
    told.tell(ProjectGone(b"/a"))
    told.tell(ProjectUnreachable(b"/b"))
    assert told.take() == ()


def test_what_the_store_knew_is_told_to_be_gone(told: ReportCache) -> None:
    told.know([_project(b"/a", ProjectKind.GIT), _project(b"https://a/b", ProjectKind.URI)])
    assert b"/a" in told
    assert b"https://a/b" not in told
    told.tell(ProjectGone(b"/a"))
    assert told.take() == (ProjectGone(b"/a"),)
    assert b"/a" not in told


def test_a_sighting_in_a_hazardous_place_is_followed_by_the_hazard(
    told: ReportCache, tmp_path: Path
) -> None:
    (tmp_path / "open" / "one").mkdir(parents=True)
    (tmp_path / "open").chmod(0o777)
    seen = _seen(tmp_path / "open" / "one")
    told.tell(seen)
    assert told.take() == (seen, ProjectUnsafe(seen.path, LapseReason.EXPOSED))
    (tmp_path / "open").chmod(0o755)
    told.tell(seen)
    assert told.take() == (seen,)


def test_identity_and_file_system_of_what_was_seen(told: ReportCache, tmp_path: Path) -> None:
    assert told.filesystem(raw(tmp_path)) is None
    told.tell(_seen(tmp_path))
    identity = told.identity(raw(tmp_path))
    assert identity is not None
    assert told.filesystem(raw(tmp_path)) == identity.filesystem
