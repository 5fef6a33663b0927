"""Worktrees of a checkout whose git directory lies elsewhere inherit from it, and from no other.

Git writes no link from that directory to the checkout. The proofs are its index and the birth
times; see `rootsd.vcs.git.checkouts`. In each control, one of the two counts as proven.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rootsd.core.inputs import AddRule, ProjectObserved
from rootsd.core.model import Verdict
from rootsd.vcs.git import checkouts
from rootsd.vcs.git.worktrees import recall_checkouts
from rootsd.vcs.probe import probe
from rootsd.watch.polling import PollingWatcher
from support.engine_harness import EngineHarness, run_down
from support.forged_worktrees import PERSON, ForgedWorktrees, PreparedFolders
from support.repositories import git, raw

pytestmark = pytest.mark.needs("linux")

Forge = Callable[[Path, Path], None]


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> PreparedFolders:
    place = tmp_path_factory.mktemp("beforehand")
    prepared = PreparedFolders(place, 4)
    for folder in place.iterdir():
        (folder / "old-file").touch()
    return prepared


@pytest.fixture
def harness(world: EngineHarness, old: PreparedFolders) -> ForgedWorktrees:
    return ForgedWorktrees(world, old)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The place of the git directory, outside of all parents."""
    return tmp_path / "data"


@pytest.fixture
def one(harness: ForgedWorktrees, data: Path) -> Path:
    """A checkout whose git directory is `data`."""
    one = harness.src / "one"
    git("clone", f"--separate-git-dir={data}", harness.tool, one)
    return one


def _main(harness: ForgedWorktrees, path: Path) -> bytes | None:
    harness.see()
    return harness.known(path).observed.main_checkout


def test_a_new_worktree_inherits_whatever_is_approved_or_denied(
    harness: ForgedWorktrees, one: Path
) -> None:
    harness.approve(one)
    tree = harness.git_adds(harness.src / "tree", main=one)
    assert harness.reported() == {"one", "tree"}
    git("worktree", "move", tree, harness.src / "moved", cwd=one)
    assert harness.reported() == {"one", "moved"}
    harness.deny(one)
    assert harness.reported() == set()


def test_a_worktree_that_is_older_than_the_approval_waits_for_a_person(
    harness: ForgedWorktrees, one: Path
) -> None:
    tree = harness.git_adds(harness.src / "a-tree", main=one)
    harness.approve(one)
    assert harness.reported() == {"one"}
    harness.approve_with_all(one)
    assert harness.reported() == {"one", "a-tree"}
    assert harness.known(tree).ruling.decision is None


def test_a_repository_that_was_empty_when_it_was_found(
    harness: ForgedWorktrees, data: Path
) -> None:
    new = harness.src / "new"
    git("init", f"--separate-git-dir={data}", new)
    harness.approve(new)
    (new / "README").write_text("new\n")
    git("add", ".", cwd=new)
    git("commit", "-m", "one", cwd=new)
    harness.git_adds(harness.src / "a-tree", main=new)
    assert harness.reported() == {"new", "a-tree"}


def test_a_rule_publishes_a_worktree_that_is_found_before_its_checkout(
    harness: ForgedWorktrees, one: Path
) -> None:
    harness.git_adds(harness.src / "a-tree", main=one)
    harness.take([AddRule(raw(harness.src / "*tree"), Verdict.APPROVED, PERSON)])
    engine = harness.world.engine_on(PollingWatcher())
    run_down(engine, harness.world.clock)
    harness.take(engine.take())
    assert _main(harness, harness.src / "a-tree") == raw(one)
    assert harness.reported() == {"a-tree"}


def _start_again(harness: ForgedWorktrees, *known: Path) -> None:
    """Look at the worktree `a-tree` first in a new run that knows some projects."""
    checkouts._KNOWN.clear()
    recall_checkouts({raw(path): harness.known(path) for path in known})
    seen = probe(raw(harness.src / "a-tree"))
    assert isinstance(seen, ProjectObserved)
    harness.take([seen])


def test_a_daemon_that_starts_again_looks_at_the_checkout_first(
    harness: ForgedWorktrees, one: Path
) -> None:
    harness.approve(one)
    tree = harness.git_adds(harness.src / "a-tree", main=one)
    assert harness.reported() == {"one", "a-tree"}
    _start_again(harness, tree)
    assert set(harness.catalog.roots) == {raw(one), raw(tree)}


def test_the_next_run_keeps_what_this_one_has_proven(harness: ForgedWorktrees, one: Path) -> None:
    harness.approve(one)
    tree = harness.git_adds(harness.src / "a-tree", main=one)
    assert harness.reported() == {"one", "a-tree"}
    shutil.rmtree(one / "d0")
    _start_again(harness, tree, one)
    assert set(harness.catalog.roots) == {raw(one), raw(tree)}
    text = (one / ".git").read_text()
    (one / "new").write_text(text)
    (one / "new").rename(one / ".git")
    _start_again(harness, tree, one)
    assert raw(tree) not in harness.catalog.roots


def test_a_checkout_keeps_its_worktrees_when_its_files_change(
    harness: ForgedWorktrees, one: Path
) -> None:
    harness.approve(one)
    tree = harness.git_adds(harness.src / "tree", main=one)
    assert harness.reported() == {"one", "tree"}
    shutil.rmtree(one / "d0")
    harness.world.engine.recheck([raw(tree)])
    assert harness.reported() == {"one", "tree"}


def test_its_git_directory_may_move(harness: ForgedWorktrees, one: Path, data: Path) -> None:
    harness.approve(one)
    tree = harness.git_adds(harness.src / "tree", main=one)
    assert harness.reported() == {"one", "tree"}
    data.rename(data.with_name("moved"))
    assert harness.reported() == {"one"}
    (one / ".git").write_text(f"gitdir: {data.with_name('moved')}\n")
    git("worktree", "repair", tree, cwd=one)
    harness.world.engine.recheck([raw(tree)])
    assert harness.reported() == {"one", "tree"}


def test_an_existing_checkout_that_moves_its_git_directory_out(
    harness: ForgedWorktrees, data: Path
) -> None:
    harness.approve(harness.tool)
    harness.git_adds(harness.src / "before")
    assert harness.reported() == {"tool", "before"}
    git("init", f"--separate-git-dir={data}", cwd=harness.tool)
    assert harness.reported() == set(), "its git data lies elsewhere"
    harness.world.engine.recheck([raw(harness.tool), raw(harness.src / "before")])
    harness.approve(harness.tool)
    harness.git_adds(harness.src / "after")
    assert harness.reported() == {"tool", "after"}
    assert _main(harness, harness.src / "before") == raw(harness.tool)


# Forgeries: a folder that claims the git directory of another checkout


def _as_git_file(one: Path, evil: Path) -> None:
    shutil.copytree(one, evil)


def _as_copy_with_times(one: Path, evil: Path) -> None:
    git("-C", one, "status")
    shutil.copytree(one, evil, copy_function=shutil.copy2)


def _as_links_to_the_files(one: Path, evil: Path) -> None:
    evil.mkdir()
    (evil / ".git").write_text((one / ".git").read_text())
    (evil / "d0").symlink_to(one / "d0")


def _as_hard_links(one: Path, evil: Path) -> None:
    shutil.copytree(one, evil, copy_function=os.link)
    git("-C", one, "status")


def _as_link_in_place_of_the_git_file(one: Path, evil: Path) -> None:
    shutil.copytree(one, evil)
    target = (one / ".git").read_text().strip().removeprefix("gitdir: ")
    (evil / ".git").unlink()
    (evil / ".git").symlink_to(target)


FORGERIES = [
    _as_git_file,
    _as_copy_with_times,
    _as_links_to_the_files,
    _as_hard_links,
    _as_link_in_place_of_the_git_file,
]


def _reported_with(harness: ForgedWorktrees, one: Path, forge: Forge) -> set[str]:
    """Return what is published after `evil` was approved, which claims the data of `one`."""
    harness.deny(one)
    evil = harness.src / "evil"
    forge(one, evil)
    harness.approve(evil)
    harness.git_adds(harness.src / "tree", main=one)
    return harness.reported()


@pytest.mark.parametrize("forge", FORGERIES)
def test_no_claim_takes_a_worktree(
    harness: ForgedWorktrees, one: Path, forge: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.see()
    monkeypatch.setattr(checkouts, "_is_born_with", lambda *_: True)
    assert _reported_with(harness, one, forge) == {"evil"}
    ruling = harness.known(one).ruling
    assert ruling.decision is not None
    assert ruling.decision.verdict is Verdict.DENIED


@pytest.mark.parametrize("forge", FORGERIES)
def test_control_without_the_index_each_claim_takes_it(
    harness: ForgedWorktrees, one: Path, forge: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.see()
    monkeypatch.setattr(checkouts, "_is_born_with", lambda *_: True)
    monkeypatch.setattr(checkouts, "_is_indexed", lambda work, _: work.path.endswith(b"/evil"))
    assert _reported_with(harness, one, forge) == {"evil", "tree"}


# Git records the files of the folder in which it runs, if it knows their content.


def _reported_with_a_refreshed_copy(harness: ForgedWorktrees, data: Path) -> set[str]:
    evil = harness.existing("evil")
    one = harness.src / "one"
    git("clone", f"--separate-git-dir={data}", harness.tool, one)
    shutil.copytree(one / "d0", evil / "d0")
    (evil / "old-file").write_text(f"gitdir: {data}\n")
    (evil / "old-file").rename(evil / ".git")
    git("status", cwd=evil)
    harness.see()
    harness.deny(one)
    harness.approve(evil)
    harness.git_adds(harness.src / "tree", main=one)
    return harness.reported()


def test_a_copy_in_which_git_ran_takes_no_worktree(harness: ForgedWorktrees, data: Path) -> None:
    assert _reported_with_a_refreshed_copy(harness, data) == {"evil"}


def test_control_without_the_birth_times_it_takes_one(
    harness: ForgedWorktrees, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkouts, "_is_born_with", lambda *_: True)
    assert _reported_with_a_refreshed_copy(harness, data) == {"evil", "tree"}


def test_a_setting_that_names_another_checkout_counts_more_than_the_index(
    harness: ForgedWorktrees, one: Path
) -> None:
    harness.approve(one)
    git("config", "core.worktree", harness.src / "nowhere", cwd=one)
    harness.git_adds(harness.src / "tree", main=one)
    assert harness.reported() == {"one"}
