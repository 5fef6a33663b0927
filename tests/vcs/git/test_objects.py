"""Objects are found loose and packed, and a pack is complete if its checksum matches its index."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rootsd.disk.reader import OpenFolder
from rootsd.vcs.git.objects import are_packs_complete, has_all_objects, may_borrow_objects
from support.repositories import git, make_repository, raw
from support.unlistable_folders import forbid_opening


def _ids(repository: Path) -> list[bytes]:
    listed = subprocess.run(
        ["git", "rev-list", "--objects", "--all", "--no-object-names"],
        cwd=repository, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return [bytes.fromhex(line) for line in listed.split()]


def _git(repository: Path) -> OpenFolder:
    return OpenFolder(raw(repository / ".git"))


def test_loose_and_packed_objects_are_found(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "one", files=40)
    ids = _ids(repository)
    with _git(repository) as folder:
        assert has_all_objects(folder, ids)
    git("repack", "-a", "-d", cwd=repository)
    (repository / "new").write_text("new")
    git("add", ".", cwd=repository)
    git("commit", "-m", "two", cwd=repository)
    with _git(repository) as folder:
        assert has_all_objects(folder, _ids(repository))
        assert are_packs_complete(folder, 20)
        assert not has_all_objects(folder, [*ids, bytes(20)])
        assert not has_all_objects(folder, [b"\xff" * 20])


def test_an_invalid_pack_index_lists_no_objects(tmp_path: Path) -> None:
    pack = tmp_path / "objects" / "pack"
    pack.mkdir(parents=True)
    for content in (b"", b"\xfftOc\x00\x00\x00\x02", b"\xfftOc\x00\x00\x00\x02" + b"\xff" * 1024):
        (pack / "pack-1.idx").write_bytes(content)
        with OpenFolder(raw(tmp_path)) as folder:
            assert not has_all_objects(folder, [b"\x01" * 20])


def test_an_index_without_its_pack_does_not_fit(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "one")
    git("repack", "-a", "-d", cwd=repository)
    with _git(repository) as folder:
        assert are_packs_complete(folder, 20)
        next((repository / ".git" / "objects" / "pack").glob("*.pack")).unlink()
        assert not are_packs_complete(folder, 20)


def test_borrowed_objects_are_elsewhere(tmp_path: Path) -> None:
    make_repository(tmp_path / "one")
    git("clone", "--shared", tmp_path / "one", tmp_path / "two")
    with _git(tmp_path / "one") as one, _git(tmp_path / "two") as two:
        assert may_borrow_objects(two)
        assert not may_borrow_objects(one)


def test_an_object_folder_that_cannot_be_listed_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = make_repository(tmp_path / "one")
    with _git(repository) as folder:
        forbid_opening(monkeypatch, lambda name: len(name) == 2)
        assert has_all_objects(folder, _ids(repository))
        assert not has_all_objects(folder, [*_ids(repository), bytes(20)])
