"""A look below a folder finds what a person counts as other projects, and says its limits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.core.model import DEFAULT_DEPTH, ProjectKind
from rootsd.disk import look
from rootsd.disk.look import Look, LookLimits, look_below
from support.repositories import cloned, fake_repository, git, make_repository, raw

PLAIN = ProjectKind.PROJECT


def found(top: Path, kind: ProjectKind = PLAIN, limits: LookLimits | None = None) -> list[str]:
    seen = look_below(raw(top), kind, limits)
    assert seen.is_whole
    return sorted(os.path.relpath(os.fsdecode(path), top) for path in seen.projects)


def test_below_a_plain_folder_every_project_counts_however_deep_and_hidden(tmp_path: Path) -> None:
    deep = "/".join("abcdefgh")
    for name in ("near", deep, ".hidden/dot", "near/inside"):
        fake_repository(tmp_path / name)
    (tmp_path / "web").mkdir()
    (tmp_path / "web/package.json").touch()
    fake_repository(tmp_path / "web/vendored/lib")
    (tmp_path / "web/part").mkdir()
    (tmp_path / "web/part/package.json").touch()
    fake_repository(tmp_path / "node_modules/left-pad")
    (tmp_path / ".cache/x").mkdir(parents=True)
    (tmp_path / ".cache/x/package.json").touch()
    (tmp_path / "link").symlink_to("/usr")
    assert found(tmp_path) == sorted([deep, "near", ".hidden/dot", "web", "web/vendored/lib"])
    assert found(tmp_path / "web") == ["vendored/lib"], "a project file makes it one project"


def test_below_a_repository_only_other_checkouts_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: without the reach of a repository, its own parts count."""
    top = make_repository(tmp_path / "top")
    git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add",
        str(make_repository(tmp_path / "other")), "part", cwd=top)  # fmt: skip
    git("worktree", "add", "-q", "tree", cwd=top)
    fake_repository(top / "acme/api")
    fake_repository(top / ".terraform/modules/x")
    git("init", "-q", "--bare", str(top / "fixtures/bare.git"))
    (top / "web").mkdir()
    (top / "web/package.json").touch()
    for folder in (".svn", "sub/.svn"):
        (top / "old" / folder).mkdir(parents=True)
    assert found(top, ProjectKind.GIT) == ["acme/api"]
    start = look._start
    monkeypatch.setattr(look, "_start", lambda folder, _: start(folder, PLAIN))
    assert {"fixtures/bare.git", "part", "tree"} <= {*found(top, ProjectKind.GIT)}


def test_a_look_that_reaches_a_limit_is_not_whole(tmp_path: Path) -> None:
    for number in range(6):
        fake_repository(tmp_path / f"r{number}")
    assert not look_below(raw(tmp_path), PLAIN, LookLimits(folders=3)).is_whole
    assert not look_below(raw(tmp_path), PLAIN, LookLimits(seconds=-1)).is_whole
    few = look_below(raw(tmp_path), PLAIN, LookLimits(projects=2))
    assert (len(few.projects), few.is_whole) == (2, False)


def test_a_mount_that_does_not_respond_is_not_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: without the mount table it is."""
    fake_repository(tmp_path / "mounted/r")
    point = raw(tmp_path / "mounted")
    entered = Look((point + b"/r",), is_whole=True)
    monkeypatch.setattr(look, "mount_points", lambda _: frozenset((point,)))
    assert look_below(raw(tmp_path), PLAIN, may_enter=lambda _: False) == Look((), is_whole=False)
    assert look_below(raw(tmp_path), PLAIN, may_enter=lambda _: True) == entered
    monkeypatch.setattr(look, "mount_points", lambda _: frozenset())
    assert look_below(raw(tmp_path), PLAIN, may_enter=lambda _: False) == entered


def test_a_folder_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    assert found(tmp_path / "gone") == []
    assert found(cloned(tmp_path), ProjectKind.GIT) == []


def test_control_the_look_of_a_scan_leaves_out_hidden_and_deep_repositories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("near", "a/b/c/d/e/deep", ".hidden/dot"):
        fake_repository(tmp_path / name)
    assert found(tmp_path) == [".hidden/dot", "a/b/c/d/e/deep", "near"]
    monkeypatch.setattr(look, "_NO_LIMIT", DEFAULT_DEPTH)
    assert found(tmp_path) == [".hidden/dot", "near"]
    enters = look._Reach.below
    monkeypatch.setattr(
        look._Reach,
        "below",
        lambda reach, name: None if name.startswith(b".") else enters(reach, name),
    )
    assert found(tmp_path) == ["near"]
