"""A copy of a repository is whole when everything that its index names is there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rootsd.host.copies import copied_whole
from rootsd.host.gitdir import locate, locate_bare
from support.repos import git, make_repository, raw


def _whole(path: Path) -> bool:
    place = locate(raw(path))
    assert place is not None
    return copied_whole(place)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A clone over the wire: its objects are in a pack."""
    make_repository(tmp_path / "up", files=30)
    git("clone", f"file://{tmp_path / 'up'}", tmp_path / "one")
    return tmp_path / "one"


def test_a_repository_is_whole(repository: Path) -> None:
    assert _whole(repository)


def test_a_missing_file_of_the_checkout(repository: Path) -> None:
    (repository / "d3" / "f3").unlink()
    assert not _whole(repository)


@pytest.mark.parametrize("ending", ["pack", "idx"])
def test_a_pack_that_is_cut_off(repository: Path, ending: str) -> None:
    pack = next((repository / ".git" / "objects" / "pack").glob(f"*.{ending}"))
    data = pack.read_bytes()
    pack.chmod(0o644)
    pack.write_bytes(data[:-100])
    assert not _whole(repository)


@pytest.mark.parametrize("left", [0, 10, 100, -1])
def test_an_index_that_is_cut_off(repository: Path, left: int) -> None:
    index = repository / ".git" / "index"
    index.write_bytes(index.read_bytes()[:left])
    assert not _whole(repository)


def test_an_index_without_a_checksum_is_read(repository: Path) -> None:
    index = repository / ".git" / "index"
    index.write_bytes(index.read_bytes()[:-20] + bytes(20))
    assert _whole(repository)
    (repository / "d3" / "f3").unlink()
    assert not _whole(repository)


def test_an_index_that_counts_more_than_it_holds_does_not_hang(repository: Path) -> None:
    index = repository / ".git" / "index"
    data = index.read_bytes()
    index.write_bytes(data[:8] + b"\xff\xff\xff\xff" + data[12:-20] + bytes(20))
    assert not _whole(repository)


def test_what_a_sparse_checkout_leaves_out_need_not_be_there(repository: Path) -> None:
    git("sparse-checkout", "set", "--no-cone", "/d1/", cwd=repository)
    assert not (repository / "d3").exists()
    assert _whole(repository)


def test_a_submodule_need_not_be_there(repository: Path, tmp_path: Path) -> None:
    git("submodule", "add", tmp_path / "up", "libs", cwd=repository)
    shutil.rmtree(repository / "libs")
    assert _whole(repository)


def test_an_index_of_version_4_is_taken_for_whole(repository: Path) -> None:
    git("update-index", "--index-version", "4", cwd=repository)
    (repository / "d3" / "f3").unlink()
    assert _whole(repository)


def test_a_bare_repository_has_only_packs(repository: Path, tmp_path: Path) -> None:
    git("clone", "--bare", f"file://{repository}", tmp_path / "bare.git")
    place = locate_bare(raw(tmp_path / "bare.git"))
    assert copied_whole(place)
    next((tmp_path / "bare.git" / "objects" / "pack").glob("*.idx")).unlink()
    assert not copied_whole(place)
