"""A recursive clone is incomplete without one of its submodules."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rootsd.core.model import ProjectKind
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.git.submodules import lacks_submodules
from support.creation_methods import Origins
from support.repositories import git, raw


def _lacks(path: Path) -> bool:
    with OpenProject(raw(path)) as look:
        return lacks_submodules(look, ProjectKind.GIT)


@pytest.fixture
def origins(tmp_path: Path) -> Origins:
    return Origins(tmp_path / "origins", files=3)


@pytest.mark.parametrize("missing", ["libs/middle", "libs/middle/libs/inner"])
def test_each_submodule_counts_even_a_nested_one(
    origins: Origins, tmp_path: Path, missing: str
) -> None:
    git("clone", "--recurse-submodules", origins.super, tmp_path / "one")
    assert not _lacks(tmp_path / "one")
    shutil.rmtree(tmp_path / "one" / missing)
    assert _lacks(tmp_path / "one")


def test_a_plain_clone_lacks_no_submodules(origins: Origins, tmp_path: Path) -> None:
    git("clone", origins.super, tmp_path / "one")
    assert not _lacks(tmp_path / "one")


def test_paths_that_lead_outside_are_not_followed(origins: Origins, tmp_path: Path) -> None:
    git("clone", "--recurse-submodules", origins.git, tmp_path / "one")
    lines = "".join(f'[submodule "{n}"]\n\tpath = ../../{n}\n' for n in range(1_000))
    (tmp_path / "one" / ".gitmodules").write_text(lines)
    assert not _lacks(tmp_path / "one")
