"""The stage of a checkout of each VCS other than git, by the files that the program keeps."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from rootsd.core.model import ProjectKind
from rootsd.vcs.bzr import Bazaar
from rootsd.vcs.darcs import Darcs
from rootsd.vcs.fossil import Fossil
from rootsd.vcs.hg import Mercurial
from rootsd.vcs.jj import Jujutsu
from rootsd.vcs.origin import read_branch, read_origin
from rootsd.vcs.pijul import Pijul
from rootsd.vcs.registry import ALL_KINDS, vcs_of
from rootsd.vcs.sapling import Sapling
from rootsd.vcs.stages import Stage
from rootsd.vcs.svn import Subversion
from support.creation_methods import Origins
from support.repositories import git, raw


@pytest.fixture(scope="module")
def origins(tmp_path_factory: pytest.TempPathFactory) -> Origins:
    return Origins(tmp_path_factory.mktemp("origins"), files=6)


def test_jj_by_its_files(tmp_path: Path) -> None:
    """The files are from the documented layout, because no package ships the program."""
    jj = tmp_path / ".jj"
    (jj / "repo" / "store").mkdir(parents=True)
    (jj / "working_copy").mkdir()
    (jj / "repo" / "store" / "type").write_text("git")
    assert Jujutsu().stage(raw(tmp_path)) is Stage.STARTING
    (jj / "working_copy" / "checkout").touch()
    assert Jujutsu().stage(raw(tmp_path)) is Stage.JJ
    (jj / "repo" / "store" / "git_target").write_text("../../../.git")
    git("init", tmp_path)
    git("config", "remote.origin.url", "file:///none", cwd=tmp_path)
    assert Jujutsu().stage(raw(tmp_path)) is Stage.CONNECTING
    (tmp_path / "file").touch()
    assert Jujutsu().stage(raw(tmp_path)) is Stage.REMOTE_ALONE
    (tmp_path / ".git" / "refs" / "remotes").mkdir()
    assert Jujutsu().stage(raw(tmp_path)) is Stage.JJ
    (tmp_path / ".git" / "objects" / "pack" / "pack_git2_1").touch()
    assert Jujutsu().stage(raw(tmp_path)) is Stage.FETCHING
    (jj / "repo" / "git_import_export.lock").touch()
    assert Jujutsu().stage(raw(tmp_path)) is Stage.STARTING


def test_a_second_jj_workspace_is_followed(tmp_path: Path) -> None:
    (tmp_path / "first" / "store").mkdir(parents=True)
    (tmp_path / "first" / "store" / "type").write_text("simple")
    second = tmp_path / "second" / ".jj"
    (second / "working_copy").mkdir(parents=True)
    (second / "working_copy" / "checkout").touch()
    assert Jujutsu().stage(raw(tmp_path / "second")) is Stage.STARTING
    (second / "repo").write_text("../../first")
    assert Jujutsu().stage(raw(tmp_path / "second")) is Stage.JJ
    (second / "repo").unlink()
    (second / "repo").symlink_to("../../first")
    assert Jujutsu().stage(raw(tmp_path / "second")) is Stage.JJ


@pytest.mark.parametrize("vcs", [Mercurial(), Sapling()])
def test_hg_and_sapling_by_their_files(tmp_path: Path, vcs: Mercurial | Sapling) -> None:
    """Sapling by its documented layout, which is that of Mercurial."""
    data = tmp_path / os.fsdecode(vcs.kind.markers[0])
    (data / "store").mkdir(parents=True)
    assert vcs.stage(raw(tmp_path)) is Stage.STARTING
    (data / "requires").touch()
    assert vcs.stage(raw(tmp_path)) is Stage.HG_NO_PARENT
    (data / "dirstate").write_bytes(bytes(40))
    (data / "wlock").symlink_to("host:1")
    assert vcs.stage(raw(tmp_path)) is Stage.CHECKOUT_LOCKED
    (data / "store" / "journal").touch()
    assert vcs.stage(raw(tmp_path)) is Stage.FETCHING
    (data / "dirstate").write_bytes(b"\1" * 40)
    assert vcs.stage(raw(tmp_path)) is Stage.IN_USE
    (data / "store" / "journal").unlink()
    (data / "wlock").unlink()
    assert vcs.stage(raw(tmp_path)) is None


def _is_followed_to(data: Path, vcs: Mercurial | Subversion, one: Path) -> None:
    """Check that a link in the place of the marker is followed."""
    marker = one / os.fsdecode(vcs.kind.markers[0])
    marker.rename(data)
    marker.symlink_to(data)
    assert vcs.stage(raw(one)) is None
    assert vcs.origin(raw(one)) is None  # nothing that lies behind a link is shown
    marker.unlink()
    marker.symlink_to("none")
    assert vcs.stage(raw(one)) is Stage.STARTING
    marker.unlink()
    data.rename(marker)


@pytest.mark.needs("hg")
def test_a_real_hg_clone(origins: Origins, tmp_path: Path) -> None:
    one = tmp_path / "one"
    origins.run("hg", "clone", "-q", origins.hg, one)
    assert Mercurial().stage(raw(one)) is None
    assert read_origin(raw(one), ProjectKind.HG) == str(origins.hg)
    assert read_branch(raw(one), ProjectKind.HG) == "default"
    _is_followed_to(tmp_path / "data", Mercurial(), one)


@pytest.mark.needs("svn")
def test_a_real_svn_checkout(origins: Origins, tmp_path: Path) -> None:
    one = tmp_path / "one"
    origins.run("svn", "checkout", "-q", f"{origins.svn.as_uri()}/d1", one)
    assert Subversion().stage(raw(one)) is None
    assert read_origin(raw(one), ProjectKind.SVN) == f"{origins.svn.as_uri()}/d1"
    assert read_branch(raw(one), ProjectKind.SVN) is None
    _is_followed_to(tmp_path / "data", Subversion(), one)
    (one / ".svn" / "wc.db-journal").write_text("under way")
    assert Subversion().stage(raw(one)) is Stage.CHECKOUT_LOCKED
    (one / ".svn" / "wc.db-journal").unlink()
    (one / ".svn" / "wc.db").write_bytes(b"no database")
    assert Subversion().stage(raw(one)) is Stage.OTHER
    (one / ".svn" / "wc.db").unlink()
    assert Subversion().stage(raw(one)) is Stage.STARTING


@pytest.mark.needs("fossil")
def test_a_real_fossil_checkout(origins: Origins, tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.mkdir()
    assert Fossil().stage(raw(one)) is Stage.STARTING
    origins.run("fossil", "open", origins.fossil, cwd=one)
    assert Fossil().stage(raw(one)) is None
    (one / ".fslckout-journal").write_text("under way")
    assert Fossil().stage(raw(one)) is Stage.CHECKOUT_LOCKED


@pytest.mark.needs("fossil")
def test_a_fossil_checkout_may_be_empty(origins: Origins, tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.mkdir()
    origins.run("fossil", "open", "--empty", origins.fossil, cwd=one)
    assert Fossil().stage(raw(one)) is Stage.OTHER
    (one / ".fslckout-journal").write_text("under way")
    assert Fossil().stage(raw(one)) is Stage.CHECKOUT_LOCKED


@pytest.mark.needs("hg")
@pytest.mark.parametrize("options", [[], ["--relative"]])
def test_an_hg_share_has_its_history_elsewhere(
    origins: Origins, tmp_path: Path, options: list[str]
) -> None:
    main, one = shutil.copytree(origins.hg, tmp_path / "main"), tmp_path / "one"
    origins.run("hg", "--config", "extensions.share=", "share", *options, main, one)
    assert not (one / ".hg" / "store").exists()
    assert Mercurial().stage(raw(one)) is None
    (main / ".hg" / "store" / "journal").touch()
    assert Mercurial().stage(raw(one)) is Stage.IN_USE
    shutil.rmtree(main)
    assert Mercurial().stage(raw(one)) is Stage.STARTING


@pytest.mark.needs("hg")
def test_an_hg_repository_of_the_first_format_has_no_store_folder(
    origins: Origins, tmp_path: Path
) -> None:
    origins.run("hg", "--config", "format.usestore=0", "init", tmp_path / "one")
    assert not (tmp_path / "one" / ".hg" / "store").exists()
    (tmp_path / "one" / "file").touch()
    for command in (["add", "file"], ["commit", "-m", "one"]):
        origins.run("hg", *command, cwd=tmp_path / "one")
    assert Mercurial().stage(raw(tmp_path / "one")) is None


def test_an_svn_checkout_before_1_7_by_its_files(tmp_path: Path) -> None:
    """The files are from the documented layout, because no package ships such an old program."""
    data = tmp_path / ".svn"
    data.mkdir()
    assert Subversion().stage(raw(tmp_path)) is Stage.STARTING
    url = "https://svn.example.org/repo/trunk"
    fields = ["", "dir", "7", url, "https://svn.example.org/repo", *[""] * 19]
    entry = "\n".join(["10", *fields, "", "5ba1f0c3", "\x0c", "main.c", "file", "\x0c", ""])
    (data / "entries").write_text(entry)
    assert Subversion().stage(raw(tmp_path)) is None
    assert Subversion().origin(raw(tmp_path)) == url.encode()
    (data / "lock").touch()
    assert Subversion().stage(raw(tmp_path)) is Stage.CHECKOUT_LOCKED
    (data / "lock").unlink()
    cut = "\n".join(["10", *fields, "incomplete", "5ba1f0c3", "\x0c", ""])
    (data / "entries").write_text(cut)
    assert Subversion().stage(raw(tmp_path)) is Stage.CHECKOUT_LOCKED
    (data / "entries").write_text("12\n")  # as svn since 1.7 begins
    assert Subversion().stage(raw(tmp_path)) is Stage.STARTING


@pytest.mark.needs("brz")
def test_real_branches_and_checkouts_of_breezy(origins: Origins, tmp_path: Path) -> None:
    for command in (["branch"], ["checkout", "--lightweight"]):
        one = tmp_path / command[0]
        origins.run("brz", *command, origins.bzr, one)
        assert Bazaar().stage(raw(one)) is None
    branch = tmp_path / "branch"
    expected = f"{os.path.relpath(origins.bzr, branch)}/"
    assert read_origin(raw(branch), ProjectKind.BZR) == expected
    (one / ".bzr" / "checkout" / "lock" / "held").mkdir(parents=True)
    assert Bazaar().stage(raw(one)) is Stage.CHECKOUT_LOCKED
    (one / ".bzr" / "checkout" / "dirstate").unlink()
    assert Bazaar().stage(raw(one)) is Stage.CHECKOUT_LOCKED
    origins.run("brz", "init-shared-repository", tmp_path / "shared")
    assert Bazaar().stage(raw(tmp_path / "shared")) is Stage.OTHER
    (tmp_path / "shared" / ".bzr" / "repository" / "upload" / "1.pack").touch()
    assert Bazaar().stage(raw(tmp_path / "shared")) is Stage.FETCHING


@pytest.mark.needs("darcs")
def test_a_real_darcs_clone(origins: Origins, tmp_path: Path) -> None:
    one = tmp_path / "one"
    origins.run("darcs", "clone", origins.darcs, one)
    assert Darcs().stage(raw(one)) is None
    assert read_origin(raw(one), ProjectKind.DARCS) == str(origins.darcs)
    (one / "_darcs" / "lock").touch()
    assert Darcs().stage(raw(one)) is Stage.IN_USE
    (one / "_darcs" / "lock").unlink()
    (tmp_path / "new").mkdir()
    origins.run("darcs", "init", cwd=tmp_path / "new")
    assert Darcs().stage(raw(tmp_path / "new")) in (Stage.OTHER, None)


@pytest.mark.needs("darcs")
def test_a_darcs_clone_killed_before_or_after_its_inventory(
    origins: Origins, tmp_path: Path
) -> None:
    """The order is that of a trace: the files of `init`, the source, then the inventory."""
    one, nothing, inventory = tmp_path / "one", tmp_path / "nothing", "_darcs/hashed_inventory"
    origins.run("darcs", "clone", origins.darcs, one)
    nothing.mkdir()
    origins.run("darcs", "init", cwd=nothing)
    origins.run("darcs", "clone", nothing, tmp_path / "cloned")
    assert Darcs().stage(raw(tmp_path / "cloned")) is None
    (nothing / "_darcs" / "prefs" / "defaultrepo").write_text("somewhere")
    later = (nothing / inventory).stat().st_mtime_ns + 1
    os.utime(nothing / "_darcs" / "prefs" / "defaultrepo", ns=(later, later))
    assert Darcs().stage(raw(nothing)) is Stage.CONNECTING
    (nothing / "file").touch()
    assert Darcs().stage(raw(nothing)) is Stage.REMOTE_ALONE


def test_a_darcs_inventory_that_is_a_fifo_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "_darcs").mkdir()
    (tmp_path / "_darcs" / "format").touch()
    os.mkfifo(tmp_path / "_darcs" / "hashed_inventory")
    assert Darcs().stage(raw(tmp_path)) is Stage.OTHER


def test_pijul_by_its_files(tmp_path: Path) -> None:
    """By its documented layout: no package ships the program."""
    (tmp_path / ".pijul" / "pristine").mkdir(parents=True)
    assert Pijul().stage(raw(tmp_path)) is Stage.STARTING
    (tmp_path / ".pijul" / "pristine" / "db").touch()
    assert Pijul().stage(raw(tmp_path)) is Stage.OTHER


def test_every_kind_of_repository_is_registered_once() -> None:
    registered = [vcs.kind for vcs in ALL_KINDS]
    assert len(registered) == len(set(registered))
    others = {kind for kind in ProjectKind if kind.is_tree}
    assert set(ProjectKind) - set(registered) == {ProjectKind.PROJECT, ProjectKind.URI, *others}
    assert vcs_of(ProjectKind.PROJECT) is None
