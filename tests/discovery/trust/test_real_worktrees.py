"""What git and agents do with worktrees: they inherit, or they wait and say why."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rootsd.control.items import why_not_inherited
from rootsd.core.decide import InheritanceBlocker
from support.exploring import World, open_world, world
from support.forging import OldFolders, Village
from support.repos import git

__all__ = ["open_world", "world"]

pytestmark = pytest.mark.needs("linux")


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> OldFolders:
    return OldFolders(tmp_path_factory.mktemp("beforehand"), 10)


@pytest.fixture
def village(world: World, old: OldFolders) -> Village:
    village = Village(world, old)
    village.approve(village.tool)
    return village


def reason(village: Village, path: Path) -> str | None:
    return why_not_inherited(village.catalog, village.known(path))


def test_added_moved_locked_repaired_removed_and_added_again(village: Village) -> None:
    one, two, three = (village.src / name for name in ("one", "two", "three"))
    village.git_adds(one)
    assert village.told() == {"tool", "one"}
    git("worktree", "lock", one, cwd=village.tool)
    assert village.told() == {"tool", "one"}
    git("worktree", "unlock", one, cwd=village.tool)
    git("worktree", "move", one, two, cwd=village.tool)
    assert village.told() == {"tool", "two"}
    two.rename(three)
    assert village.told() == {"tool"}
    git("worktree", "repair", three, cwd=village.tool)
    assert village.told() == {"tool", "three"}
    git("worktree", "remove", "--force", three, cwd=village.tool)
    assert village.told() == {"tool"}
    village.git_adds(three)
    assert village.told() == {"tool", "three"}


def test_a_worktree_that_led_elsewhere_for_a_time_waits_and_says_why(village: Village) -> None:
    one, two = village.src / "one", village.src / "two"
    village.git_adds(one)
    assert village.told() == {"tool", "one"}
    git("worktree", "move", one, two, cwd=village.tool)
    assert village.told() == {"tool", "two"}
    two.rename(one)
    assert village.told() == {"tool"}
    git("worktree", "repair", one, cwd=village.tool)
    assert village.told() == {"tool"}
    assert InheritanceBlocker.REPLACED.value in (reason(village, one) or "")


def test_a_main_checkout_that_comes_back_brings_its_worktrees_back(village: Village) -> None:
    village.git_adds(village.src / "one")
    assert village.told() == {"tool", "one"}
    village.tool.rename(village.src / "elsewhere")
    assert village.told() == set()
    (village.src / "elsewhere").rename(village.tool)
    assert village.told() == {"tool", "one"}


@pytest.mark.parametrize(
    "place",
    [
        "tool/.claude/worktrees/fix",
        ".codex/worktrees/4f2a/tool",
        ".cursor/worktrees/tool/fix",
        "tool/.worktrees/fix",
        "tool-worktrees/fix",
    ],
)
def test_the_worktree_folders_of_agents(village: Village, place: str) -> None:
    village.git_adds(village.src / place)
    assert village.told() == {"tool", place}


def test_a_worktree_that_an_agent_adds_inside_of_a_worktree(village: Village) -> None:
    one = village.git_adds(village.src / "one")
    assert village.told() == {"tool", "one"}
    village.git_adds(one / ".claude" / "worktrees" / "inner", main=one)
    assert village.told() == {"tool", "one", "one/.claude/worktrees/inner"}


def test_the_worktrees_of_a_bare_repository(village: Village) -> None:
    bare = village.src / "lib.git"
    git("clone", "-q", "--bare", village.tool, bare)
    village.approve(bare)
    village.git_adds(village.src / "lib", main=bare)
    village.git_adds(bare / "inside", main=bare)
    assert village.told() == {"tool", "lib.git", "lib", "lib.git/inside"}


def test_relative_links_as_newer_versions_of_git_write_them(village: Village) -> None:
    one = village.git_adds(village.src / "one")
    # In place, as git does: no new file, no new birth time.
    for file, text in (
        (one / ".git", "gitdir: ../tool/.git/worktrees/one\n"),
        (village.tool / ".git" / "worktrees" / "one" / "gitdir", "../../../../one/.git\n"),
    ):
        file.write_text(text)
    assert village.told() == {"tool", "one"}


def test_a_repair_that_writes_a_new_git_file_leaves_the_worktree_waiting(
    village: Village,
) -> None:
    one = village.git_adds(village.src / "one")
    assert village.told() == {"tool", "one"}
    (one / ".git").rename(village.src / "lost")
    git("worktree", "repair", cwd=village.tool)
    assert village.told() == {"tool"}
    assert InheritanceBlocker.REPLACED.value in (reason(village, one) or "")


def test_a_folder_that_existed_waits_and_says_why(village: Village) -> None:
    docs = village.old.move(village.src / "docs")
    village.git_adds(docs)
    assert village.told() == {"tool"}
    assert InheritanceBlocker.BORN_APART.value in (reason(village, docs) or "")
    village.approve(docs)
    assert village.told() == {"tool", "docs"}, "a person can approve it like any other project"


def test_older_worktrees_wait_until_a_person_confirms_them(village: Village) -> None:
    village.deny(village.tool)
    one, two = (village.git_adds(village.src / name) for name in ("one", "two"))
    village.approve(village.tool)
    assert village.told() == {"tool"}
    assert InheritanceBlocker.OLDER.value in (reason(village, one) or "")
    assert "rootsd approve tool --worktrees" in (reason(village, one) or "")
    village.approve(village.tool, confirm=[one])
    assert village.told() == {"tool", "one"}
    assert InheritanceBlocker.OLDER.value in (reason(village, two) or "")


def test_a_worktree_whose_link_back_is_lost_says_so(village: Village) -> None:
    one = village.git_adds(village.src / "one")
    shutil.copytree(one, village.src / "copy")
    assert village.told() == {"tool", "one"}
    copy = reason(village, village.src / "copy")
    assert copy == "no repository links back to this worktree"


def test_a_clock_that_was_ahead_makes_no_older_worktree_younger(
    village: Village,
) -> None:
    village.deny(village.tool)
    one = village.git_adds(village.src / "one")
    village.set_clock_back(days=1)
    village.approve(village.tool)
    assert village.told() == {"tool"}
    assert InheritanceBlocker.OLDER.value in (reason(village, one) or "")
    village.git_adds(village.src / "two")
    assert village.told() == {"tool", "two"}
