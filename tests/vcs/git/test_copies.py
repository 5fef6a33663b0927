"""A copy of a git repository is complete when everything that it names is there."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from rootsd.core.model import IncompleteReason, ProjectKind
from rootsd.disk.reader import OpenFolder
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.git.copies import interrupted_copy, is_complete_copy, missing_content
from support.creation_methods import Origins
from support.repositories import git, make_repository, raw
from support.unlistable_folders import forbid_opening

CUT, PARTLY = IncompleteReason.INTERRUPTED, IncompleteReason.NOT_CHECKED_OUT


def _lacks(path: Path, kind: ProjectKind = ProjectKind.GIT) -> IncompleteReason | None:
    with OpenProject(raw(path)) as look:
        return missing_content(look, kind)


def _broken_off(path: Path, kind: ProjectKind) -> IncompleteReason | None:
    with OpenProject(raw(path)) as look:
        return interrupted_copy(look, kind)


def _is_whole(copy: Path) -> bool:
    with OpenProject(raw(copy)) as look:
        return is_complete_copy(look, ProjectKind.GIT)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A clone over the wire: its objects are in a pack."""
    make_repository(tmp_path / "up", files=30)
    git("clone", f"file://{tmp_path / 'up'}", tmp_path / "one")
    return tmp_path / "one"


def test_a_repository_is_complete_unless_a_file_is_missing(repository: Path) -> None:
    assert _lacks(repository) is None
    (repository / "d3" / "f3").unlink()
    assert _lacks(repository) is PARTLY


def test_a_truncated_file_is_missing_content_if_it_is_the_newest(repository: Path) -> None:
    (repository / "d2" / "f2").write_text("edited\n")
    (repository / "d3" / "f3").write_text((repository / "d3" / "f3").read_text())
    assert _lacks(repository) is None
    (repository / "d4" / "f4").write_text("half")
    assert _lacks(repository) is None
    (repository / "d4" / "f4").unlink()
    (repository / "d4" / "f4").write_text("half")
    assert _lacks(repository) is PARTLY


@pytest.mark.parametrize("ending", ["pack", "idx"])
def test_a_truncated_pack_is_incomplete(repository: Path, ending: str) -> None:
    pack = next((repository / ".git" / "objects" / "pack").glob(f"*.{ending}"))
    data = pack.read_bytes()
    pack.chmod(0o644)
    pack.write_bytes(data[:-100])
    assert _lacks(repository) is CUT


@pytest.mark.parametrize("left", [0, 10, 100, -1])
def test_a_truncated_index_is_incomplete(repository: Path, left: int) -> None:
    index = repository / ".git" / "index"
    index.write_bytes(index.read_bytes()[:left])
    assert _lacks(repository) is CUT


def test_a_missing_object_makes_a_repository_incomplete(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "one", files=3)
    assert _lacks(repository) is None
    index = (repository / ".git" / "index").read_bytes()
    name = index[12 + 40 : 12 + 60].hex()
    (repository / ".git" / "objects" / name[:2] / name[2:]).unlink()
    assert _lacks(repository) is CUT


def test_borrowed_and_promised_objects_may_be_elsewhere(repository: Path, tmp_path: Path) -> None:
    for name in ("borrowing", "promised"):
        git("clone", "--shared", repository, tmp_path / name)
        assert _lacks(tmp_path / name) is None
    alternates = tmp_path / "promised" / ".git" / "objects" / "info" / "alternates"
    alternates.unlink()
    assert _lacks(tmp_path / "promised") is CUT
    pack = next((repository / ".git" / "objects" / "pack").glob("*.pack"))
    for ending in (".pack", ".idx"):
        shutil.copy(pack.with_suffix(ending), tmp_path / "promised" / ".git" / "objects" / "pack")
    promisor = tmp_path / "promised" / ".git" / "objects" / "pack" / f"{pack.stem}.promisor"
    promisor.touch()
    assert _lacks(tmp_path / "promised") is None


def test_files_outside_a_sparse_checkout_may_be_absent(repository: Path) -> None:
    git("sparse-checkout", "set", "--no-cone", "/d1/", cwd=repository)
    assert not (repository / "d3").exists()
    assert _lacks(repository) is None


def test_a_submodule_may_be_absent(repository: Path, tmp_path: Path) -> None:
    git("submodule", "add", tmp_path / "up", "libs", cwd=repository)
    shutil.rmtree(repository / "libs")
    assert _lacks(repository) is None


def test_a_bare_repository_has_only_packs(repository: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    git("clone", "--bare", f"file://{repository}", bare)
    assert _lacks(bare, ProjectKind.GIT_BARE) is None
    next((bare / "objects" / "pack").glob("*.idx")).unlink()
    assert _lacks(bare, ProjectKind.GIT_BARE) is CUT


def test_a_repository_with_sha256_ids_is_complete(tmp_path: Path) -> None:
    origins = Origins(tmp_path / "origins", files=5)
    git("clone", origins.sha256.as_uri(), tmp_path / "one")
    assert _lacks(tmp_path / "one") is None
    (tmp_path / "one" / "d3" / "f3").unlink()
    assert _lacks(tmp_path / "one") is PARTLY


def test_a_folder_without_a_repository_is_incomplete(tmp_path: Path) -> None:
    assert _lacks(tmp_path) is CUT


def _copied(repository: Path, *command: str) -> Path:
    to = repository.with_name("copy")
    subprocess.run([*command, repository, to], check=True)
    return to


def _cut_off(copy: Path) -> None:
    """Remove the files that were copied last, as if the copy had ended before."""
    files = sorted(copy.glob("d*/f*"), key=lambda file: (file.stat().st_ctime_ns, file))
    for file in files[-4:]:
        file.unlink()
    os.utime(copy)  # `cp -a` sets the time back as the last thing


@pytest.mark.parametrize("command", [("cp", "-r"), ("cp", "-a")])
def test_a_copy_that_lacks_its_last_files_was_interrupted(
    repository: Path, command: tuple[str]
) -> None:
    copy = _copied(repository, *command)
    _cut_off(copy)
    assert _broken_off(copy, ProjectKind.GIT) is PARTLY
    git("reset", "-q", cwd=copy)
    assert _broken_off(copy, ProjectKind.GIT) is None


@pytest.mark.needs("zip")
@pytest.mark.parametrize("program", ["cp", "zip", "random order"])
@pytest.mark.parametrize("deleted", ["d3/f3", "d3", "file"])
def test_a_copy_of_a_checkout_with_deleted_files_is_complete(
    repository: Path, program: str, deleted: str
) -> None:
    if deleted == "d3":
        shutil.rmtree(repository / "d3")
        (repository / "d3").mkdir()
        (repository / "d3" / "new").touch()
        git("add", "d3/new", cwd=repository)
    elif deleted == "file":
        (repository / "file").touch()
        git("add", "file", cwd=repository)
        (repository / "file").unlink()
    else:
        (repository / deleted).unlink()
    copy = repository.with_name("copy")
    match program:
        case "cp":
            _copied(repository, "cp", "-r")
        case "zip":
            archive = repository.with_name("x.zip")
            subprocess.run(["zip", "-qr", archive, "."], cwd=repository, check=True)
            subprocess.run(["unzip", "-q", archive, "-d", copy], check=True)
        case _:
            _copied_in_random_order(repository, copy)
    newest = copy / "d5" / "f5"
    if deleted == "d3":  # a single missing file needs no such sign
        newest.write_bytes(newest.read_bytes())
    assert _broken_off(copy, ProjectKind.GIT) is None


def _copied_in_random_order(repository: Path, copy: Path) -> None:
    """Copy file by file, with the old times, as Syncthing does."""
    files = [file for file in repository.rglob("*") if file.is_file()]
    random.Random(5).shuffle(files)  # noqa: S311 - the same order in each run
    for file in files:
        to = copy / file.relative_to(repository)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, to)


def test_a_copy_by_hard_links_is_recognized_as_a_copy(repository: Path) -> None:
    copy = _copied(repository, "cp", "-al")
    _cut_off(copy)
    assert _broken_off(copy, ProjectKind.GIT) is PARTLY


def test_a_finished_copy_was_not_interrupted_even_without_some_files(repository: Path) -> None:
    (repository / "d3" / "f3").unlink()
    assert _broken_off(repository, ProjectKind.GIT) is None
    copy = _copied(repository, "cp", "-a")
    assert _is_whole(copy)
    assert _broken_off(copy, ProjectKind.GIT) is None
    _cut_off(copy)
    shutil.copy2(copy / ".git" / "index", copy / ".git" / "again")
    (copy / ".git" / "again").rename(copy / ".git" / "index")  # after the folder, as by rsync
    assert _broken_off(copy, ProjectKind.GIT) is PARTLY


def test_a_checkout_was_not_interrupted_even_without_some_files(repository: Path) -> None:
    for file in sorted(repository.glob("d*/f*"))[1:]:
        file.unlink()
    (left,) = repository.glob("d*/f*")
    for change in (lambda: left.chmod(0o600), lambda: left.write_text("edited")):
        change()
        assert _broken_off(repository, ProjectKind.GIT) is None
    left.unlink()
    assert _broken_off(repository, ProjectKind.GIT) is None


def test_a_copy_without_objects_was_interrupted_even_with_all_files(repository: Path) -> None:
    copy = _copied(repository, "cp", "-r")
    next((copy / ".git" / "objects" / "pack").glob("*.pack")).unlink()
    assert _broken_off(copy, ProjectKind.GIT) is CUT
    bare = repository.with_name("bare.git")
    git("clone", "--bare", f"file://{repository}", bare)
    assert _broken_off(bare, ProjectKind.GIT_BARE) is None
    next((bare / "objects" / "pack").glob("*.idx")).unlink()
    assert _broken_off(bare, ProjectKind.GIT_BARE) is CUT


def test_without_birth_times_a_copy_counts_as_complete(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = _copied(repository, "cp", "-r")
    _cut_off(copy)
    monkeypatch.setattr(OpenFolder, "born_ns", lambda _folder, _name: None)
    assert _broken_off(copy, ProjectKind.GIT) is None


def test_a_checkout_folder_that_cannot_be_listed_is_searched(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_opening(monkeypatch, lambda name: name.startswith(b"d"))
    assert _lacks(repository) is None
    (repository / "d3" / "f3").unlink()
    assert _lacks(repository) is PARTLY
