"""A repository in a folder that is skipped because of its name appears and disappears live."""

from __future__ import annotations

import shutil

import pytest
from msgspec.structs import replace

from rootsd.core.model import Parent, ProjectKind
from rootsd.disk.markers import CACHE_SIGNATURE
from support.engine_harness import EngineHarness, OpenWorld
from support.repositories import fake_repository, raw

pytestmark = pytest.mark.needs("linux")

GIT = ProjectKind.GIT


def test_a_repository_of_a_skipped_name_is_seen_live(world: EngineHarness) -> None:
    names = ("env", ".github", "node_modules")
    (world.top / "group").mkdir()
    world.settle()
    for name in names:
        fake_repository(world.top / name)
        fake_repository(world.top / "group" / name)
    world.settle()
    everywhere = [*names, *(f"group/{name}" for name in names)]
    assert world.live() == world.fresh() == dict.fromkeys(everywhere, GIT)
    for name in names:
        shutil.rmtree(world.top / name)
        shutil.rmtree(world.top / "group" / name / ".git")
    world.settle()
    assert world.live() == world.fresh() == {}


def test_a_skipped_folder_becomes_a_repository_later(world: EngineHarness) -> None:
    folder = world.top / "venv"
    (folder / "lib" / "site-packages" / "x" / ".git").mkdir(parents=True)
    world.settle()
    assert world.live() == world.fresh() == {}
    fake_repository(folder / "src" / "clone")
    world.settle()
    assert world.live() == world.fresh() == {}
    fake_repository(folder)
    world.settle()
    assert world.live() == world.fresh() == {"venv": GIT}
    (folder / ".git").rename(folder / "git")
    world.settle()
    assert world.live() == world.fresh() == {}
    (folder / "git").rename(folder / ".git")
    world.settle()
    assert world.live() == world.fresh() == {"venv": GIT}


def test_a_restart_keeps_repositories_of_skipped_names(world: EngineHarness) -> None:
    fake_repository(world.top / "env")
    (world.top / ".cache" / "x").mkdir(parents=True)
    world.settle()
    [tree] = world.engine.trees
    snapshot = tree.snapshot()
    tree.use_snapshot(snapshot)
    world.engine.explore(tree)
    world.settle()
    assert world.live() == {"env": GIT}
    assert raw(world.top / ".cache") in tree
    assert raw(world.top / ".cache" / "x") not in tree
    fake_repository(world.top / ".cache")
    world.settle()
    assert world.live() == world.fresh() == {"env": GIT, ".cache": GIT}


def test_a_build_folder_beside_a_project_file_is_judged_again_with_each_file(
    world: EngineHarness,
) -> None:
    fake_repository(world.top / "lib" / "deps" / "one")
    fake_repository(world.top / "lib" / "build" / "two")
    world.settle()
    assert world.live() == world.fresh() == {"lib/deps/one": GIT, "lib/build/two": GIT}
    (world.top / "lib" / "mix.exs").touch()
    world.settle()
    assert world.held() == world.fresh() == {"lib": ProjectKind.PROJECT}
    (world.top / "lib" / "mix.exs").unlink()
    (world.top / "package.json").touch()  # in the parent, it says nothing
    fake_repository(world.top / "build" / "three")
    world.settle()
    found = {"lib/deps/one": GIT, "lib/build/two": GIT, "build/three": GIT}
    assert world.held() == world.fresh() == found


def test_a_tag_makes_a_folder_a_cache_live(world: EngineHarness) -> None:
    cache, tag = world.top / "pool", world.top / "pool" / "CACHEDIR.TAG"
    cache.mkdir()
    world.settle()
    tag.touch()
    world.settle()
    tag.write_bytes(CACHE_SIGNATURE)  # no event reports the content
    fake_repository(cache / "clone")
    world.settle()
    assert world.live() == world.fresh() == {}
    tag.unlink()
    world.settle()
    assert world.live() == world.fresh() == {"pool/clone": GIT}


def test_a_parent_becomes_a_repository_and_its_packages_are_in_it(open_world: OpenWorld) -> None:
    world = open_world()
    package = world.top / "packages" / "a"
    package.mkdir(parents=True)
    (package / "package.json").touch()
    world.settle()
    assert world.held() == world.fresh() == {"packages/a": ProjectKind.PROJECT}
    fake_repository(world.top)
    world.settle()
    assert world.held() == world.fresh() == {".": GIT}


def test_a_tree_of_west_appears_live(world: EngineHarness) -> None:
    fake_repository(world.top / "ws" / "zephyr")
    world.settle()
    (world.top / "ws" / ".west").mkdir()
    world.settle()
    found = {"ws": ProjectKind.WEST_TREE, "ws/zephyr": GIT}
    assert world.live() == world.fresh() == found
    (world.top / "ws" / ".west").rmdir()
    world.settle()
    assert world.live() == world.fresh() == {"ws/zephyr": GIT}


def test_the_setting_skip_takes_precedence(open_world: OpenWorld) -> None:
    world = open_world()
    skipping = replace(Parent(raw(world.top)), skip=(b"env", b".git*"))
    for tree in world.engine.set_parents([skipping]):
        world.engine.explore(tree)
    fake_repository(world.top / "env")
    fake_repository(world.top / ".github")
    world.settle()
    assert world.live() == {}
