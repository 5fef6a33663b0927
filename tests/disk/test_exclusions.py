"""Which folders a walk leaves out by their names, and which it finds in spite of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from rootsd.core.model import NestedPolicy, Parent, ProjectKind
from rootsd.disk.markers import CACHE_SIGNATURE, WalkRules
from rootsd.disk.walk import Walker, WalkFolder
from support.repositories import fake_repository, raw

GIT = ProjectKind.GIT


def _found(top: Path, rules: WalkRules | None = None) -> dict[str, ProjectKind]:
    rules = rules or WalkRules.of(Parent(raw(top)))
    scan = Walker(rules).walk(WalkFolder(raw(top), rules.depth, top=True))
    return {
        os.path.relpath(os.fsdecode(listing.place.path), top): listing.kind
        for listing in scan.listings
        if listing.kind is not None
    }


def _project(path: Path, file: str = "package.json") -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / file).touch()
    return path


def test_a_repository_is_found_whatever_its_name(tmp_path: Path) -> None:
    _project(tmp_path / "tool")
    names = ("env", "venv", "Pods", "node_modules", "_build", ".github", ".tmux", ".dotfiles")
    paths = {f"{inside}{name}" for name in names for inside in ("", "group/", "tool/")}
    for path in paths:
        fake_repository(tmp_path / path)
    found = _found(tmp_path)
    assert found.pop("tool") is ProjectKind.PROJECT
    assert found == dict.fromkeys(paths, GIT)


def test_a_checkout_of_another_kind_is_found_whatever_its_name(tmp_path: Path) -> None:
    markers = (".jj", ".hg", ".svn", "_darcs", ".fslckout")
    for marker in markers:
        (tmp_path / marker[1:] / "env" / marker).mkdir(parents=True)
    assert set(_found(tmp_path)) == {f"{marker[1:]}/env" for marker in markers}


def test_what_programs_clone_and_what_was_thrown_away_is_not_found(tmp_path: Path) -> None:
    clones = (
        "node_modules/x", "Pods/x", ".cache/pre-commit/repo1", ".cargo/git/checkouts/a-1/b",
        ".tox/py/src/x", "venv/src/x", "cmake-build-debug/_deps/fmt-src", "out/_deps/fmt-src",
        ".Trash-1000/files/x", ".Trash/x", "$RECYCLE.BIN/S-1/$R1", "@eaDir/x", "#snapshot/x",
        "#recycle/x", "lost+found/#12", ".snapshots/1/x", ".zfs/snapshot/x", "_build/default/lib",
    )  # fmt: skip
    for clone in (*clones, "positive/control"):
        fake_repository(tmp_path / clone)
    assert set(_found(tmp_path)) == {"positive/control"}


def test_not_even_a_repository_is_found_in_the_place_of_a_recycle_bin_or_a_skipped_folder(
    tmp_path: Path,
) -> None:
    bins = (".Trash-1000", ".Trash", "$RECYCLE.BIN", "#recycle", ".zfs")
    for name in (*bins, "old", "tmp-1", ".env", "control"):
        fake_repository(tmp_path / name)
    rules = WalkRules.of(Parent(raw(tmp_path), skip=(b"o?d", b"tmp-*", b".env")))
    assert set(_found(tmp_path, rules)) == {"control"}


def test_a_project_file_in_the_parent_hides_nothing_beside_it(tmp_path: Path) -> None:
    names = ("build", "dist", "target", "vendor")
    for name in names:
        fake_repository(tmp_path / name / "one")
    _project(tmp_path)
    _project(tmp_path, "mix.exs")
    fake_repository(tmp_path / "deps" / "one")
    assert set(_found(tmp_path)) == {*(f"{name}/one" for name in names), "deps/one"}


def test_a_build_folder_of_a_project_is_skipped_unless_it_is_a_repository(tmp_path: Path) -> None:
    _project(tmp_path / "tool")
    fake_repository(tmp_path / "tool" / "vendor")
    fake_repository(tmp_path / "tool" / "build" / "one")
    assert set(_found(tmp_path)) == {"tool", "tool/vendor"}


def test_nothing_is_found_in_a_tagged_cache(tmp_path: Path) -> None:
    cache, other = tmp_path / "pool", tmp_path / "other"
    for folder in (cache, other):
        fake_repository(folder / "clone")
        _project(folder)
    (cache / "CACHEDIR.TAG").write_bytes(CACHE_SIGNATURE + b"\n# by a package manager\n")
    (other / "CACHEDIR.TAG").write_bytes(b"Signature: 0" + CACHE_SIGNATURE[12:])
    assert set(_found(tmp_path)) == {"other", "other/clone"}
    assert set(_found(cache)) == {"clone"}  # a person has made the cache itself a parent


def test_a_cache_tag_that_is_a_link_or_a_fifo_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "tag").write_bytes(CACHE_SIGNATURE)
    for name in ("linked", "waiting"):
        fake_repository(tmp_path / name / "clone")
    (tmp_path / "linked" / "CACHEDIR.TAG").symlink_to(tmp_path / "tag")
    os.mkfifo(tmp_path / "waiting" / "CACHEDIR.TAG")
    assert set(_found(tmp_path)) == {"linked/clone", "waiting/clone"}


def test_a_repository_as_a_parent_is_proposed_once(tmp_path: Path) -> None:
    fake_repository(tmp_path)
    _project(tmp_path / "packages" / "a")
    _project(tmp_path)
    fake_repository(tmp_path / "vendor" / "b")
    fake_repository(tmp_path / "libs" / "c")
    assert _found(tmp_path) == {".": GIT, "libs/c": GIT}
    # The home folder can be no root, so its repository is only that of the dotfiles.
    home = replace(WalkRules.of(Parent(raw(tmp_path))), top_is_project=False)
    assert set(_found(tmp_path, home)) == {".", "packages/a", "vendor/b", "libs/c"}


def test_members_of_a_repository_that_is_a_parent_are_found_if_asked_for(tmp_path: Path) -> None:
    fake_repository(tmp_path)
    (tmp_path / "package.json").write_text('{"workspaces": ["packages/*"]}')
    _project(tmp_path / "packages" / "a")
    _project(tmp_path / "examples" / "b")
    rules = WalkRules.of(Parent(raw(tmp_path), nested=NestedPolicy.MEMBERS))
    assert set(_found(tmp_path, rules)) == {".", "packages/a"}


@pytest.mark.parametrize(
    ("marker", "kind"),
    [
        (".repo/manifests", ProjectKind.REPO_TREE),
        (".west", ProjectKind.WEST_TREE),
        (".gclient", ProjectKind.GCLIENT_TREE),
    ],
)
def test_a_tree_of_repositories_is_one_project_and_its_repositories_are_found(
    tmp_path: Path, marker: str, kind: ProjectKind
) -> None:
    tree = tmp_path / "tree"
    (tree / marker).mkdir(parents=True)
    fake_repository(tree / ".repo" / "repo")
    fake_repository(tree / "src" / "lib")
    _project(tree / "tools" / "x")
    if marker != ".repo/manifests":
        (tree / ".repo" / "repo" / ".git").rename(tree / "moved")
        (tree / ".repo" / "repo").rmdir()
        (tree / ".repo").rmdir()
    assert _found(tmp_path) == {"tree": kind, "tree/src/lib": GIT}
    assert _found(tree) == {".": kind, "src/lib": GIT}
    fake_repository(tree)
    assert _found(tmp_path) == {"tree": GIT}


def test_a_skipped_folder_is_neither_listed_nor_in_the_frontier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skipped = tmp_path / "node_modules"
    (skipped / "left-pad").mkdir(parents=True)
    listed: list[bytes] = []
    scandir = os.scandir

    def note(path: bytes) -> object:
        listed.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", note)
    scan = Walker(WalkRules.of(Parent(raw(tmp_path)))).walk(WalkFolder(raw(tmp_path), 4, top=True))
    assert listed == [raw(tmp_path)]
    inside = [listing for listing in scan.listings if listing.place.path == raw(skipped)]
    assert [(each.kind, each.frontier, each.place.skipped) for each in inside] == [
        (None, False, True)
    ]
