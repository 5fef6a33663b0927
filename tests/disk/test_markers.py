"""Names alone decide what a folder is and where a walk goes."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from rootsd.core.exclusion import ExclusionReason
from rootsd.core.model import NestedPolicy, Parent, ProjectKind
from rootsd.core.project_kind import PROJECT_GLOBS
from rootsd.disk.markers import (
    BUILT_IN_PROJECT_FILES,
    ProjectFiles,
    WalkRules,
    child,
    has_git,
    is_marker,
    is_repository_marker,
    repository_kind,
)
from support.repositories import raw


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ({b".git"}, ProjectKind.GIT),
        ({b".git", b".jj"}, ProjectKind.JJ),
        ({b".hg", b"src"}, ProjectKind.HG),
        ({b".svn"}, ProjectKind.SVN),
        ({b".sl"}, ProjectKind.SAPLING),
        ({b".fslckout"}, ProjectKind.FOSSIL),
        ({b"_FOSSIL_"}, ProjectKind.FOSSIL),
        ({b".bzr"}, ProjectKind.BZR),
        ({b".pijul"}, ProjectKind.PIJUL),
        ({b"_darcs"}, ProjectKind.DARCS),
        ({b"HEAD", b"objects", b"refs"}, ProjectKind.GIT_BARE),
        ({b"HEAD", b"objects"}, None),
        ({b"package.json"}, None),
        (set(), None),
    ],
)
def test_the_kind_follows_from_the_names(names: set[bytes], kind: ProjectKind | None) -> None:
    assert repository_kind(names) is kind


@pytest.mark.parametrize(
    "name",
    [b"package.json", b"Cargo.toml", b"App.sln", b"x.csproj", b"lib.cabal", b"all.code-workspace"],
)
def test_project_files_by_name_and_by_ending(name: bytes) -> None:
    assert BUILT_IN_PROJECT_FILES.any_in({b"README", name})
    assert is_marker(name)
    assert not is_repository_marker(name)


@pytest.mark.parametrize("name", [b".git", b".jj", b"HEAD", b"refs"])
def test_markers_of_repositories_count_before_every_project_file(name: bytes) -> None:
    assert is_repository_marker(name)
    assert is_marker(name)
    assert not BUILT_IN_PROJECT_FILES.any_in({name})


@pytest.mark.parametrize("name", [b"pnpm-workspace.yaml", b"lerna.json", b"CACHEDIR.TAG"])
def test_members_and_caches_are_marked_by_files_that_make_no_project(name: bytes) -> None:
    assert is_marker(name)
    assert not is_repository_marker(name)


@pytest.mark.parametrize("name", [b"package.json.bak", b"sln", b"a.sln.txt", b"x.slnx", b"\xff"])
def test_similar_names_are_not_project_files(name: bytes) -> None:
    assert not BUILT_IN_PROJECT_FILES.any_in({name})
    assert not is_marker(name)


def test_hidden_and_listed_folders_are_not_entered() -> None:
    rules = WalkRules.of(Parent(b"/src"))
    why = {
        b".cache": ExclusionReason.HIDDEN,
        b"node_modules": ExclusionReason.SKIPPED_NAME,
        b"venv": ExclusionReason.SKIPPED_NAME,
        b"_deps": ExclusionReason.SKIPPED_NAME,
        b"$RECYCLE.BIN": ExclusionReason.DISCARDED,
        b".Trash-1000": ExclusionReason.DISCARDED,
        b"@eaDir": ExclusionReason.DISCARDED,
        b".git": ExclusionReason.IN_PROJECT,
        b"_darcs": ExclusionReason.IN_PROJECT,
        b"work": None,
        b"deps": None,
    }
    skipped = rules.skipped({*why})
    assert {name: rules.why_skipped(b"/src", name, skipped) for name in why} == why


@pytest.mark.parametrize("beside", [b"mix.exs", b"rebar.config"])
def test_the_folder_of_dependencies_is_skipped_only_beside_its_file(beside: bytes) -> None:
    rules = WalkRules.of(Parent(b"/src"))
    assert b"deps" in rules.skipped({b"deps", beside})
    assert b"deps" not in rules.skipped({b"deps", b"go.mod"})


def test_build_folders_are_skipped_only_beside_a_project_file() -> None:
    rules = WalkRules.of(Parent(b"/src"))
    names = {b"target", b"build", b"dist", b"vendor"}
    assert names.isdisjoint(rules.skipped(names))
    assert names <= rules.skipped({*names, b"Cargo.toml"})
    assert names.isdisjoint(rules.skipped_in_parent())
    configured = WalkRules.of(Parent(b"/src", project_files=(b"Justfile", b"!go.mod")))
    assert b"build" in configured.skipped({b"build", b"Justfile"})
    assert b"build" not in configured.skipped({b"build", b"go.mod"})


def test_project_files_are_added_and_removed_by_name_and_by_ending() -> None:
    files = ProjectFiles.changed((b"Justfile", b"*.nimble", b"!go.mod", b"!*.sln"))
    assert files.any_in({b"x", b"Justfile"})
    assert files.any_in({b"one.nimble"})
    assert files.any_in({b"Cargo.toml", b"x.sln"})
    assert not files.any_in({b"go.mod", b"x.sln", b"nimble", b"justfile"})
    assert is_marker(b"Justfile", files)
    assert not is_marker(b"Justfile")
    assert ProjectFiles.changed(()) == BUILT_IN_PROJECT_FILES


def test_without_any_ending_the_names_still_count() -> None:
    files = ProjectFiles.changed(b"!" + glob for glob in PROJECT_GLOBS)
    assert files.any_in({b"go.mod"})
    assert not files.any_in({b"x.sln"})


def test_configured_names_and_globs_are_skipped() -> None:
    rules = WalkRules.of(Parent(b"/src", skip=(b"old", b"tmp-*", b"caf\xe9*")))
    skipped = rules.skipped(set())
    why = {
        name: rules.why_skipped(b"/src", name, skipped) for name in (b"old", b"tmp-1", b"caf\xe9s")
    }
    assert {*why.values()} == {ExclusionReason.SKIP_SETTING}
    assert rules.why_skipped(b"/src", b"older", skipped) is None
    assert rules.why_skipped(b"/src", b"xtmp-", skipped) is None


def test_other_parents_and_mounts_are_not_entered() -> None:
    stops = {b"/src/disk": ExclusionReason.MOUNT, b"/src": ExclusionReason.MOUNT}
    rules = WalkRules.of(Parent(b"/src", nested=NestedPolicy.VCS), stops)
    skipped = rules.skipped(set())
    assert rules.why_skipped(b"/src", b"disk", skipped) is ExclusionReason.MOUNT
    assert rules.why_skipped(b"/src", b"disks", skipped) is None
    assert rules.why_skipped(b"/src/sub", b"disk", skipped) is None
    assert rules.stops.keys() == {b"/src/disk"}


def test_a_child_of_the_root_folder_has_one_slash() -> None:
    assert child(b"/", b"src") == b"/src"
    assert child(b"/src", b"a") == b"/src/a"


def test_a_folder_has_git_even_if_it_is_a_dead_link(tmp_path: Path) -> None:
    assert not has_git(raw(tmp_path))
    (tmp_path / ".git").symlink_to("none")
    assert has_git(raw(tmp_path))


def test_the_signature_changes_with_every_rule_and_with_nothing_else() -> None:
    parent = Parent(b"/src", skip=(b"old", b"tmp-*"))
    signatures = [
        WalkRules.of(parent).signature(),
        WalkRules.of(parent, {b"/src/disk": ExclusionReason.MOUNT}).signature(),
        replace(WalkRules.of(parent), top_is_project=False).signature(),
        WalkRules.of(replace(parent, depth=3)).signature(),
        WalkRules.of(replace(parent, nested=NestedPolicy.VCS)).signature(),
        WalkRules.of(replace(parent, project_files=(b"Justfile",))).signature(),
        WalkRules.of(replace(parent, project_files=(b"!go.mod",))).signature(),
        WalkRules.of(replace(parent, project_files=(b"*.nimble",))).signature(),
        WalkRules.of(replace(parent, skip=(b"old",))).signature(),
        WalkRules.of(replace(parent, skip=(b"older", b"tmp-*"))).signature(),
    ]
    assert len(set(signatures)) == len(signatures)
    assert WalkRules.of(replace(parent, skip=(b"tmp-*", b"old"))).signature() == signatures[0]
