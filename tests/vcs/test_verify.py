"""Roots are verified before each answer: cheaply if nothing changed, exactly otherwise."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from rootsd.core.inputs import ProjectGone, ProjectObserved, ProjectUnreachable, ProjectUnsafe
from rootsd.core.model import GitEntry, Identity, IncompleteReason, LapseReason
from rootsd.disk.identity import identify, identify_open_folder
from rootsd.disk.reader import OpenFolder
from rootsd.vcs import verify
from rootsd.vcs.verify import RootVerifier
from support.repositories import fake_repository, raw
from support.system_parts import folder_safety

Roots = dict[bytes, Identity]


@pytest.fixture
def verifier() -> RootVerifier:
    return RootVerifier(folder_safety())


@pytest.fixture
def all_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat recent changes as old ones."""
    monkeypatch.setattr(verify, "racy_cutoff_ns", lambda: time.time_ns() + 10**9)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return fake_repository(tmp_path / "above" / "one")


def _approved(*paths: Path) -> Roots:
    return {raw(path): identify(raw(path)) for path in paths}


@pytest.mark.usefixtures("all_settled")
def test_the_second_check_of_an_unchanged_root_is_only_an_lstat(
    verifier: RootVerifier, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = _approved(root)
    assert verifier.verify(roots) == []

    def never(path: bytes) -> Identity:
        raise AssertionError(f"identified {path!r} again")

    monkeypatch.setattr(verify, "identify_open_folder", never)
    assert verifier.verify(roots) == []
    (root / "new").touch()
    with pytest.raises(AssertionError, match="again"):
        verifier.verify(roots)


def test_a_root_that_changed_a_moment_ago_gets_the_full_check(
    verifier: RootVerifier, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = _approved(root)
    looks: list[bytes] = []

    def counted(folder: OpenFolder) -> Identity:
        looks.append(folder.path)
        return identify_open_folder(folder)

    monkeypatch.setattr(verify, "identify_open_folder", counted)
    for _ in range(3):
        assert verifier.verify(roots) == []
    assert looks == [raw(root)] * 3


def test_a_checkout_whose_git_folder_is_gone_or_a_file_is_reported(
    verifier: RootVerifier, root: Path
) -> None:
    roots = _approved(root)
    verifier.verify(roots)
    (root / ".git").rename(root / "kept")
    (seen,) = verifier.verify(roots)
    assert isinstance(seen, ProjectObserved)
    assert seen.identity is not None
    assert seen.identity.git is GitEntry.NONE
    (root / ".git").write_text(f"gitdir: {root}/kept\n")
    (seen,) = verifier.verify(roots)
    assert isinstance(seen, ProjectObserved)
    assert seen.identity is not None
    assert seen.identity.git is GitEntry.FILE


def _look_at_first(verifier: RootVerifier, roots: Mapping[bytes, Identity]) -> None:
    """A root with a `.git` file is sighted once, and then known as long as nothing changes."""
    (seen,) = verifier.verify(roots)
    assert isinstance(seen, ProjectObserved)
    assert seen.identity == roots[seen.path]
    assert verifier.verify(roots) == []


def _worktree(main: Path, tree: Path) -> Path:
    """Make `tree` a worktree of `main`; return its entry there."""
    fake_repository(main)
    tree.mkdir()
    entry = main / ".git" / "worktrees" / tree.name
    entry.mkdir(parents=True)
    (entry / "commondir").write_text("../..")
    (entry / "gitdir").write_text(f"{tree}/.git")
    (tree / ".git").write_text(f"gitdir: {entry}")
    return entry


def _link_elsewhere(entry: Path, _tree: Path) -> None:
    (entry / "gitdir").write_text("/somewhere/else/.git")


def _another_common_folder(entry: Path, _tree: Path) -> None:
    (entry / "commondir").write_text("../../..")


def _another_git_file(_entry: Path, tree: Path) -> None:
    text = (tree / ".git").read_text()
    (tree / "new").write_text(text)
    (tree / "new").rename(tree / ".git")


@pytest.mark.usefixtures("all_settled")
@pytest.mark.parametrize("change", [_link_elsewhere, _another_common_folder, _another_git_file])
def test_a_change_of_any_file_of_a_worktree_link_is_reported_at_the_next_answer(
    verifier: RootVerifier, tmp_path: Path, change: Callable[[Path, Path], None]
) -> None:
    tree = tmp_path / "tree"
    entry = _worktree(tmp_path / "main", tree)
    roots = _approved(tree)
    _look_at_first(verifier, roots)
    change(entry, tree)
    (seen,) = verifier.verify(roots)
    assert isinstance(seen, ProjectObserved)
    assert seen.main_checkout is None or seen.identity != roots[raw(tree)]


@pytest.mark.usefixtures("all_settled")
def test_a_link_on_the_way_to_the_git_directory_is_followed_again_for_each_answer(
    verifier: RootVerifier, tmp_path: Path
) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    _worktree(main, tree)
    main.rename(tmp_path / "moved")
    main.symlink_to("moved")
    roots = _approved(tree)
    _look_at_first(verifier, roots)
    assert not verifier.verify(roots)
    main.unlink()
    main.symlink_to("other")
    shutil.copytree(tmp_path / "moved", tmp_path / "other")
    (seen,) = verifier.verify(roots)
    assert isinstance(seen, ProjectObserved)
    assert seen.identity is not None
    assert not roots[raw(tree)].keeps_git(seen.identity)


@pytest.mark.usefixtures("all_settled")
def test_git_commands_in_a_worktree_cause_no_full_check(
    verifier: RootVerifier, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    entry = _worktree(tmp_path / "main", tree)
    roots = _approved(tree)
    _look_at_first(verifier, roots)
    (entry / "index").write_text("an index")
    assert verifier.verify(roots) == []


@pytest.mark.usefixtures("all_settled")
def test_a_rewritten_git_file_is_reported(verifier: RootVerifier, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("one", "two"):
        fake_repository(tmp_path / name)
    (tree / ".git").write_text(f"gitdir: {tmp_path}/one/.git\n")
    roots = _approved(tree)
    _look_at_first(verifier, roots)
    (tree / ".git").write_text(f"gitdir: {tmp_path}/two/.git\n")
    (seen,) = verifier.verify(roots)
    assert isinstance(seen, ProjectObserved)
    assert not roots[raw(tree)].keeps_git(identify(raw(tree)))


@pytest.mark.usefixtures("all_settled")
def test_a_worktree_without_a_link_back_is_reported_even_if_unchanged(
    verifier: RootVerifier, tmp_path: Path
) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    _worktree(main, tree)
    roots = _approved(tree)
    _look_at_first(verifier, roots)
    main.rename(tmp_path / "elsewhere")
    (seen,) = verifier.verify(roots)
    assert isinstance(seen, ProjectObserved)
    assert (seen.main_checkout, seen.incomplete) == (None, IncompleteReason.NO_GIT_DIR)
    assert seen.identity is not None
    _look_at_first(verifier, {raw(tree): seen.identity})
    (tmp_path / "elsewhere").rename(main)
    (back,) = verifier.verify({raw(tree): seen.identity})
    assert isinstance(back, ProjectObserved)
    assert (back.main_checkout, back.identity) == (raw(main), roots[raw(tree)])


def test_a_link_in_the_place_of_a_root_has_replaced_it(verifier: RootVerifier, root: Path) -> None:
    roots = _approved(root)
    verifier.verify(roots)
    root.rename(root.with_name("away"))
    root.symlink_to("away")
    assert verifier.verify(roots) == [ProjectGone(raw(root), LapseReason.REPLACED)]


def test_a_change_inside_a_root_is_a_new_observation(verifier: RootVerifier, root: Path) -> None:
    roots = _approved(root)
    verifier.verify(roots)
    (root / "new").touch()
    assert [type(seen) for seen in verifier.verify(roots)] == [ProjectObserved]
    assert verifier.verify(roots) == []


def test_a_replaced_root_is_reported_with_its_new_identity(
    verifier: RootVerifier, root: Path
) -> None:
    roots = _approved(root)
    verifier.verify(roots)
    shutil.rmtree(root)
    fake_repository(root)
    (seen,) = verifier.verify(roots)
    assert isinstance(seen, ProjectObserved)
    assert seen.identity == identify(raw(root))
    assert seen.identity != roots[raw(root)]


def test_a_root_swapped_by_renames_above_it_is_detected(
    verifier: RootVerifier, root: Path
) -> None:
    roots = _approved(root)
    verifier.verify(roots)
    root.parent.rename(root.parent.with_name("away"))
    fake_repository(root)
    (seen,) = verifier.verify(roots)
    assert isinstance(seen, ProjectObserved)
    assert not roots[raw(root)].same_as(identify(raw(root)))


def test_a_root_that_is_gone_or_out_of_reach_is_reported(
    verifier: RootVerifier, root: Path
) -> None:
    roots = _approved(root)
    verifier.verify(roots)
    shutil.rmtree(root)
    assert verifier.verify(roots) == [ProjectGone(raw(root))]
    shutil.rmtree(root.parent)
    assert verifier.verify(roots) == [ProjectUnreachable(raw(root))]


def test_a_link_above_that_leads_to_the_same_root_is_unsafe(
    verifier: RootVerifier, root: Path
) -> None:
    roots = _approved(root)
    verifier.verify(roots)
    root.parent.rename(root.parent.with_name("away"))
    root.parent.symlink_to("away")
    assert verifier.verify(roots) == [ProjectUnsafe(raw(root), LapseReason.RETARGETED)]


def test_an_ancestor_opened_to_all_exposes_its_roots_only(
    verifier: RootVerifier, root: Path, tmp_path: Path
) -> None:
    other = fake_repository(tmp_path / "other")
    roots = _approved(root, other)
    assert verifier.verify(roots) == []
    root.parent.chmod(0o777)
    assert verifier.verify(roots) == [ProjectUnsafe(raw(root), LapseReason.EXPOSED)]
    root.parent.chmod(0o755)
    assert verifier.verify(roots) == []


@pytest.mark.needs("root")
def test_another_owner_withholds_a_root_until_the_owner_is_back(
    verifier: RootVerifier, root: Path
) -> None:
    roots = _approved(root)
    assert verifier.verify(roots) == []
    os.chown(root, 12345, -1)
    assert verifier.verify(roots) == [ProjectUnsafe(raw(root), LapseReason.OTHER_OWNER)]
    os.chown(root, 0, -1)
    assert verifier.verify(roots) == []
    assert identify(raw(root)).same_as(roots[raw(root)])


def test_roots_that_are_no_longer_verified_are_forgotten(
    verifier: RootVerifier, root: Path, tmp_path: Path
) -> None:
    other = fake_repository(tmp_path / "other")
    verifier.verify(_approved(root, other))
    assert verifier.verify(_approved(other)) == []
    shutil.rmtree(root.parent)
    assert verifier.verify(_approved(other)) == []


@pytest.mark.usefixtures("all_settled")
def test_a_project_about_to_be_approved_is_verified_beside_the_roots(
    verifier: RootVerifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, other = (fake_repository(tmp_path / "above" / name) for name in ("one", "two"))
    verifier.verify(_approved(root))
    assert verifier.verify_more(_approved(other)) == []
    roots = _approved(root, other)
    # Both are known, so neither is checked in full.
    monkeypatch.setattr(verify, "identify_open_folder", None)
    assert verifier.verify(roots) == []


@pytest.mark.usefixtures("all_settled")
def test_verifying_one_root_checks_only_it_and_the_folders_above(
    verifier: RootVerifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, other = (fake_repository(tmp_path / above / "one") for above in ("a", "b"))
    roots = _approved(root, other)
    assert verifier.verify(roots) == []
    shutil.rmtree(other.parent)
    one = {raw(root): roots[raw(root)]}
    with monkeypatch.context() as patched:
        patched.setattr(verify, "identify_open_folder", None)  # neither has to be checked in full
        assert verifier.verify_more(one) == []
    root.parent.chmod(0o777)
    assert [type(reported) for reported in verifier.verify_more(one)] == [ProjectUnsafe]
    assert {reported.path for reported in verifier.verify(roots)} == roots.keys()
