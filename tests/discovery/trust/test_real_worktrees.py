"""Worktrees of git and of agents: they inherit, or they stay pending with a reason."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rootsd.control.items import why_not_inherited
from rootsd.core.decide import InheritanceBlocker
from support.engine_harness import EngineHarness
from support.forged_worktrees import ForgedWorktrees, PreparedFolders
from support.repositories import git

pytestmark = pytest.mark.needs("linux")


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> PreparedFolders:
    return PreparedFolders(tmp_path_factory.mktemp("beforehand"), 10)


@pytest.fixture
def harness(world: EngineHarness, old: PreparedFolders) -> ForgedWorktrees:
    harness = ForgedWorktrees(world, old)
    harness.approve(harness.tool)
    return harness


def reason(harness: ForgedWorktrees, path: Path) -> str | None:
    return why_not_inherited(harness.catalog, harness.known(path))


def test_a_worktree_is_followed_through_all_git_commands(harness: ForgedWorktrees) -> None:
    one, two, three = (harness.src / name for name in ("one", "two", "three"))
    harness.git_adds(one)
    assert harness.reported() == {"tool", "one"}
    git("worktree", "lock", one, cwd=harness.tool)
    assert harness.reported() == {"tool", "one"}
    git("worktree", "unlock", one, cwd=harness.tool)
    git("worktree", "move", one, two, cwd=harness.tool)
    assert harness.reported() == {"tool", "two"}
    two.rename(three)
    assert harness.reported() == {"tool"}
    git("worktree", "repair", three, cwd=harness.tool)
    assert harness.reported() == {"tool", "three"}
    git("worktree", "remove", "--force", three, cwd=harness.tool)
    assert harness.reported() == {"tool"}
    harness.git_adds(three)
    assert harness.reported() == {"tool", "three"}


def test_a_worktree_that_was_moved_back_is_published_once_git_knows_it_again(
    harness: ForgedWorktrees,
) -> None:
    one, two = harness.src / "one", harness.src / "two"
    harness.git_adds(one)
    assert harness.reported() == {"tool", "one"}
    git("worktree", "move", one, two, cwd=harness.tool)
    assert harness.reported() == {"tool", "two"}
    two.rename(one)
    assert harness.reported() == {"tool"}
    git("worktree", "repair", one, cwd=harness.tool)
    assert harness.reported() == {"tool", "one"}


def test_a_folder_in_its_checkout_that_claims_to_be_a_worktree_opens_nothing_more(
    harness: ForgedWorktrees,
) -> None:
    """Clients read it as a part of the checkout, so it needs no approval of its own."""
    harness.forge(harness.new("tool/.claude/worktrees/x"))
    assert harness.reported() == {"tool", "tool/.claude/worktrees/x"}
    harness.deny(harness.tool)
    assert harness.reported() == set()


def test_a_main_checkout_that_returns_restores_its_worktrees(
    harness: ForgedWorktrees,
) -> None:
    harness.git_adds(harness.src / "one")
    assert harness.reported() == {"tool", "one"}
    harness.tool.rename(harness.src / "elsewhere")
    assert harness.reported() == set()
    (harness.src / "elsewhere").rename(harness.tool)
    assert harness.reported() == {"tool", "one"}


def test_worktrees_in_the_folders_of_agents_inherit(harness: ForgedWorktrees) -> None:
    places = {
        "tool/.claude/worktrees/fix",
        ".codex/worktrees/4f2a/tool",
        ".cursor/worktrees/tool/fix",
        "tool/.worktrees/fix",
        "tool-worktrees/fix",
    }
    for place in places:
        harness.git_adds(harness.src / place)
    assert harness.reported() == {"tool", *places}


def test_a_worktree_inside_a_worktree_inherits(harness: ForgedWorktrees) -> None:
    one = harness.git_adds(harness.src / "one")
    assert harness.reported() == {"tool", "one"}
    harness.git_adds(one / ".claude" / "worktrees" / "inner", main=one)
    assert harness.reported() == {"tool", "one", "one/.claude/worktrees/inner"}


def test_the_worktrees_of_a_bare_repository_inherit(harness: ForgedWorktrees) -> None:
    bare = harness.src / "lib.git"
    git("clone", "-q", "--bare", harness.tool, bare)
    harness.approve(bare)
    harness.git_adds(harness.src / "lib", main=bare)
    harness.git_adds(bare / "inside", main=bare)
    assert harness.reported() == {"tool", "lib.git", "lib", "lib.git/inside"}


def test_worktrees_with_relative_links_inherit(harness: ForgedWorktrees) -> None:
    one = harness.git_adds(harness.src / "one")
    # In place, as git does: no new file, no new birth time.
    for file, text in (
        (one / ".git", "gitdir: ../tool/.git/worktrees/one\n"),
        (harness.tool / ".git" / "worktrees" / "one" / "gitdir", "../../../../one/.git\n"),
    ):
        file.write_text(text)
    assert harness.reported() == {"tool", "one"}


def test_a_repair_that_writes_a_new_git_file_leaves_the_worktree_pending(
    harness: ForgedWorktrees,
) -> None:
    one = harness.git_adds(harness.src / "one")
    assert harness.reported() == {"tool", "one"}
    (one / ".git").rename(harness.src / "lost")
    git("worktree", "repair", cwd=harness.tool)
    assert harness.reported() == {"tool"}
    assert InheritanceBlocker.REPLACED.value in (reason(harness, one) or "")


def test_an_existing_folder_is_pending_with_a_reason(harness: ForgedWorktrees) -> None:
    docs = harness.old.move(harness.src / "docs")
    harness.git_adds(docs)
    assert harness.reported() == {"tool"}
    assert InheritanceBlocker.BORN_APART.value in (reason(harness, docs) or "")
    harness.approve(docs)
    assert harness.reported() == {"tool", "docs"}, "a person can approve it like any other project"


def test_older_worktrees_are_pending_until_a_person_confirms_them(
    harness: ForgedWorktrees,
) -> None:
    harness.deny(harness.tool)
    one, two = (harness.git_adds(harness.src / name) for name in ("one", "two"))
    harness.approve(harness.tool)
    assert harness.reported() == {"tool"}
    assert InheritanceBlocker.OLDER.value in (reason(harness, one) or "")
    assert "rootsd approve tool --worktrees" in (reason(harness, one) or "")
    harness.approve(harness.tool, confirm=[one])
    assert harness.reported() == {"tool", "one"}
    assert InheritanceBlocker.OLDER.value in (reason(harness, two) or "")


def test_a_worktree_whose_link_back_is_lost_says_so(harness: ForgedWorktrees) -> None:
    one = harness.git_adds(harness.src / "one")
    shutil.copytree(one, harness.src / "copy")
    assert harness.reported() == {"tool", "one"}
    copy = reason(harness, harness.src / "copy")
    assert copy is not None
    assert copy.startswith("no repository links back to this worktree; ")
    assert copy.endswith(f" git -C {harness.src / 'copy'} worktree repair")


def test_a_clock_that_was_ahead_does_not_make_an_older_worktree_younger(
    harness: ForgedWorktrees,
) -> None:
    harness.deny(harness.tool)
    one = harness.git_adds(harness.src / "one")
    harness.set_clock_back(days=1)
    harness.approve(harness.tool)
    assert harness.reported() == {"tool"}
    assert InheritanceBlocker.OLDER.value in (reason(harness, one) or "")
    harness.git_adds(harness.src / "two")
    assert harness.reported() == {"tool", "two"}
