"""A repository that becomes another kind, or no repository, is noticed without a sweep."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rootsd.core.inputs import ProjectGone, ProjectObserved
from rootsd.core.model import ProjectKind
from support.engine_harness import EngineHarness
from support.repositories import git, make_repository, raw

pytestmark = pytest.mark.needs("linux")

GIT, HG, JJ, PROJECT = ProjectKind.GIT, ProjectKind.HG, ProjectKind.JJ, ProjectKind.PROJECT


def colocate(work: Path) -> None:
    """Create what `jj git init --colocate` creates, by the documentation of jj 0.46."""
    store = work / ".jj" / "repo" / "store"
    store.mkdir(parents=True)
    (work / ".jj" / "working_copy").mkdir()
    (work / ".jj" / "working_copy" / "checkout").touch()
    (store / "type").write_text("git")
    (store / "git_target").write_text("../../../.git")


def _add_hg(work: Path) -> None:
    (work / ".hg" / "store").mkdir(parents=True)
    (work / ".hg" / "requires").touch()
    (work / ".hg" / "dirstate").write_bytes(b"\1" * 40)


def _init_git(work: Path) -> None:
    git("init", work)


def _init_jj(work: Path) -> None:
    _init_git(work)
    colocate(work)


@pytest.mark.parametrize("is_root", [False, True])
def test_a_jj_beside_a_git_changes_the_kind_at_once(world: EngineHarness, is_root: bool) -> None:
    work = make_repository(world.top / "one")
    world.settle()
    if is_root:
        world.engine.set_roots(frozenset({raw(work)}), {})
    colocate(work)
    world.settle()
    assert world.live() == world.fresh() == {"one": JJ}
    shutil.rmtree(work / ".jj")
    world.settle()
    assert world.live() == world.fresh() == {"one": GIT}


@pytest.mark.parametrize(
    ("first", "then", "kind"),
    [(_add_hg, _init_git, GIT), (_add_hg, _init_jj, JJ), (_init_git, _add_hg, GIT)],
)
def test_a_second_vcs_in_a_checkout(
    world: EngineHarness,
    first: Callable[[Path], None],
    then: Callable[[Path], None],
    kind: ProjectKind,
) -> None:
    work = world.top / "one"
    work.mkdir()
    first(work)
    world.settle()
    then(work)
    world.settle()
    assert world.live() == world.fresh() == {"one": kind}


def test_a_repository_in_a_project_folder(world: EngineHarness) -> None:
    work = world.top / "one"
    work.mkdir()
    (work / "pyproject.toml").touch()
    world.settle()
    assert world.live() == {"one": PROJECT}
    git("init", work)
    world.settle()
    assert world.live() == world.fresh() == {"one": GIT}
    shutil.rmtree(work / ".git")
    world.settle()
    assert world.live() == world.fresh() == {"one": PROJECT}


@pytest.mark.parametrize("bare", [False, True])
def test_a_repository_without_its_git_data_is_gone_at_once(
    world: EngineHarness, bare: bool
) -> None:
    work = make_repository(world.top / "one")
    if bare:
        git("clone", "--bare", work, world.top / "two")
        shutil.rmtree(work)
        work = world.top / "two"
    world.settle()
    shutil.rmtree(work / ("objects" if bare else ".git"))
    assert [type(reported) for reported in world.take()][-1:] == [ProjectGone]
    assert world.live() == world.fresh() == {}


def test_a_named_root_outside_the_parents_changes_its_kind_at_once(
    world: EngineHarness, tmp_path: Path
) -> None:
    work = make_repository(tmp_path / "outside")
    world.engine.probe(raw(work))
    world.engine.set_roots(frozenset({raw(work)}), {})
    world.take()
    colocate(work)
    assert [seen.kind for seen in world.take() if isinstance(seen, ProjectObserved)] == [JJ]


def test_ordinary_files_in_a_repository_wake_nothing(world: EngineHarness) -> None:
    work = make_repository(world.top / "one")
    world.settle()
    for name in ("package.json", "notes", "HEADER"):
        (work / name).touch()
    (work / "src").mkdir()
    assert world.pumped.pump() == []


def test_a_moved_repository_is_watched_in_its_new_place(world: EngineHarness) -> None:
    make_repository(world.top / "one")
    world.settle()
    watches = world.pumped.watcher.count()
    work = (world.top / "one").rename(world.top / "two")
    world.settle()
    assert world.pumped.watcher.count() == watches
    colocate(work)
    world.settle()
    assert world.live() == world.fresh() == {"two": JJ}
    shutil.rmtree(work)
    world.settle()
    assert world.pumped.watcher.count() == watches - 1


def test_a_folder_that_follows_its_git_data_is_gone_and_not_retargeted(
    world: EngineHarness,
) -> None:
    work = make_repository(world.top / "one")
    world.take()
    (work / ".git").rename(world.top / ".gone")
    world.engine.handle(world.pumped.pump())
    shutil.rmtree(work)
    assert world.take() == [ProjectGone(raw(work))]
    assert world.engine.next_due() is None


def _add_workspace(main: Path, work: Path) -> None:
    """Create what `jj workspace add` creates in a colocated repository, with jj 0.46.

    git adds the worktree, as jj asks it to.
    """
    git("worktree", "add", "--detach", work, cwd=main)
    (work / ".jj" / "working_copy").mkdir(parents=True)
    (work / ".jj" / "working_copy" / "checkout").touch()
    (work / ".jj" / "repo").write_text(f"{main}/.jj/repo")


def test_a_workspace_that_is_a_git_worktree_is_a_jj_project(world: EngineHarness) -> None:
    main = make_repository(world.top / "one")
    colocate(main)
    world.settle()
    _add_workspace(main, world.top / "two")
    world.settle()
    assert world.live() == world.fresh() == {"one": JJ, "two": JJ}
    assert world.main_checkouts() == {"one": None, "two": None}
    _add_workspace(main, main / ".workspaces" / "three")
    world.settle()
    three = {"one/.workspaces/three": JJ}
    assert world.live() == world.fresh() == {"one": JJ, "two": JJ, **three}
    git("worktree", "move", world.top / "two", world.top / "four", cwd=main)
    world.settle()
    assert world.live() == world.fresh() == {"one": JJ, "four": JJ, **three}


def test_the_first_hidden_workspace_of_a_root_is_found_at_once(world: EngineHarness) -> None:
    main = make_repository(world.top / "one")
    colocate(main)
    world.settle()
    world.engine.set_roots(frozenset({raw(main)}), {})
    _add_workspace(main, main / ".workspaces" / "two")
    world.settle()
    assert world.live() == world.fresh() == {"one": JJ, "one/.workspaces/two": JJ}
