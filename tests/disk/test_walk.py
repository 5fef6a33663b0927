"""A walk finds each project once, enters no folder needlessly, and reports unreadable folders."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from rootsd.core.exclusion import ExclusionReason
from rootsd.core.model import NestedPolicy, Parent, ProjectKind, ScanCoverage
from rootsd.disk.markers import WalkRules
from rootsd.disk.walk import (
    FolderListing,
    ProposalScope,
    Walker,
    WalkFolder,
    WalkResult,
    read_stamp,
)
from support.repositories import fake_repository, raw
from support.subprocesses import UNPRIVILEGED, run_python

MOUNT = ExclusionReason.MOUNT
# With this cutoff, no folder counts as recently changed.
NEVER = 2**62


def _scan(top: Path, parent: Parent | None = None, stops: tuple[Path, ...] = ()) -> WalkResult:
    parent = parent or Parent(raw(top))
    walker = Walker(WalkRules.of(parent, dict.fromkeys(map(raw, stops), MOUNT)))
    return walker.walk(WalkFolder(raw(top), parent.depth, top=True))


def _found(scan: WalkResult, top: Path) -> dict[str, ProjectKind]:
    return {
        os.path.relpath(os.fsdecode(listing.place.path), top): listing.kind
        for listing in scan.listings
        if listing.kind is not None
    }


def _listed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return a list to which each listed folder is added."""
    listed: list[bytes] = []
    scandir = os.scandir

    def count(path: bytes) -> object:
        listed.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", count)
    return listed


def _project(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "package.json").touch()
    return path


def test_each_project_is_found_once_whatever_leads_to_it(tmp_path: Path) -> None:
    """A name need not be text. No link is followed."""
    odd = [os.fsdecode(name) for name in (b"caf\xe9", b"\xff\xfe", b"new\nline")]
    repositories = ("flat", "github.com/acme/api", "mono/libs/two", *odd)
    for name in repositories:
        fake_repository(tmp_path / name)
    for name in ("scratch/tool", "mono/packages/a"):
        _project(tmp_path / name)
    (tmp_path / "mono" / "go.mod").touch()
    for name in ("objects", "refs"):
        (tmp_path / "a.git" / name).mkdir(parents=True)
    (tmp_path / "a.git" / "HEAD").touch()
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "again").symlink_to("github.com")
    (tmp_path / "scratch" / "up").symlink_to("..")
    assert _found(_scan(tmp_path), tmp_path) == {
        **dict.fromkeys(repositories, ProjectKind.GIT),
        **dict.fromkeys(("scratch/tool", "mono"), ProjectKind.PROJECT),
        "a.git": ProjectKind.GIT_BARE,
    }


def test_nothing_below_a_repository_is_opened(tmp_path: Path) -> None:
    fake_repository(tmp_path / "one")
    fake_repository(tmp_path / "one" / "vendored")
    _project(tmp_path / "one" / "packages" / "a")
    scan = _scan(tmp_path)
    assert _found(scan, tmp_path) == {"one": ProjectKind.GIT}
    assert len(scan.listings) == 2


def test_nested_repositories_or_members_are_found_if_asked_for(tmp_path: Path) -> None:
    fake_repository(tmp_path / "one")
    fake_repository(tmp_path / "one" / "libs" / "two")
    _project(tmp_path / "one" / "packages" / "a")
    vcs = _scan(tmp_path, Parent(raw(tmp_path), nested=NestedPolicy.VCS))
    assert set(_found(vcs, tmp_path)) == {"one", "one/libs/two"}
    _project(tmp_path / "one" / "examples" / "b")
    (tmp_path / "one" / "package.json").write_text('{"workspaces": ["packages/*"]}')
    members = _scan(tmp_path, Parent(raw(tmp_path), nested=NestedPolicy.MEMBERS))
    assert set(_found(members, tmp_path)) == {"one", "one/libs/two", "one/packages/a"}


def test_members_of_a_workspace_without_a_repository_and_of_one_in_another(tmp_path: Path) -> None:
    outer, inner = _project(tmp_path / "outer"), fake_repository(tmp_path / "outer" / "inner")
    (outer / "Cargo.toml").write_text('[workspace]\nmembers = ["crates/*"]\n')
    (inner / "go.work").write_text("use ./tool\n")
    for member in ("outer/crates/a", "outer/other/b", "outer/inner/tool", "outer/inner/crates/c"):
        _project(tmp_path / member)
    found = _found(_scan(tmp_path, Parent(raw(tmp_path), nested=NestedPolicy.MEMBERS)), tmp_path)
    assert set(found) == {"outer", "outer/inner", "outer/crates/a", "outer/inner/tool"}


def test_the_depth_limits_how_deep_a_project_may_be(tmp_path: Path) -> None:
    fake_repository(tmp_path / "a" / "b" / "c")
    for depth, found in ((2, set()), (3, {"a/b/c"})):
        assert set(_found(_scan(tmp_path, Parent(raw(tmp_path), depth=depth)), tmp_path)) == found


SHAPES: dict[str, Callable[[Path], object]] = {
    "folder": Path.mkdir,
    "file": Path.touch,
    "link": lambda path: path.symlink_to(".."),
    "dead link": lambda path: path.symlink_to("none"),
}


def test_a_repository_is_of_the_same_kind_whether_or_not_it_is_listed(tmp_path: Path) -> None:
    walkers = [
        Walker(WalkRules.of(Parent(raw(tmp_path), nested=nested)))
        for nested in (NestedPolicy.NONE, NestedPolicy.VCS)  # with VCS, its content matters, too
    ]
    for git, other, shape in itertools.product(SHAPES, (".jj", ".hg", "_darcs"), SHAPES):
        folder = tmp_path / f"{git} {other} {shape}"
        folder.mkdir()
        SHAPES[git](folder / ".git")
        SHAPES[shape](folder / other)
        expected = ProjectKind.JJ if other == ".jj" else ProjectKind.GIT
        for walker in walkers:
            listing = walker.list_folder(WalkFolder(raw(folder), 4))
            assert listing is not None
            assert listing.kind is expected, folder


def test_a_checkout_is_listed_only_if_its_content_matters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = raw(fake_repository(tmp_path))
    walker = Walker(WalkRules.of(Parent(top)))
    nested = WalkRules.of(Parent(top, nested=NestedPolicy.VCS))
    listed = _listed(monkeypatch)
    assert walker.list_folder(WalkFolder(top, 4)) == FolderListing(
        WalkFolder(top, 4), ProjectKind.GIT, (), ProposalScope.OPEN
    )
    assert listed == []
    walker.list_folder(WalkFolder(top, 4, top=True))
    Walker(nested).list_folder(WalkFolder(top, 4))
    assert listed == [top, top]


def test_a_missing_parent_is_not_covered(tmp_path: Path) -> None:
    assert _scan(tmp_path / "none").coverage is ScanCoverage.NONE


WALK = """
import os, sys
from rootsd.core.model import Parent
from rootsd.disk.markers import WalkRules
from rootsd.disk.walk import WalkFolder
from rootsd.disk.walk import Walker
top = os.fsencode(sys.argv[1])
scan = Walker(WalkRules.of(Parent(top))).walk(WalkFolder(top, 4, top=True))
print(scan.coverage.value, sorted(scan.unreadable), sum(l.kind is not None for l in scan.listings))
"""


@pytest.mark.needs("linux", "root", "setpriv")
def test_an_unreadable_folder_is_named_and_the_rest_is_found(tmp_path: Path) -> None:
    fake_repository(tmp_path / "one")
    fake_repository(tmp_path / "hidden" / "two")
    (tmp_path / "hidden").chmod(0)
    # Its `.git` can be opened by name, but the folder cannot be listed.
    fake_repository(tmp_path / "three").chmod(0o311)
    unreadable = {raw(tmp_path / name) for name in ("hidden", "three")}
    expected = f"partial {sorted(unreadable)} 1\n"
    assert run_python(UNPRIVILEGED, WALK, tmp_path) == (expected, "")


def test_a_folder_is_watched_before_its_listing_is_used(tmp_path: Path) -> None:
    """A folder created between the first listing and the watch is in the second listing."""

    def add_watch(path: bytes) -> None:
        if path == raw(tmp_path):
            (tmp_path / "late").mkdir(exist_ok=True)

    walker = Walker(WalkRules.of(Parent(raw(tmp_path))), add_watch)
    listing = walker.list_folder(WalkFolder(raw(tmp_path), 4, top=True))
    assert listing is not None
    assert [place.path for place in listing.below] == [raw(tmp_path / "late")]


def test_an_entry_created_just_before_the_watch_is_listed(tmp_path: Path) -> None:
    stamp = read_stamp(raw(tmp_path))
    assert stamp is not None

    def add_watch(path: bytes) -> None:
        # The clock for file times advances in steps, so wait until the folder gets another time.
        for number in itertools.count():
            (tmp_path / f"late{number}").mkdir()
            if read_stamp(path) != stamp:
                break

    walker = Walker(WalkRules.of(Parent(raw(tmp_path))), add_watch)
    listing = walker.list_folder(WalkFolder(raw(tmp_path), 4, top=True), before=stamp[0] + 1)
    assert listing is not None
    assert raw(tmp_path / "late0") in {place.path for place in listing.below}


def test_a_folder_that_is_watched_already_is_listed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = _listed(monkeypatch)
    is_watched: list[bytes] = []
    walker = Walker(WalkRules.of(Parent(raw(tmp_path))), is_watched.append)
    place = WalkFolder(raw(tmp_path), 4, top=True)
    assert walker.list_folder(place, is_watched=True) == walker.list_folder(place)
    assert (len(listed), len(is_watched)) == (3, 1)


def test_without_known_mounts_another_device_is_neither_entered_nor_watched(
    tmp_path: Path,
) -> None:
    is_watched: list[bytes] = []
    rules, device = WalkRules.of(Parent(raw(tmp_path))), tmp_path.stat().st_dev
    place = WalkFolder(raw(tmp_path), 1)
    other = Walker(replace(rules, device=device + 1), is_watched.append)
    assert other.list_folder(place) is None
    assert is_watched == []
    assert Walker(replace(rules, device=device)).list_folder(place) is not None


def test_only_a_folder_at_rest_gets_a_stamp_which_differs_once_an_entry_changed(
    tmp_path: Path,
) -> None:
    walker = Walker(WalkRules.of(Parent(raw(tmp_path))))
    place = WalkFolder(raw(tmp_path), 4, top=True)
    young, old = walker.list_folder(place), walker.list_folder(place, before=NEVER)
    assert young is not None
    assert young.stamp is None
    assert old is not None
    assert old.stamp == read_stamp(raw(tmp_path)) is not None
    (tmp_path / "new").mkdir()
    assert read_stamp(raw(tmp_path)) != old.stamp
    assert read_stamp(raw(tmp_path / "none")) is None


def test_a_walk_reports_progress_and_can_be_cancelled(tmp_path: Path) -> None:
    for number in range(600):
        (tmp_path / str(number)).mkdir()
    numbers: list[int] = []
    walker = Walker(WalkRules.of(Parent(raw(tmp_path))))
    top = WalkFolder(raw(tmp_path), 4, top=True)
    scan = walker.walk(top, progress=lambda folders, _: numbers.append(folders))
    assert numbers == [512]
    assert scan.coverage is ScanCoverage.FULL
    assert walker.walk(top, cancelled=lambda: True).coverage is ScanCoverage.PARTIAL
