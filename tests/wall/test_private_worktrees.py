"""Work in a worktree that a program made in its private home or /tmp is kept at the end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from rootsd.core.mount_plan import ViewEntry, ViewEntryKind
from rootsd.core.wall import WallEngine
from rootsd.wall.git.facts import Fact, FactKind
from rootsd.wall.git.left_behind import LeftBehindReport
from rootsd.wall.git.left_behind_reports import conclude_killed, left_behind
from rootsd.wall.git.private_worktrees import find_private_worktrees, flat_name, names_lost
from rootsd.wall.kernel.orders import OrderKind
from rootsd.wall.session.kept_names import kept_names, remove_kept, remove_left
from support.polling import until
from support.repositories import git, git_output
from support.wall_world import WallWorld
from support.walls import Wall

pytestmark = [pytest.mark.needs("wall")]


class World(WallWorld):
    """A repository as a root, and what is kept of private folders."""

    def end(self, wall: Wall) -> list[LeftBehindReport]:
        reports = super().end(wall)
        until(lambda: not [*self.slot.glob("run-*")])
        return reports

    def left(self) -> list[Path]:
        return [*self.slot.glob("left-*")]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def run_git(wall: Wall, *words: object) -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *map(str, words)]
    wall.run(f"subprocess.run({command!r}, check=True, capture_output=True)")


def write(wall: Wall, path: Path, content: str) -> None:
    wall.run(f"os.makedirs({str(path.parent)!r}, exist_ok=True)")
    wall.run(f"with open({str(path)!r}, 'w') as file: file.write({content!r})")


def add_worktree(wall: Wall, world: World, path: Path) -> None:
    """Make a worktree with a commit and an uncommitted file."""
    run_git(wall, "-C", world.main, "worktree", "add", path)
    run_git(wall, "-C", path, "commit", "--allow-empty", "-m", "inside")
    write(wall, path / "work", "uncommitted")


@pytest.mark.parametrize("name", ["", "tmp", "var/tmp"])
def test_a_worktree_in_a_private_folder_is_kept_and_works_outside(world: World, name: str) -> None:
    own_name = f"rootsd-test-{os.getpid()}"  # outside, /tmp belongs to others, too
    path = (Path("/", name) if name else world.home) / own_name
    with world.wall() as wall:
        add_worktree(wall, world, path)
        [report] = world.end(wall)
    [sentence] = report.sentences()
    [finding] = report.findings
    place = Path(os.fsdecode(finding.fact.path))
    assert sentence.startswith(f"left by agent: {place} has the files of the worktree {path},")
    assert (place / "work").read_text() == "uncommitted"
    assert world.left()[0] in place.parents
    assert not path.exists()
    new = world.main.parent / "rescued"
    shutil.move(place, new)
    git("worktree", "repair", new, cwd=world.main)
    assert git_output("status", "--porcelain", cwd=new) == "?? work"
    assert git_output("log", "-1", "--format=%s", cwd=new) == "inside"
    assert report.as_of_now().sentences() == [], "it was taken from there"


def test_it_is_told_while_the_program_runs(world: World) -> None:
    with world.wall() as wall:
        add_worktree(wall, world, world.home / "x")
        until(lambda: f"worktree {world.home}/x" in "".join(world.running_findings()))


def test_control_other_private_folders_are_removed(world: World) -> None:
    with world.wall() as wall:
        write(wall, world.home / "plain" / "work", "uncommitted")
        write(wall, world.home / "plain" / ".git", f"gitdir: {world.main}/.git/worktrees/y\n")
        run_git(wall, "-C", world.main, "worktree", "add", world.home / "x")
        run_git(wall, "-C", world.main, "worktree", "remove", world.home / "x")
        run_git(wall, "-C", world.main, "worktree", "add", world.main / ".worktrees" / "y")
        assert world.end(wall) == []
    assert world.left() == []


def test_the_names_in_the_home_with_data_that_go_are_found(world: World) -> None:
    """Empty files and folders are what the person's own are mounted on."""
    own = world.home / "own" / "deep" / "file"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    shown = ViewEntry(bytes(own), ViewEntryKind.READ, "shown")
    with world.wall(entries=[shown]) as wall:
        assert wall.run(f"result = read({str(own)!r}).decode()") == "mine"
        write(wall, world.home / "empty" / "file", "")
        write(wall, world.home / ".tool" / "file", "x")
        assert names_lost(bytes(world.slot), bytes(world.home)) == []
        write(wall, world.home / "backup" / "deep" / "file", "x")
        write(wall, world.home / "notes", "x")
        assert names_lost(bytes(world.slot), bytes(world.home)) == [b"backup", b"notes"]


def test_a_worktree_of_a_root_that_was_taken_away_is_kept(world: World) -> None:
    with world.wall() as wall:
        add_worktree(wall, world, world.home / "x")
        wall.order(OrderKind.SET)
        [report] = world.end(wall)
    assert [each.fact.kind for each in report.findings] == [FactKind.WORKTREE]
    assert len(world.left()) == 1


def test_a_killed_session_is_reported_before_anything_is_removed(world: World) -> None:
    with world.wall() as wall:
        add_worktree(wall, world, world.home / "x")
        (world.slot / "lock").touch()
        os.kill(wall.warden_pid, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{wall.warden_pid}").exists())
    remove_left(bytes(world.walls))  # before the report
    assert [*world.slot.glob("run-*/*/x/work")]
    [sentence] = left_behind(bytes(world.walls)).sentences
    assert sentence.startswith("found after agent was killed: ")
    assert f"has the files of the worktree {world.home}/x," in sentence
    remove_left(bytes(world.walls))
    with world.wall() as wall:
        world.end(wall)
    assert [path.read_text() for path in world.slot.glob("left-*/*/x/work")] == ["uncommitted"]


def test_without_a_worktree_nothing_of_a_killed_session_is_kept(world: World) -> None:
    with world.wall() as wall:
        write(wall, world.home / "plain", "")
        (world.slot / "lock").touch()
        os.kill(wall.warden_pid, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{wall.warden_pid}").exists())
    assert conclude_killed(bytes(world.walls)) == []
    remove_left(bytes(world.walls))
    assert not [*world.slot.glob("run-*")]
    assert world.left() == []


def test_clean_lists_and_removes_what_was_kept(world: World) -> None:
    with world.wall() as wall:
        add_worktree(wall, world, world.home / "x")
        world.end(wall)
    [kept] = kept_names(bytes(world.state))
    assert kept.size > 0
    remove_kept(kept)
    assert world.left() == []


_HOSTILE = {
    "the folder is a link": "mv {tree} {tree}-2; ln -s {tree}-2 {tree}",
    "the record names no folder": "mv {tree} {tree}-2",
    "the record leads outside": "echo /etc/.git > {record}/gitdir",
    "the record leads above": "echo {home}/../x/.git > {record}/gitdir",
    "the record is no path": r"printf '%s\0/.git' {home}/x > {record}/gitdir",
    "the record is empty": "> {record}/gitdir",
    "the record is a FIFO": "rm {record}/gitdir; mkfifo {record}/gitdir",
    "the record is a link": "mv {record}/gitdir {record}/2; ln -s 2 {record}/gitdir",
    "the record is large": "head -c 9000000 /dev/zero > {record}/gitdir",
    "the way back leads elsewhere": "echo gitdir: /etc > {tree}/.git",
    "the way back is a FIFO": "rm {tree}/.git; mkfifo {tree}/.git",
    "the way back is a link": "mv {tree}/.git {tree}/2; ln -s 2 {tree}/.git",
}


@pytest.mark.parametrize("change", ["", *_HOSTILE])
def test_what_only_looks_like_a_worktree_is_not_kept(world: World, change: str) -> None:
    git("worktree", "add", world.home / "x", cwd=world.main)
    tree = world.slot / "run-1" / os.fsdecode(flat_name(bytes(world.home))) / "x"
    tree.parent.mkdir(parents=True)
    shutil.move(world.home / "x", tree)
    places = {"home": world.home, "tree": tree, "record": world.main / ".git" / "worktrees" / "x"}
    command = _HOSTILE.get(change, "").format(**places)
    subprocess.run(["sh", "-ec", command], check=True)
    found = [*find_private_worktrees(bytes(world.slot), [bytes(world.main / ".git")])]
    control = [Fact(FactKind.WORKTREE, bytes(tree), bytes(world.home / "x"))]
    assert found == ([] if change else control)


def test_with_the_static_engine_it_is_kept(world: World) -> None:
    with world.wall(engine=WallEngine.STATIC) as wall:
        home = Path(wall.run("result = os.environ['HOME']"))
        add_worktree(wall, world, home / "x")
        [report] = world.end(wall)
    [place] = world.slot.glob("left-*/home/x")
    assert [each.fact.path for each in report.findings] == [bytes(place)]
    assert (place / "work").read_text() == "uncommitted"
