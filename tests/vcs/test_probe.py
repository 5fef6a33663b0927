"""The observation of one folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

from rootsd.core.inputs import ProjectGone, ProjectObserved, ProjectUnreachable, ProjectUnsafe
from rootsd.core.model import IncompleteReason, LapseReason, ProjectKind
from rootsd.disk.identity import identify
from rootsd.vcs.probe import names_below, observe_absent, probe
from support.repositories import fake_repository, git, make_repository, raw


def test_a_repository_and_a_worktree(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    git("worktree", "add", tmp_path / "tree", cwd=main)
    assert probe(raw(main)) == ProjectObserved(raw(main), ProjectKind.GIT, identify(raw(main)))
    tree = probe(raw(tmp_path / "tree"))
    assert isinstance(tree, ProjectObserved)
    assert tree.main_checkout == raw(main)


def test_a_named_folder_without_a_marker_is_a_plain_project(tmp_path: Path) -> None:
    seen = probe(raw(tmp_path))
    assert isinstance(seen, ProjectObserved)
    assert (seen.kind, seen.incomplete) == (ProjectKind.PROJECT, None)


def test_a_broken_repository_has_a_reason(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    seen = probe(raw(tmp_path))
    assert isinstance(seen, ProjectObserved)
    assert seen.incomplete is IncompleteReason.NO_HEAD


def test_a_repository_in_use_is_complete(tmp_path: Path) -> None:
    fake_repository(tmp_path)
    (tmp_path / ".git" / "index.lock").touch()
    seen = probe(raw(tmp_path))
    assert isinstance(seen, ProjectObserved)
    assert seen.incomplete is None


def test_a_gone_folder_is_not_unreachable(tmp_path: Path) -> None:
    path = raw(tmp_path / "a" / "b")
    assert probe(path) == ProjectUnreachable(path)
    assert probe(path, within=raw(tmp_path)) == ProjectGone(path)
    assert observe_absent(path, raw(tmp_path), b"elsewhere") == ProjectUnreachable(path)


def test_a_link_or_a_file_at_the_path_has_replaced_the_project(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        path = raw(tmp_path / name)
        assert probe(path) == ProjectGone(path, LapseReason.REPLACED)


def test_a_link_above_a_project_is_unsafe(tmp_path: Path) -> None:
    fake_repository(tmp_path / "real" / "one")
    (tmp_path / "link").symlink_to("real")
    path = raw(tmp_path / "link" / "one")
    assert probe(path) == ProjectUnsafe(path, LapseReason.RETARGETED)


def test_a_new_name_anywhere_in_a_folder_shows_and_a_write_does_not(tmp_path: Path) -> None:
    assert names_below(raw(tmp_path / "none")) == 0
    file = tmp_path / "one" / "two" / "file"
    file.parent.mkdir(parents=True)
    file.touch()
    before = names_below(raw(tmp_path))
    for date in ("1960-01-01", "2200-01-01"):
        file.write_text(date)
        subprocess.run(["touch", "-d", date, file, file.parent], check=True)
        assert names_below(raw(tmp_path)) == before
    (file.parent / "more").touch()
    assert names_below(raw(tmp_path)) != before
    (file.parent / "more").unlink()
    assert names_below(raw(tmp_path)) == before
    file.rename(tmp_path / "one" / "file")
    assert names_below(raw(tmp_path)) != before
