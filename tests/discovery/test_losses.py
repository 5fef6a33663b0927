"""Why a project is not at its path any more."""

from __future__ import annotations

import shutil
from pathlib import Path

from msgspec.structs import replace

from rootsd.core.inputs import ProjectGone, ProjectObserved, ProjectUnreachable
from rootsd.core.model import IncompleteReason, LapseReason, ProjectKind
from rootsd.discovery.losses import classify_loss, require_marker
from rootsd.disk.identity import identify
from support.repositories import fake_repository, raw


def _seen(path: Path, incomplete: IncompleteReason | None = None) -> ProjectObserved:
    return ProjectObserved(raw(path), ProjectKind.GIT, identify(raw(path)), incomplete)


def test_an_orphan_without_a_marker_is_gone(tmp_path: Path) -> None:
    plain, one = tmp_path / "plain", fake_repository(tmp_path / "one")
    plain.mkdir()
    assert require_marker(_seen(one), None) == _seen(one)
    assert require_marker(_seen(plain), None) == ProjectGone(raw(plain))
    other = replace(identify(raw(plain)), handle=b"another", born_ns=1)
    replaced = ProjectGone(raw(plain), LapseReason.REPLACED)
    assert require_marker(_seen(plain), other) == replaced


def test_a_lost_project_may_still_exist(tmp_path: Path) -> None:
    one = fake_repository(tmp_path / "one")
    assert classify_loss(raw(one), raw(tmp_path), identify(raw(one))) is None
    assert classify_loss(raw(one), raw(tmp_path), None) is None


def test_a_lost_project_with_an_empty_or_reused_path_is_gone(tmp_path: Path) -> None:
    one = fake_repository(tmp_path / "one")
    known, gone = identify(raw(one)), ProjectGone(raw(one))
    another = replace(known, handle=b"another", born_ns=1)
    replaced = ProjectGone(raw(one), LapseReason.REPLACED)
    assert classify_loss(raw(one), raw(tmp_path), another) == replaced
    shutil.rmtree(one / ".git")
    without_git = ProjectGone(raw(one), LapseReason.RETARGETED)
    assert classify_loss(raw(one), raw(tmp_path), known) == without_git
    assert classify_loss(raw(one), raw(tmp_path), replace(known, git=None)) == gone
    one.rmdir()
    assert classify_loss(raw(one), raw(tmp_path), known) == gone
    one.symlink_to(tmp_path)
    assert classify_loss(raw(one), raw(tmp_path), known) == replaced


def test_a_lost_project_on_another_file_system_is_unreachable(tmp_path: Path) -> None:
    one = fake_repository(tmp_path / "one")
    known = replace(identify(raw(one)), filesystem=b"another")
    assert classify_loss(raw(one), raw(tmp_path), known) == ProjectUnreachable(raw(one))
