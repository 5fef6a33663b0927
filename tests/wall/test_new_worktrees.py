"""With `--worktrees`, `git worktree add ../NAME` works inside, and reaches no other folder."""

from __future__ import annotations

import os
import shlex
import socket
from pathlib import Path
from typing import Any

import pytest

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot
from rootsd.net.unix_socket import address_of
from rootsd.wall.kernel import new_worktrees
from rootsd.wall.kernel.orders import OrderKind
from rootsd.wall.session.worktree_front import path_inside
from support.polling import until
from support.repositories import git, git_output, make_repository
from support.wall_world import WallWorld
from support.walls import Refused, Wall, root_at

pytestmark = [pytest.mark.needs("wall")]


class World(WallWorld):
    """A checkout that is a root, and what lies beside it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.src = self.main.parent

    def wall(self, *roots: Path | ConfinedRoot, **options: Any) -> Wall:  # noqa: ANN401 - of Wall
        return super().wall(*roots, **{"has_new_worktrees": True, **options})

    def start(self, wall: Wall, command: str) -> None:
        """Start a command of a shell inside, in the checkout."""
        path = os.fsdecode(path_inside(os.environb[b"PATH"])[b"PATH"])
        line = f"PATH={shlex.quote(path)}; {command}"
        wall.run(
            f"SPACE['p'] = subprocess.Popen(['sh', '-c', {line!r}], cwd={str(self.main)!r},"
            " stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)"
        )

    def wait(self, wall: Wall) -> str:
        """Return what the command printed until its end."""
        said: str = wall.run("result = p.communicate()[0]")
        return said

    def beside(self) -> set[str]:
        return {each.name for each in self.src.iterdir()}


def ask(wall: Wall, path: Path | str) -> str:
    """Ask the warden for a folder as any program can, and return its answer."""
    name = f"/run/user/{os.geteuid()}/rootsd-worktrees"
    said: str = wall.run(
        "SPACE['s'] = s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.settimeout(60);"
        f" s.connect({name!r}); s.send(os.fsencode({str(path)!r}));"
        " result = s.recv(65536).decode()"
    )
    return said


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_git_makes_a_worktree_beside_its_checkout_that_works_once_it_is_a_root(
    world: World,
) -> None:
    tree = world.src / "main-x"
    with world.wall() as wall:
        world.start(wall, "git worktree add -b feature/x ../main-x; echo $?")
        until((tree / "d0" / "f0").exists)
        wall.order(OrderKind.ADD, root_at(tree))
        assert world.wait(wall).splitlines()[-1] == "0"
        assert wall.error_of(f"append('{tree}/.git')") == "EROFS"
        world.start(
            wall,
            "cd ../main-x && echo > new && git add new && git commit -q -m x"
            " && git switch -q -c y && git branch --show-current",
        )
        assert world.wait(wall) == "y\n"
    assert git_output("log", "--format=%s", "-1", "y", cwd=world.main) == "x"


def test_git_leaves_a_root_as_it_is_and_removes_other_worktrees(world: World) -> None:
    tree = world.src / "main-x"
    git("worktree", "add", tree, cwd=world.main)
    before = sorted(tree.rglob("*"))
    with world.wall(world.main, tree) as wall:
        world.start(
            wall,
            "git worktree remove --force ../main-x; echo $?;"
            " git worktree add -q -b x .x; git worktree remove .x && echo removed; ls .x",
        )
        said = world.wait(wall)
    refused, *removed = said.splitlines()
    assert refused == f"rootsd: {tree} is a root here; remove it outside"
    assert removed[:2] == ["128", "removed"]
    assert sorted(tree.rglob("*")) == before
    git("worktree", "remove", tree, cwd=world.main)


def test_without_the_option_git_fails_and_there_is_nothing_to_ask(world: World) -> None:
    with world.wall(has_new_worktrees=False) as wall:
        world.start(wall, "git worktree add ../main-x; echo $?")
        assert "Read-only file system" in world.wait(wall)
        with pytest.raises(Refused, match="ENOENT"):
            ask(wall, world.src / "main-x")
    assert world.beside() == {"main"}


def test_no_request_reaches_another_name_or_an_existing_folder(world: World) -> None:
    outside = world.home / "outside"
    outside.mkdir()
    node = make_repository(world.src / "node")
    plain = world.src / "plain"
    plain.mkdir()
    read_only = make_repository(world.src / "ro")
    tree = world.src / "tree"
    git("worktree", "add", tree, cwd=node)
    (world.src / "link").symlink_to(outside)
    (world.src / "main-there").mkdir()
    (world.src / "main-link").symlink_to(outside)
    roots = [root_at(each) for each in (world.main, node, plain, tree)]
    before = world.beside()
    with world.wall(*roots, root_at(read_only, Access.READ)) as wall:
        for name in (
            "other", "bin", "node_modules", "main", "mainx", "main-", "main-\n", "main-x/y",
            "main-x/", "./main-x", "../src/main-x", "link/main-x", "plain-x", "ro-x", "tree-x",
            "main/x", "main/.git/x", "main-there", "main-link", ".git", "main-\u202e", "",
        ):  # fmt: skip
            assert ask(wall, f"{world.src}/{name}") != "made", name
        for path in (world.home / "main-x", Path("/main-x"), outside / "main-x", "main-x"):
            assert ask(wall, path) != "made"
        assert ask(wall, world.src / "main-x") == "made"  # the control
        wall.order(OrderKind.SET, root_at(node), denied=[world.src / "node-x"])
        assert ask(wall, world.src / "node-x") != "made"
        assert ask(wall, world.src / "main-y") != "made"  # its checkout is gone
    assert world.beside() - {"main-x"} == before
    assert not any(outside.iterdir())


def test_a_folder_in_which_git_put_nothing_is_removed(world: World) -> None:
    with world.wall() as wall:
        world.start(wall, "git worktree add ../main-x nosuch; echo $?")
        said = world.wait(wall)
        assert said.splitlines()[-1] == "128"
        assert "rootsd" not in said
        until(lambda: world.beside() == {"main"})
        world.start(wall, "git worktree add ../other; echo $?")
        assert f"rootsd: {world.src}/other was not made: call it main-NAME" in world.wait(wall)


def test_a_folder_that_is_no_root_at_the_end_is_reported(world: World) -> None:
    made = world.src / "main-x"
    with world.wall() as wall:
        assert ask(wall, made) == "made"
        wall.run(f"open('{made}/evil', 'w').close(); s.close()")
        [report] = world.end(wall)
    [sentence] = report.sentences()
    assert sentence == (
        f"left by agent: {made} has entries at which rootsd did not look; look at it before you"
        " use git there"
    )


def test_programs_lose_the_folder_with_its_checkout(world: World) -> None:
    made = world.src / "main-x"
    with world.wall() as wall:
        assert ask(wall, made) == "made"
        assert wall.error_of(f"open('{made}/file', 'w').close()") == ""  # the control
        wall.order(OrderKind.REMOVE, paths=[world.main])
        until(lambda: wall.error_of(f"os.listdir('{made}')") == "ENOENT")


def test_a_message_about_worktrees_is_no_request(world: World) -> None:
    with world.wall() as wall:
        world.start(
            wall, "git commit -q --allow-empty -m 'a worktree add b' && git log -1 --format=%s"
        )
        assert world.wait(wall) == "a worktree add b\n"


def test_programs_lose_a_folder_that_is_no_root_in_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_worktrees, "_MAX_MADE", 2)
    world.walls.mkdir(parents=True)
    worktrees = new_worktrees.NewWorktrees(os.fsencode(world.walls))
    roots = {bytes(world.main): root_at(world.main)}
    full, empty = world.src / "main-full", world.src / "main-empty"
    for path in (full, empty):
        worktrees._make(bytes(path), roots, ())
    (full / "file").touch()
    with pytest.raises(new_worktrees.Refused, match="at most 2"):
        worktrees._make(bytes(world.src / "main-3"), roots, ())
    assert worktrees.settle(roots) == []
    assert worktrees.roots.keys() == {bytes(full), bytes(empty)}
    assert worktrees.settle(roots, worktrees.deadline) == [bytes(full)]
    worktrees.settle(roots, float("inf"))
    assert worktrees.roots == {}
    worktrees._listener.close()
    assert world.beside() == {"main", "main-full"}


def test_a_worktree_that_is_made_outside_meanwhile_works_once_it_is_a_root(world: World) -> None:
    tree, head = world.src / "main-x", world.main / ".git" / "worktrees" / "main-x" / "HEAD"
    with world.wall(has_new_worktrees=False) as wall:
        git("worktree", "add", tree, cwd=world.main)
        until(lambda: wall.error_of(f"append('{head}')") == "EROFS")  # it is hidden
        (world.main / "x").touch()
        git("config", "core.editor", "vi -S ./x", cwd=world.main)  # so all is protected again
        until(lambda: wall.error_of(f"append('{world.main}/x')") == "EROFS")
        wall.order(OrderKind.ADD, root_at(tree))
        world.start(wall, "cd ../main-x && git switch -q -c y && git branch --show-current")
        assert world.wait(wall) == "y\n"


@pytest.mark.parametrize(("is_published", "said"), [(True, b""), (False, b"is not approved")])
def test_git_inside_ends_once_it_is_known_whether_the_worktree_is_a_root(
    world: World, is_published: bool, said: bytes
) -> None:
    world.walls.mkdir(parents=True)
    folder = os.fsencode(world.walls)
    worktrees = new_worktrees.NewWorktrees(folder)
    path, roots = bytes(world.src / "main-x"), {bytes(world.main): root_at(world.main)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.settimeout(0)
        with address_of(folder + new_worktrees.SOCKET) as address:
            client.connect(address)
        client.send(path)
        worktrees.attend([worktrees._listener.fileno()], roots, ())
        asking = worktrees.attend([*worktrees._clients], roots, ())
        worktrees.shown(asking, [path])
        assert client.recv(100) == new_worktrees.MADE
        (world.src / "main-x" / "file").touch()
        client.send(new_worktrees.DONE)
        worktrees.attend(asking, roots, ())
        worktrees.tell(roots)
        with pytest.raises(BlockingIOError):
            client.recv(100)
        roots |= {path: root_at(world.src / "main-x")} if is_published else {}
        worktrees.settle(roots, float("inf"))
        worktrees.tell(roots)
        answer = client.recv(200)
        assert said in answer
        assert bool(answer) is not is_published
    worktrees._listener.close()
