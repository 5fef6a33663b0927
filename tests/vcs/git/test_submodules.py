"""A recursive clone is incomplete without one of its submodules."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rootsd.core.model import ProjectKind
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.git.submodules import has_interrupted_submodule, lacks_submodules
from support.creation_methods import Origins
from support.repositories import git, raw


def _lacks(path: Path) -> bool:
    with OpenProject(raw(path)) as look:
        return lacks_submodules(look, ProjectKind.GIT)


def _is_interrupted(path: Path) -> bool:
    with OpenProject(raw(path)) as look:
        return has_interrupted_submodule(look, ProjectKind.GIT)


@pytest.fixture(scope="module")
def origins(tmp_path_factory: pytest.TempPathFactory) -> Origins:
    return Origins(tmp_path_factory.mktemp("origins"), files=3)


def test_each_submodule_counts_even_a_nested_one(origins: Origins, tmp_path: Path) -> None:
    one = tmp_path / "one"
    git("clone", "--recurse-submodules", origins.super, one)
    assert not _lacks(one)
    for missing in ("libs/middle/libs/inner", "libs/middle"):
        shutil.move(one / missing, tmp_path / "kept")
        assert _lacks(one)
        shutil.move(tmp_path / "kept", one / missing)
        assert not _lacks(one)


def test_a_plain_clone_lacks_no_submodules(origins: Origins, tmp_path: Path) -> None:
    git("clone", origins.super, tmp_path / "one")
    assert not _lacks(tmp_path / "one")


def test_paths_that_lead_outside_are_not_followed(origins: Origins, tmp_path: Path) -> None:
    git("clone", "--recurse-submodules", origins.git, tmp_path / "one")
    lines = "".join(f'[submodule "{n}"]\n\tpath = ../../{n}\n' for n in range(1_000))
    (tmp_path / "one" / ".gitmodules").write_text(lines)
    assert not _lacks(tmp_path / "one")


@pytest.mark.parametrize("case", ["not selected", "deinitialized", "update = none", "deleted"])
def test_a_submodule_that_is_not_there_was_not_interrupted(
    origins: Origins, tmp_path: Path, case: str
) -> None:
    up, one = shutil.copytree(origins.super, tmp_path / "up"), tmp_path / "one"
    git("submodule", "add", origins.git, "libs/other", cwd=up)
    if case == "update = none":
        git("config", "-f", ".gitmodules", "submodule.libs/other.update", "none", cwd=up)
    git("commit", "-am", "two", cwd=up)
    if case == "deleted":
        git("config", "-f", ".gitmodules", "submodule.libs/other.url", tmp_path / "no", cwd=up)
        git("commit", "-am", "three", cwd=up)
    which = "--recurse-submodules" + ("=libs/middle" if case == "not selected" else "")
    subprocess.run(["git", "clone", which, up, one], check=False, capture_output=True)
    if case == "deinitialized":
        git("submodule", "deinit", "libs/other", cwd=one)
    assert (one / "libs" / "middle" / "libs" / "inner" / ".git").exists() or case == "deleted"
    assert not (one / "libs" / "other" / ".git").exists()
    assert _lacks(one)
    assert not _is_interrupted(one)


@pytest.mark.parametrize("phase", ["fetching", "checking out"])
def test_a_submodule_that_git_has_begun_to_clone_was_interrupted(
    origins: Origins, tmp_path: Path, phase: str
) -> None:
    one = tmp_path / "one"
    git("clone", "--recurse-submodules", origins.super, one)
    assert not _is_interrupted(one)
    data = one / ".git" / "modules" / "libs" / "middle"
    shutil.rmtree(one / "libs" / "middle")
    (one / "libs" / "middle").mkdir()
    if phase == "fetching":
        shutil.rmtree(data)
        git("init", "--bare", data)
        (data / "objects" / "pack" / "tmp_pack_1").touch()
    else:
        (one / "libs" / "middle" / ".git").write_text("gitdir: ../../.git/modules/libs/middle\n")
        (data / "index").rename(data / "index.lock")
    assert _is_interrupted(one)
