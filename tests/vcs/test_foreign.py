"""How far along a repository of another tool than git is, by the files that the tool keeps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.core.model import ProjectKind
from rootsd.vcs.base import Stage
from rootsd.vcs.foreign import (
    bzr_stage,
    darcs_stage,
    fossil_stage,
    hg_stage,
    jj_stage,
    pijul_stage,
    svn_stage,
    tracked_files,
)
from support.repos import git, raw
from support.ways import Origins


@pytest.fixture
def origins(tmp_path: Path) -> Origins:
    return Origins(tmp_path / "origins", files=6)


def test_jj_goes_from_starting_to_quiet(tmp_path: Path) -> None:
    """From its documented layout: no registry that tests may use ships the program."""
    jj = tmp_path / ".jj"
    (jj / "repo" / "store").mkdir(parents=True)
    (jj / "working_copy").mkdir()
    (jj / "repo" / "store" / "type").write_text("git")
    assert jj_stage(raw(tmp_path)) is Stage.STARTING
    (jj / "working_copy" / "checkout").touch()
    assert jj_stage(raw(tmp_path)) is Stage.JJ
    (jj / "repo" / "store" / "git_target").write_text("../../../.git")
    git("init", tmp_path)
    git("config", "remote.origin.url", "file:///none", cwd=tmp_path)
    assert jj_stage(raw(tmp_path)) is Stage.CONNECTING
    (tmp_path / "file").touch()
    assert jj_stage(raw(tmp_path)) is Stage.REMOTE_ALONE
    (tmp_path / ".git" / "refs" / "remotes").mkdir()
    assert jj_stage(raw(tmp_path)) is Stage.JJ
    (tmp_path / ".git" / "objects" / "pack" / "pack_git2_1").touch()
    assert jj_stage(raw(tmp_path)) is Stage.FETCHING
    (jj / "repo" / "git_import_export.lock").touch()
    assert jj_stage(raw(tmp_path)) is Stage.STARTING


def test_a_second_jj_workspace_is_followed(tmp_path: Path) -> None:
    (tmp_path / "first" / "store").mkdir(parents=True)
    (tmp_path / "first" / "store" / "type").write_text("simple")
    second = tmp_path / "second" / ".jj"
    (second / "working_copy").mkdir(parents=True)
    (second / "working_copy" / "checkout").touch()
    assert jj_stage(raw(tmp_path / "second")) is Stage.STARTING
    (second / "repo").write_text("../../first")
    assert jj_stage(raw(tmp_path / "second")) is Stage.JJ


@pytest.mark.parametrize("marker", [".hg", ".sl"])
def test_hg_and_sapling_by_their_files(tmp_path: Path, marker: str) -> None:
    """Sapling from its documented layout, which is that of Mercurial."""
    data = tmp_path / marker
    (data / "store").mkdir(parents=True)
    assert hg_stage(raw(data)) is Stage.STARTING
    (data / "requires").touch()
    assert hg_stage(raw(data)) is Stage.HG_NO_PARENT
    (data / "dirstate").write_bytes(bytes(40))
    (data / "wlock").symlink_to("host:1")
    assert hg_stage(raw(data)) is Stage.CHECKOUT_LOCKED
    (data / "store" / "journal").touch()
    assert hg_stage(raw(data)) is Stage.FETCHING
    (data / "dirstate").write_bytes(b"\1" * 40)
    assert hg_stage(raw(data)) is Stage.IN_USE
    (data / "store" / "journal").unlink()
    (data / "wlock").unlink()
    assert hg_stage(raw(data)) is None


def _listed(path: Path, kind: ProjectKind) -> set[bytes]:
    return set(tracked_files(raw(path), kind))


FILES = {f"d{number}/f{number}".encode() for number in range(6)}


@pytest.mark.needs("hg")
def test_a_real_hg_clone(origins: Origins, tmp_path: Path) -> None:
    origins.run("hg", "clone", "-q", origins.hg, tmp_path / "one")
    assert hg_stage(raw(tmp_path / "one" / ".hg")) is None
    assert _listed(tmp_path / "one", ProjectKind.HG) == FILES
    origins.run("hg", "remove", "d3/f3", cwd=tmp_path / "one")
    assert _listed(tmp_path / "one", ProjectKind.HG) == FILES - {b"d3/f3"}


@pytest.mark.needs("svn")
def test_a_real_svn_checkout(origins: Origins, tmp_path: Path) -> None:
    one = tmp_path / "one"
    origins.run("svn", "checkout", "-q", origins.svn.as_uri(), one)
    assert svn_stage(raw(one / ".svn")) is None
    assert _listed(one, ProjectKind.SVN) == FILES
    (one / ".svn" / "wc.db-journal").write_text("under way")
    assert svn_stage(raw(one / ".svn")) is Stage.CHECKOUT_LOCKED
    (one / ".svn" / "wc.db-journal").unlink()
    (one / ".svn" / "wc.db").write_bytes(b"no database")
    assert svn_stage(raw(one / ".svn")) is Stage.OTHER
    (one / ".svn" / "wc.db").unlink()
    assert svn_stage(raw(one / ".svn")) is Stage.STARTING


@pytest.mark.needs("fossil")
def test_a_real_fossil_checkout(origins: Origins, tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.mkdir()
    assert fossil_stage(raw(one)) is Stage.STARTING
    origins.run("fossil", "open", origins.fossil, cwd=one)
    assert fossil_stage(raw(one)) is None
    assert _listed(one, ProjectKind.FOSSIL) == FILES
    (one / ".fslckout-journal").write_text("under way")
    assert fossil_stage(raw(one)) is Stage.CHECKOUT_LOCKED


@pytest.mark.needs("fossil")
def test_a_fossil_checkout_is_nothing_yet_between_its_database_and_its_files(
    origins: Origins, tmp_path: Path
) -> None:
    one = tmp_path / "one"
    one.mkdir()
    origins.run("fossil", "open", "--empty", origins.fossil, cwd=one)
    assert fossil_stage(raw(one)) is Stage.STARTING


@pytest.mark.needs("brz")
def test_real_branches_and_checkouts_of_breezy(origins: Origins, tmp_path: Path) -> None:
    for command in (["branch"], ["checkout", "--lightweight"]):
        one = tmp_path / command[0]
        origins.run("brz", *command, origins.bzr, one)
        assert bzr_stage(raw(one / ".bzr")) is None
    (one / ".bzr" / "checkout" / "lock" / "held").mkdir(parents=True)
    assert bzr_stage(raw(one / ".bzr")) is Stage.CHECKOUT_LOCKED
    (one / ".bzr" / "checkout" / "dirstate").unlink()
    assert bzr_stage(raw(one / ".bzr")) is Stage.CHECKOUT_LOCKED
    origins.run("brz", "init-shared-repository", tmp_path / "shared")
    assert bzr_stage(raw(tmp_path / "shared" / ".bzr")) is Stage.OTHER
    (tmp_path / "shared" / ".bzr" / "repository" / "upload" / "1.pack").touch()
    assert bzr_stage(raw(tmp_path / "shared" / ".bzr")) is Stage.FETCHING


@pytest.mark.needs("darcs")
def test_a_real_darcs_clone(origins: Origins, tmp_path: Path) -> None:
    one = tmp_path / "one"
    origins.run("darcs", "clone", origins.darcs, one)
    assert darcs_stage(raw(one / "_darcs")) is None
    assert _listed(one, ProjectKind.DARCS) == FILES
    (one / "_darcs" / "lock").touch()
    assert darcs_stage(raw(one / "_darcs")) is Stage.IN_USE
    (one / "_darcs" / "lock").unlink()
    for file in (one / "_darcs" / "pristine.hashed").iterdir():
        file.unlink()
    assert darcs_stage(raw(one / "_darcs")) is Stage.FETCHING
    assert _listed(one, ProjectKind.DARCS) == set(), "its list went since somebody looked"
    (tmp_path / "new").mkdir()
    origins.run("darcs", "init", cwd=tmp_path / "new")
    assert darcs_stage(raw(tmp_path / "new" / "_darcs")) in (Stage.OTHER, None)


@pytest.mark.needs("darcs")
def test_a_darcs_clone_killed_before_or_after_its_inventory(
    origins: Origins, tmp_path: Path
) -> None:
    """As traced: what `init` makes, the source, the inventory, each file under another name."""
    one, nothing, inventory = tmp_path / "one", tmp_path / "nothing", "_darcs/hashed_inventory"
    origins.run("darcs", "clone", origins.darcs, one)
    (one / "d3" / "f3").rename(one / "d3" / "f3-0")
    assert darcs_stage(raw(one / "_darcs")) is Stage.FETCHING
    (one / "d3" / "f3-0").unlink()
    assert darcs_stage(raw(one / "_darcs")) is None
    nothing.mkdir()
    origins.run("darcs", "init", cwd=nothing)
    origins.run("darcs", "clone", nothing, tmp_path / "cloned")
    assert darcs_stage(raw(tmp_path / "cloned" / "_darcs")) is None
    (nothing / "_darcs" / "prefs" / "defaultrepo").write_text("somewhere")
    later = (nothing / inventory).stat().st_mtime_ns + 1
    os.utime(nothing / "_darcs" / "prefs" / "defaultrepo", ns=(later, later))
    assert darcs_stage(raw(nothing / "_darcs")) is Stage.CONNECTING
    (nothing / "file").touch()
    assert darcs_stage(raw(nothing / "_darcs")) is Stage.REMOTE_ALONE


def test_a_darcs_tree_that_names_itself_or_files_elsewhere_ends(tmp_path: Path) -> None:
    data, name = tmp_path / "_darcs", "0" * 64
    (data / "pristine.hashed").mkdir(parents=True)
    (data / "format").touch()
    (data / "hashed_inventory").write_text(f"pristine:{name}\n")
    lines = ["directory:", "again", name, "directory:", "away", "../../format", "file:", "f", "x"]
    (data / "pristine.hashed" / name).write_text("\n".join(lines) + "\n")
    assert darcs_stage(raw(data)) is None
    (data / "hashed_inventory").unlink()
    os.mkfifo(data / "hashed_inventory")
    assert darcs_stage(raw(data)) is Stage.OTHER


def test_pijul_by_its_files(tmp_path: Path) -> None:
    """From its documented layout: no package ships the program."""
    (tmp_path / "pristine").mkdir()
    assert pijul_stage(raw(tmp_path)) is Stage.STARTING
    (tmp_path / "pristine" / "db").touch()
    assert pijul_stage(raw(tmp_path)) is Stage.OTHER
