"""The reason why a folder is not proposed, and that it always agrees with the walk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rootsd.core.exclusion import Exclusion, ExclusionReason
from rootsd.core.model import NestedPolicy, Parent
from rootsd.disk.explanation import explain_absence, explain_absence_outside
from rootsd.disk.markers import CACHE_SIGNATURE, WalkRules
from rootsd.disk.walk import Walker, WalkFolder
from support.repositories import fake_repository, raw
from support.subprocesses import UNPRIVILEGED, run_python

R = ExclusionReason


def _explain(
    top: Path, path: Path, parent: Parent | None = None, mount: Path | None = None
) -> Exclusion | None:
    parent = parent or Parent(raw(top))
    rules = WalkRules.of(parent, {} if mount is None else {raw(mount): R.MOUNT})
    return explain_absence(raw(path), parent, rules, lambda _: True)


def test_the_reason_and_the_folder_that_it_is_about(tmp_path: Path) -> None:
    folders = (".dot/x", "venv/src/x", "node_modules/x", ".Trash-1000/files/x", "old/x", "tmp-1/x")
    for folder in (*folders, "disk/x", "repo/lib", "tool/target/x", "pool/x"):
        fake_repository(tmp_path / folder)
    (tmp_path / "a/b/c/d/e").mkdir(parents=True)
    fake_repository(tmp_path / "repo")
    (tmp_path / "tool" / "Cargo.toml").touch()
    (tmp_path / "pool" / "CACHEDIR.TAG").write_bytes(CACHE_SIGNATURE)
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "repo")
    parent = Parent(raw(tmp_path), skip=(b"old", b"tmp-*"))
    expected = {
        ".dot/x": (R.HIDDEN, ".dot"),
        ".dot": (R.HIDDEN, ".dot"),
        "venv/src/x": (R.SKIPPED_NAME, "venv"),
        "node_modules/x": (R.SKIPPED_NAME, "node_modules"),
        ".Trash-1000/files/x": (R.DISCARDED, ".Trash-1000"),
        "old/x": (R.SKIP_SETTING, "old"),
        "tmp-1/x": (R.SKIP_SETTING, "tmp-1"),
        "disk/x": (R.MOUNT, "disk"),
        "a/b/c/d/e": (R.DEPTH, "a/b/c/d/e"),
        "repo/lib": (R.IN_PROJECT, "repo/lib"),
        "tool/target/x": (R.SKIPPED_NAME, "tool/target"),
        "pool/x": (R.CACHE, "pool"),
        "pool": (R.CACHE, "pool"),
        "plain": (R.NO_MARKER, "plain"),
        "none/x": (R.NO_FOLDER, "none"),
        "link": (R.LINK, "link"),
        "link/x": (R.LINK, "link"),
        "plain/file": (R.NO_MARKER, "plain"),
        "repo": None,
        "tool": None,
        ".": (R.NO_MARKER, "."),
    }
    found = {
        path: _explain(tmp_path, tmp_path / path, parent, tmp_path / "disk") for path in expected
    }
    assert {
        path: why and (why.reason, os.path.relpath(os.fsdecode(why.at), tmp_path))
        for path, why in found.items()
    } == expected


@pytest.mark.parametrize(
    ("path", "responds", "reason", "at"),
    [
        ("repo", True, R.OUTSIDE, "repo"),
        ("repo/file", True, R.OUTSIDE, "repo"),
        ("none/x", True, R.NO_FOLDER, "none/x"),
        ("link", True, R.LINK, "link"),
        ("repo", False, R.UNRESPONSIVE, "repo"),
    ],
)
def test_the_reason_for_a_folder_outside_of_the_parents(
    tmp_path: Path, path: str, responds: bool, reason: ExclusionReason, at: str
) -> None:
    fake_repository(tmp_path / "repo")
    (tmp_path / "repo" / "file").touch()
    (tmp_path / "link").symlink_to("repo")
    found = explain_absence_outside(raw(tmp_path / path), lambda _: responds)
    assert (found.reason, found.at) == (reason, raw(tmp_path / at))


def test_the_target_the_project_and_the_levels_are_named(tmp_path: Path) -> None:
    fake_repository(tmp_path / "repo" / "lib")
    fake_repository(tmp_path / "repo")
    (tmp_path / "link").symlink_to("repo")
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    for folder in ("mono", "mono/packages/a"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "package.json").touch()
    link = _explain(tmp_path, tmp_path / "link")
    inside = _explain(tmp_path, tmp_path / "repo" / "lib")
    deep = _explain(tmp_path, tmp_path / "a" / "b" / "c", Parent(raw(tmp_path), depth=1))
    package = _explain(tmp_path, tmp_path / "mono" / "packages" / "a")
    assert link == Exclusion(R.LINK, raw(tmp_path / "link"), b"repo")
    assert inside == Exclusion(R.IN_PROJECT, raw(tmp_path / "repo/lib"), raw(tmp_path / "repo"), 2)
    assert deep == Exclusion(R.DEPTH, raw(tmp_path / "a" / "b"), raw(tmp_path), 3)
    part = raw(tmp_path / "mono/packages/a")
    assert package == Exclusion(R.IN_PROJECT, part, raw(tmp_path / "mono"))


def test_a_file_system_that_does_not_respond_is_not_touched(tmp_path: Path) -> None:
    def may_follow(path: bytes) -> bool:
        return not path.startswith(raw(tmp_path / "dead"))

    parent = Parent(raw(tmp_path))
    path = raw(tmp_path / "dead" / "x")  # a lookup would find that it does not exist
    found = explain_absence(path, parent, WalkRules.of(parent), may_follow)
    assert found == Exclusion(R.UNRESPONSIVE, raw(tmp_path / "dead"))


@pytest.mark.needs("linux")
def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "x").mkdir(parents=True)
    tmp_path.chmod(0o755)
    closed.chmod(0)
    run_python(UNPRIVILEGED, """
import os, sys
from rootsd.core.model import Parent
from rootsd.disk.explanation import explain_absence
from rootsd.disk.markers import WalkRules

top = os.fsencode(sys.argv[1])
parent = Parent(top)
for path in (top + b"/closed", top + b"/closed/x"):
    found = explain_absence(path, parent, WalkRules.of(parent), lambda _: True)
    assert (found.reason.value, found.at) == ("unreadable", top + b"/closed"), found
""", tmp_path)  # fmt: skip


NAMES = ("a", "env", ".dot", "target", "deps", "skip", "disk", ".Trash-1", "_deps")
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
MARKS = st.sampled_from([".git", "package.json", "mix.exs", "CACHEDIR.TAG", ".west", ""])


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    entries=st.lists(st.tuples(PATHS, MARKS), min_size=1, max_size=8),
    nested=st.sampled_from(NestedPolicy),
    depth=st.integers(1, 4),
    top_mark=MARKS,
)
def test_a_folder_has_a_reason_if_and_only_if_the_walk_does_not_propose_it(
    tmp_path_factory: pytest.TempPathFactory,
    entries: list[tuple[str, str]],
    nested: NestedPolicy,
    depth: int,
    top_mark: str,
) -> None:
    top = tmp_path_factory.mktemp("forest")
    for path, mark in [*entries, (".", top_mark)]:
        folder = top / path
        folder.mkdir(parents=True, exist_ok=True)
        if mark in (".git", ".west"):
            (folder / mark).mkdir(exist_ok=True)
        elif mark:
            (folder / mark).write_bytes(CACHE_SIGNATURE)
    parent = Parent(raw(top), depth=depth, nested=nested, skip=(b"skip",))
    rules = WalkRules.of(parent, {raw(top / "disk"): R.MOUNT})
    scan = Walker(rules).walk(WalkFolder(raw(top), depth, top=True))
    found = {listing.place.path for listing in scan.listings if listing.kind is not None}
    for each, _, _ in os.walk(raw(top)):
        why = explain_absence(each, parent, rules, lambda _: True)
        assert (why is None) == (each in found), (each, why)


def test_a_mount_that_is_looked_into_is_no_reason(tmp_path: Path) -> None:
    for name in ("disk/x", ".disk/x", ".disk"):
        fake_repository(tmp_path / name)
    parent = Parent(raw(tmp_path))
    points = {raw(tmp_path / name) for name in ("disk", ".disk")}
    stops = dict.fromkeys(points, R.MOUNT)
    crossing = replace(WalkRules.of(parent, stops), crossed=frozenset(points))
    staying = WalkRules.of(parent, stops)

    def why(name: str, rules: WalkRules) -> ExclusionReason | None:
        found = explain_absence(raw(tmp_path / name), parent, rules, lambda _: True)
        return None if found is None else found.reason

    assert [why(name, staying) for name in ("disk/x", ".disk", ".disk/x")] == [R.MOUNT] * 3
    assert why("disk/x", crossing) is None
    assert why(".disk", crossing) is None
    assert why(".disk/x", crossing) is R.IN_PROJECT
