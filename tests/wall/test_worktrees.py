"""Worktrees that are not shown have placeholders, so that git inside does not give them up.

To git, a worktree whose folder does not exist was deleted: `git worktree prune` and `git gc`
remove its index, its HEAD, and what only they name.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rootsd.core.mount_plan import ConfinedRoot
from rootsd.core.wall import ProtectionPolicy
from rootsd.wall.kernel.orders import OrderKind
from support.polling import until
from support.repositories import git, make_repository
from support.wall_world import WallWorld
from support.walls import Wall, Weakness, root_at

pytestmark = [pytest.mark.needs("wall")]

_OLD_S = 5 * 30 * 86_400  # git gc keeps younger ones for three months
# Runs git in a folder, and leaves its exit status.
_GIT = (
    "result = subprocess.run(['git', '-C', {cwd!r}, *{words!r}], capture_output=True).returncode"
)


class World(WallWorld):
    """A repository with worktrees beside it, and walls that show only some of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder = folder
        self.stack = ExitStack()

    def add(self, path: Path, name: str = "") -> Path:
        """Add a worktree with a staged file, and make git think that it is old."""
        git("worktree", "add", "-b", name or path.name, path, cwd=self.main)
        (path / "staged").write_text(path.name)
        git("add", "staged", cwd=path)
        self.age()
        return path

    def age(self) -> None:
        then = time.time() - _OLD_S
        for path in (self.main / ".git" / "worktrees").rglob("*"):
            os.utime(path, (then, then), follow_symlinks=False)

    def wall(self, *roots: Path | ConfinedRoot, **options: Any) -> Wall:  # noqa: ANN401 - of Wall
        return self.stack.enter_context(super().wall(*roots, **options))

    def prune(self, wall: Wall, cwd: Path | None = None) -> None:
        """Do all that makes git give up worktrees. Each command must succeed."""
        for words in (["worktree", "prune"], ["gc", "-q", "--prune=now"]):
            line = _GIT.format(cwd=str(cwd or self.main), words=words)
            assert wall.run(line) == 0, words

    def lost(self, *paths: Path) -> list[Path]:
        """Return the worktrees that no longer work outside, or lost their staged file."""
        return [path for path in paths if _status(path) != "A  staged\n"]


def _status(path: Path) -> str:
    words = ["git", "-C", str(path), "status", "--short"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    with world.stack:
        yield world


@pytest.mark.parametrize("protection", ProtectionPolicy)
def test_git_inside_keeps_worktrees_that_are_not_shown(
    world: World, protection: ProtectionPolicy
) -> None:
    trees = [world.add(world.home / "src" / f"t{number}") for number in range(2)]
    trees += [world.add(world.home / "direct"), world.add(world.folder / "beside" / "deep" / "w")]
    gone = world.add(world.home / "src" / "gone")
    subprocess.run(["rm", "-r", gone], check=True)
    wall = world.wall(root_at(world.main), root_at(trees[0]), protection=protection)
    world.prune(wall)
    assert world.lost(*trees) == []
    if protection is ProtectionPolicy.NONE:
        assert not (world.main / ".git" / "worktrees" / "gone").exists()
    assert wall.run(f"result = os.listdir('{trees[1]}')") == [".git"]
    assert wall.error_of(f"os.unlink('{trees[1]}/.git')") == "EROFS"
    assert wall.error_of(f"os.rename('{world.home}/direct', '{world.home}/x')") in (
        "EBUSY",
        "EROFS",
    )


def test_without_placeholders_git_inside_removes_them(world: World) -> None:
    trees = [world.add(world.home / "src" / "t1"), world.add(world.home / "t2")]
    wall = world.wall(protection=ProtectionPolicy.NONE, weaknesses=[Weakness.NO_PLACEHOLDERS])
    world.prune(wall)
    assert world.lost(*trees) == trees


def test_worktrees_below_denied_projects_are_kept_also_one_that_appears_later(
    world: World,
) -> None:
    itself, inside = world.main / "own", world.main / "group" / "sub" / "w"
    trees = [world.add(itself), world.add(inside)]
    wall = world.wall(root_at(world.main, denied=(itself, world.main / "group")))
    trees.append(world.add(world.main / "group" / "late"))
    until(lambda: wall.error_of(f"os.stat('{trees[-1]}/.git')") == "")
    world.prune(wall)
    assert world.lost(*trees) == []
    assert wall.error_of(f"read('{inside}/staged')") == "ENOENT"
    # After the denial has ended, the placeholder is not in the way.
    wall.order(OrderKind.SET, root_at(world.main))
    assert wall.run(f"result = read('{inside}/staged').decode()") == "w"


@pytest.mark.parametrize("is_moved", [False, True])
def test_a_worktree_that_appears_later_is_kept(world: World, is_moved: bool) -> None:
    wall = world.wall()
    tree = world.add(world.home / "src" / "late")
    if is_moved:
        git("worktree", "move", tree, world.home / "other", cwd=world.main)
        tree = world.home / "other"
        world.age()
    until(lambda: wall.error_of(f"os.stat('{tree}/.git')") == "")
    world.prune(wall)
    assert world.lost(tree) == []
    # After a removal outside, git inside can use the path again.
    git("worktree", "remove", "--force", tree, cwd=world.main)
    until(lambda: wall.error_of(f"os.stat('{tree}/.git')") == "ENOENT")


_REMOVE = "subprocess.run(['rm', '-rf', '{}'], capture_output=True)"


@pytest.mark.parametrize("protection", ProtectionPolicy)
def test_the_index_of_a_hidden_worktree_survives_a_removal_of_its_record(
    world: World, protection: ProtectionPolicy
) -> None:
    trees = [world.add(world.home / "src" / "t"), world.add(world.main / "denied")]
    records = [world.main / ".git" / "worktrees" / tree.name for tree in trees]
    denied = root_at(world.main, denied=(trees[1],))
    wall = world.wall(denied, protection=protection)
    for record in records:
        wall.run(_REMOVE.format(record))
    world.prune(wall)
    is_kept = protection is not ProtectionPolicy.NONE
    assert world.lost(*trees) == ([] if is_kept else trees)
    if not is_kept:
        return
    git("add", "-A", cwd=trees[0])  # outside, git replaces the index
    (trees[0] / "more").touch()
    git("add", "more", cwd=trees[0])
    until(lambda: wall.error_of(f"append('{records[0]}/index')") == "EROFS")
    late = world.add(world.home / "src" / "late")
    record = world.main / ".git" / "worktrees" / "late"
    for name in ("index", "HEAD", "gitdir", "commondir"):
        until(lambda: wall.error_of(f"append('{record}/{name}')") == "EROFS")  # noqa: B023
    wall.run(_REMOVE.format(record))
    assert world.lost(late) == []


def test_git_works_in_a_worktree_as_soon_as_it_is_visible(world: World) -> None:
    tree = world.add(world.home / "src" / "t")
    wall = world.wall()
    for _ in range(2):
        wall.order(OrderKind.ADD, root_at(tree))
        wall.run(f"open('{tree}/staged', 'a').write('more')")
        assert wall.run(_GIT.format(cwd=str(tree), words=["add", "staged"])) == 0
        assert wall.run(_GIT.format(cwd=str(tree), words=["checkout", "-q", "--detach"])) == 0
        wall.order(OrderKind.REMOVE, paths=[tree])
        index = world.main / ".git" / "worktrees" / "t" / "index"
        assert wall.error_of(f"append('{index}')") == "EROFS"


@pytest.mark.parametrize("is_weak", [False, True])
def test_worktrees_of_repositories_anywhere_in_a_root_are_kept(
    world: World, is_weak: bool
) -> None:
    """They are below, behind, and inside many folders, other repositories, and packages."""
    for number in range(200):
        (world.main / f"a{number:03}" / "b").mkdir(parents=True)
    places = [
        world.main / "a150" / "b" / "c" / "deep",
        world.main / "node_modules" / "package",
        world.main / "a001" / "inner",
        world.main / "a001" / "inner" / "vendor" / "in-inner",
    ]
    trees = [hidden_tree(world, make_repository(place)) for place in places]
    bare = world.main / "a199" / "b" / "bare.git"
    git("clone", "-q", "--bare", places[0], bare, cwd=world.main)
    trees.append(hidden_tree(world, bare))
    wall = world.wall(weaknesses=[Weakness.NO_SEARCH] if is_weak else ())
    if not is_weak:
        until(lambda: all(wall.error_of(f"os.stat('{t}/.git')") == "" for t in trees))
    for place in (*places, bare):
        wall.run(_GIT.format(cwd=str(place), words=["worktree", "prune"]))
    near = trees.pop(2)  # found before the program sees the root
    assert world.lost(near) == []
    assert world.lost(*trees) == (trees if is_weak else [])


def test_a_small_root_is_searched_before_its_program_starts(world: World) -> None:
    for number in range(70):
        (world.main / f"a{number:02}").mkdir()
    place = world.main / "z" / "b" / "c" / "deep"
    tree = hidden_tree(world, make_repository(place))
    world.wall().run(_GIT.format(cwd=str(place), words=["worktree", "prune"]))
    assert world.lost(tree) == []


def test_the_search_leaves_out_no_repository(world: World) -> None:
    """It goes on in parts. There are more repositories, one after the other, than in one part."""
    trees = []
    for number in range(150):
        bare, tree = (
            world.main / "bare" / f"r{number:03}.git",
            world.home / "src" / f"r{number:03}",
        )
        (bare / "objects").mkdir(parents=True)
        (bare / "HEAD").write_text("ref: refs/heads/main\n")
        add_by_hand(tree, bare / "worktrees" / "tree")
        trees.append(tree)
    wall = world.wall()
    for tree in trees:
        until(lambda: wall.error_of(f"os.stat('{tree}/.git')") == "")  # noqa: B023 - called at once


def add_by_hand(tree: Path, record: Path) -> None:
    """Make a worktree as far as git looks at it when it prunes. Git itself takes much longer."""
    record.mkdir(parents=True)
    tree.mkdir(parents=True)
    for name, text in ("HEAD", "ref: refs/heads/main"), ("gitdir", f"{tree}/.git"):
        (record / name).write_text(f"{text}\n")
    (record / "commondir").write_text("../..\n")
    (tree / ".git").write_text(f"gitdir: {record}\n")


def hidden_tree(world: World, repository: Path) -> Path:
    """Add a worktree of a repository in the root, with a staged file, beside the root."""
    tree = world.home / "src" / f"of-{repository.name}"
    git("worktree", "add", "-q", "-b", f"for-{repository.name}", tree, cwd=repository)
    (tree / "staged").write_text("staged")
    git("add", "staged", cwd=tree)
    return tree


def test_a_relative_path_leads_to_the_worktree(world: World) -> None:
    """Git writes one since 2.48. An older git inside reads it from its working directory."""
    tree = world.add(world.home / "src" / "t")
    gitdir = world.main / ".git" / "worktrees" / "t" / "gitdir"
    gitdir.write_text("../../../../t/.git\n")
    assert world.wall().run(f"result = os.listdir('{tree}')") == [".git"]


def test_worktrees_of_submodules_and_nested_repositories_are_kept(world: World) -> None:
    nested = make_repository(world.main / "packages" / "nested")
    git("worktree", "add", world.home / "src" / "of-nested", cwd=nested)
    sub = make_repository(world.folder / "sub")
    git("-c", "protocol.file.allow=always", "submodule", "add", sub, "lib", cwd=world.main)
    git("worktree", "add", world.home / "src" / "of-lib", cwd=world.main / "lib")
    wall = world.wall()
    for folder in (nested, world.main / "lib"):
        world.prune(wall, folder)
    for name in ("of-nested", "of-lib"):
        git("status", cwd=world.home / "src" / name)


@pytest.mark.parametrize("place", ["src/t", "t"])
def test_a_published_worktree_replaces_its_placeholder_and_comes_back(
    world: World, place: str
) -> None:
    tree = world.add(world.home / place)
    wall = world.wall()
    for _ in range(2):
        assert wall.run(f"result = os.listdir('{tree}')") == [".git"]
        report = wall.order(OrderKind.ADD, root_at(tree))
        assert report.change.failed == ()
        assert wall.run(f"result = read('{tree}/staged').decode()") == "t"
        world.prune(wall)
        wall.order(OrderKind.REMOVE, paths=[tree])
        world.prune(wall)
    assert world.lost(tree) == []
    wall.order(OrderKind.SET)
    assert wall.error_of(f"os.stat('{tree}/.git')") == "ENOENT"


def test_a_program_learns_nothing_about_folders_that_are_no_worktrees(world: World) -> None:
    secret = make_repository(world.home / "secret")
    wall = world.wall()
    own = f"{world.main}/.git/worktrees/forged"
    for target in (secret, world.home / "none"):
        wall.run(
            f"os.makedirs('{own}', exist_ok=True);"
            f" open('{own}/gitdir', 'w').write('{target}/.git\\n')"
        )
    tree = world.add(world.home / "src" / "later")  # it tells that the events have been read
    until(lambda: wall.error_of(f"os.stat('{tree}/.git')") == "")
    assert wall.error_of(f"os.stat('{secret}')") == "ENOENT"


def test_what_a_program_has_made_where_a_worktree_appears_stays(world: World) -> None:
    wall = world.wall()
    wall.run(f"os.makedirs('{world.home}/x/y'); open('{world.home}/x/y/file', 'w').write('own')")
    tree = world.add(world.home / "x" / "w")
    until(lambda: wall.error_of(f"os.stat('{tree}/.git')") == "")
    assert wall.run(f"result = read('{world.home}/x/y/file').decode()") == "own"
