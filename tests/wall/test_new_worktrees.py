"""With `--worktrees`, `git worktree add ../NAME` works inside, and reaches no other folder."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot, desired_mounts
from rootsd.net.unix_socket import address_of
from rootsd.wall.git.protected import Protection
from rootsd.wall.kernel import new_worktrees, worktree_removal
from rootsd.wall.kernel.orders import OrderKind
from rootsd.wall.kernel.points import Point
from rootsd.wall.kernel.tree import SharedTree, _Shown
from rootsd.wall.kernel.worktree_removal import Refused as NotMade
from rootsd.wall.kernel.worktrees import RootWorktrees
from rootsd.wall.session import worktree_inside
from rootsd.wall.session.worktree_front import path_inside
from support.folder_identity import identity_of
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
        line = f"PATH={shlex.quote(path_inside(os.environ['PATH']))}; {command}"
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


def approved(path: Path, access: Access = Access.READ_WRITE) -> ConfinedRoot:
    """Return a root as the daemon sends it."""
    return root_at(path, access)._replace(identity=identity_of(path))


def beside_main(world: World, name: str) -> Path:
    """Add a worktree with ignored files that programs inside cannot remove."""
    tree = world.src / name
    git("worktree", "add", "-b", name, tree, cwd=world.main)
    (world.main / ".git" / "info" / "exclude").write_text(".envrc\n.vscode\nbuilt\n")
    for file in (".envrc", ".vscode/tasks.json", "built/deep/file"):
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        (tree / file).write_text(file)
    (tree / "built" / "link").symlink_to(world.main)
    return tree


@pytest.mark.parametrize(("start", "name"), [("main", "main-x"), ("main-x/built", "../../main-x")])
def test_git_removes_a_worktree_that_is_a_root_and_can_make_it_again(
    world: World, start: str, name: str
) -> None:
    tree, other = beside_main(world, "main-x"), beside_main(world, "main-y")
    with world.wall(approved(world.main), approved(tree), approved(other)) as wall:
        world.start(
            wall, f"cd ../{start} && git worktree remove {name} && cd {other} && git worktree list"
        )
        assert [line.split()[-1] for line in world.wait(wall).splitlines()] == [
            "[main]",
            "[main-y]",
        ]
        assert world.beside() == {"main", "main-y"}
        world.start(wall, "git worktree add -q ../main-x main-x && echo made")
        until((tree / "d0" / "f0").exists)
        wall.order(OrderKind.ADD, approved(tree))
        assert world.wait(wall) == "made\n"
        assert wall.error_of(f"append('{tree}/.git')") == "EROFS"
    assert not (tree / "built").exists()
    assert (other / ".envrc").exists()
    assert (world.main / "d0" / "f0").exists()  # a link in the worktree leads to this checkout


def test_git_refuses_what_it_refuses_outside(world: World) -> None:
    tree = beside_main(world, "main-x")
    steps = [
        ("../main-x", "use --force to delete it"),
        ("-f ../main-x", "cannot remove a locked working tree"),
        ("-f ../main-x ../main", "usage:"),
        ("-f ../main", "is a main working tree"),
    ]
    with world.wall(approved(world.main), approved(tree)) as wall:
        world.start(wall, f"touch {tree}/new && git worktree remove {steps[0][0]}")
        assert steps[0][1] in world.wait(wall)
        git("worktree", "lock", tree, cwd=world.main)
        for words, why in steps[1:]:
            world.start(wall, f"git worktree remove {words}")
            assert why in world.wait(wall)
    assert (tree / "built" / "deep" / "file").exists()
    assert "main-x" in git_output("worktree", "list", cwd=world.main)


def add_tree(world: World, name: str) -> None:
    """Add a worktree in the state that its name says: clean, locked, modified, or untracked."""
    tree = world.src / name
    git("worktree", "add", "--detach", tree, cwd=world.main)
    if name == "main-l":
        git("worktree", "lock", tree, cwd=world.main)
    if name == "main-m":
        (tree / "d0" / "f0").write_text("changed")
    if name == "main-u":
        (tree / "new").touch()


def trees(world: World) -> set[str]:
    return {str(each.parent.relative_to(world.src)) for each in world.src.glob("**/.git")}


_REFUSED = "worktree remove --dry-run --prune-if-clean ../main-u"
# Where git starts, and the words after it.
_LINES = (
    ("main", "worktree remove --dry-run ../main-c"),
    ("main", "worktree remove -n ../main-c"),
    ("main", "worktree remove -h ../main-c"),
    ("main", "worktree remove ../main-c --help"),
    ("main", "worktree remove -fn ../main-u"),
    ("main", _REFUSED),
    ("main", "worktree remove --no-force ../main-u"),
    ("main", "worktree remove -f --no-force ../main-u"),
    ("main", "worktree remove --force=1 ../main-u"),
    ("main", "worktree remove ../main-u -- --force"),
    ("main", "worktree remove -- -f"),
    ("main-c", "worktree remove --force ''"),
    ("main", "worktree remove --force '' ../main-c"),
    ("main", "worktree remove ../main-c ../main-d"),
    ("main", "worktree remove -"),
    ("main", "worktree remove ../main-m"),
    ("main", "-c status.showUntrackedFiles=all worktree remove ../main-u"),
    ("main", "worktree remove -f ../main-l"),
    ("main", "worktree remove ../main -f"),
    ("main", "worktree remove main-d"),
    ("main", "rm -rq worktree remove ../main-c"),
    ("main-c/d0", "worktree remove --force ''"),
    ("main", "worktree remove nosuch"),
    ("main", "worktree remove ../main-c"),
    ("main", "worktree remove ../main-d"),
    ("main", "-C .. -C main --no-pager worktree remove main-c"),
    ("main", "-c status.showUntrackedFiles=no worktree remove ../main-u"),
    ("main", "worktree remove link/"),
    ("main", "worktree remove deep/main-d"),
    ("main", "-C in-deep worktree remove ../main-d"),
    ("main", "worktree remove ../main-u --fo"),
    ("main", "worktree remove -f -- ../main-m"),
    ("main", "worktree remove ../main-l -ff"),
    ("main", "--git-dir=.git worktree remove --no-force -f ../main-m"),
)


def test_git_removes_inside_what_it_removes_outside(tmp_path: Path) -> None:
    """The control is a `git` in front that takes each option for `--force`."""
    outside, inside = World(tmp_path / "outside"), World(tmp_path / "inside")
    names = {"main-c", "main-d", "main-l", "main-m", "main-u", "deep/main-d"}
    for world in (outside, inside):
        for name in names:
            add_tree(world, name)
        (world.main / "link").symlink_to("../main-c")
        (world.main / "in-deep").symlink_to("../deep/main-d")
    removed = set[str]()
    with inside.wall(*(approved(inside.src / name) for name in ("main", *names))) as wall:
        for start, words in _LINES:
            line = f"git {words} >/dev/null 2>&1; echo $?"
            status = subprocess.check_output(["sh", "-c", line], cwd=outside.src / start)
            inside.start(wall, f"cd ../{start}; {line}")
            assert (words, inside.wait(wall)) == (words, status.decode())
            gone = names - trees(outside)
            assert (words, names - trees(inside)) == (words, gone)
            removed |= gone
            for name in gone:
                add_tree(outside, name)
                add_tree(inside, name)
                wall.order(OrderKind.ADD, approved(inside.src / name))
        assert removed == names
        text = Path(worktree_inside.__file__).read_text()
        (inside.main / "loose.py").write_text(text.replace('return b"", 0', "force += 1"))
        command = f"loose.py /run/user/{os.geteuid()}/rootsd-worktrees {_REFUSED}"
        inside.start(wall, f"{sys.executable} -I -S {command}")
        assert inside.wait(wall) == ""
        assert names - trees(inside) == {"main-u"}


def test_git_removes_no_worktree_whose_checkout_is_not_a_writable_root(world: World) -> None:
    tree = beside_main(world, "main-x")
    inner = make_repository(tree / "built" / "inner")
    for roots in (
        [approved(world.main, Access.READ), approved(tree)],
        [approved(world.main), approved(tree, Access.READ)],
        [approved(world.main), approved(tree), approved(inner, Access.READ)],
        [approved(world.main), root_at(tree)],
    ):
        with world.wall(*roots) as wall:
            world.start(wall, "git worktree remove --force ../main-x; echo $?")
            refused, status = world.wait(wall).splitlines()
        assert refused.startswith(f"rootsd: {tree} is a root here: ")
        assert refused.endswith(f"; outside: git -C {world.main} worktree remove {tree}")
        assert status == "128"
        assert (tree / "built" / "deep" / "file").exists()


def test_a_program_that_fakes_the_removal_gains_nothing(world: World) -> None:
    tree, other = beside_main(world, "main-x"), beside_main(world, "main-y")
    record = world.main / ".git" / "worktrees" / "main-x"
    with world.wall(approved(world.main), approved(tree), approved(other)) as wall:

        def remove(path: Path | str) -> str:
            return ask(wall, f"remove {path}")

        assert "d0 is still there" in remove(tree)
        assert wall.error_of(f"append('{tree}/.git')") == "EROFS"  # it is a root again
        wall.run(f"subprocess.run(['rm', '-rf', '{tree}/built', '{tree}/d0'], check=True)")
        wall.run(f"os.symlink('{world.home}', '{tree}/link')")
        assert "link is still there" in remove(tree)
        for path in (world.main, world.src, f"{tree}/", f"{world.src}/./main-x", record, "", "/"):
            assert "is a root here" in remove(path)
        # It cannot make the record that of another worktree.
        assert wall.error_of(f"open('{record}/gitdir', 'w')") == "EROFS"
        assert wall.error_of(f"os.rename('{record}', '{record}2')") == "EBUSY"
        # Git outside has given it a new record, or somebody has replaced it.
        old = tree.rename(world.src / "old")
        tree.mkdir()
        (tree / ".git").write_text(f"gitdir: {record}\n")
        assert "it or its checkout is another folder now" in remove(tree)
        (tree / ".git").unlink()
        tree.rmdir()
        old.rename(tree)
        (tree / ".git").rename(tree / ".other")
        assert remove(tree) != "done"
        (tree / ".other").rename(tree / ".git")
        assert (tree / ".envrc").exists()
    git("worktree", "remove", "--force", tree, cwd=world.main)
    assert (other / "built" / "deep" / "file").exists()


def test_after_a_removal_that_stopped_anywhere_git_outside_can_finish_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stops at one change of the disk after the other, as at a kill."""
    other, unlimited = beside_main(world, "main-y"), 1000
    changes = ((worktree_removal, "remove_tree"), (os, "unlink"), (os, "rmdir"))
    for stop in (0, 1, 4, 5, 6, 7, 8, unlimited):
        tree, left = beside_main(world, f"main-{stop}"), iter(range(stop))
        subprocess.run(["rm", "-r", tree / "built", tree / "d0"], check=True)
        with monkeypatch.context() as patch:
            for module, name in changes:
                patch.setattr(module, name, stopping(getattr(module, name), left))
            with nullcontext() if stop == unlimited else pytest.raises(KilledHere):
                worktree_removal.remove_worktree(shown_worktree(world, tree))
        if stop == unlimited:
            break
        git("worktree", "prune", cwd=world.main)
        if tree.name in git_output("worktree", "list", cwd=world.main):
            git("worktree", "remove", "--force", tree, cwd=world.main)
        assert not tree.exists() or not any(tree.iterdir())
        git("branch", "-D", tree.name, cwd=world.main)
    assert not tree.exists()
    listed = git_output("worktree", "list", cwd=world.main).splitlines()
    assert [line.split()[0] for line in listed] == [str(world.main), str(other)]
    assert (other / ".envrc").exists()


def test_a_checkout_that_was_replaced_is_noticed_before_anything_is_removed(world: World) -> None:
    tree = beside_main(world, "main-x")
    shown = shown_worktree(world, tree)
    old = world.main.rename(world.src / "old")
    subprocess.run(["cp", "-a", old, world.main], check=True)
    with pytest.raises(NotMade, match="its checkout is another folder now"):
        worktree_removal.remove_worktree(shown)
    assert (tree / ".envrc").exists()
    assert (world.main / ".git" / "worktrees" / "main-x").exists()


def test_the_record_of_a_checkout_that_was_lost_meanwhile_has_no_covers(world: World) -> None:
    main, tree = bytes(world.main), bytes(beside_main(world, "main-x"))
    mounts = desired_mounts([approved(world.main), approved(world.src / "main-x")], {})
    shared = SharedTree.__new__(SharedTree)
    shared._shown = {
        path: _Shown(mount, -1, Point(b"", -1), b"", (), None) for path, mount in mounts.items()
    }
    shared._worktrees = RootWorktrees.__new__(RootWorktrees)
    shared._worktrees.records = {main: {tree: b".git/worktrees/main-x"}}
    shown = shared.worktree_at(tree)
    assert shown is not None
    del shared._shown[main]
    shown.uncover_record()


class KilledHere(BaseException):
    """Where a test stops a removal."""


def stopping(change: Callable[..., None], left: Iterator[int]) -> Callable[..., None]:
    """Return a change of the disk that is made only while numbers are left."""

    def make(*args: Any, **options: Any) -> None:  # noqa: ANN401
        if next(left, None) is None:
            raise KilledHere
        change(*args, **options)

    return make


def shown_worktree(world: World, tree: Path) -> worktree_removal.ShownWorktree:
    mounts = desired_mounts([approved(world.main), approved(tree)], {})
    protected = dict.fromkeys((b".git", b".envrc", b".vscode"), Protection.READ_ONLY)
    return worktree_removal.ShownWorktree(
        mounts[bytes(tree)],
        mounts[bytes(world.main)],
        b".git/worktrees/" + os.fsencode(tree.name),
        protected,
        lambda: None,
    )


def test_a_root_whose_checkout_is_away_is_not_taken_for_a_worktree(world: World) -> None:
    """Its record is on a disk that is not there now, and a program has made one of its name."""
    tree = beside_main(world, "main-x")
    record = world.main / ".git" / "worktrees" / "main-x"
    (tree / ".git").write_text(f"gitdir: {world.home}/away/.git/worktrees/main-x\n")
    with world.wall(approved(world.main), approved(tree)) as wall:
        assert "its .git file does not lead to its checkout" in ask(wall, f"may remove {tree}")
        (tree / ".git").write_text(f"gitdir: {record}\n")
        assert ask(wall, f"may remove {tree}") == "done"  # the control


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


def test_a_signal_reaches_git_and_not_only_what_is_in_front_of_it(world: World) -> None:
    started, going_on = world.main / "started", world.main / "going-on"
    for fifo in (started, going_on):
        os.mkfifo(fifo)
    hook = world.main / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\necho $PPID > {started}\nread -r _ < {going_on}\n")
    hook.chmod(0o755)
    ends = f"kill $!; wait $!; echo $?; kill -0 $pid || echo ended; : > {going_on}"
    with world.wall() as wall:
        world.start(wall, f"git worktree add -q ../main-x & read -r pid < {started}; {ends}")
        until((world.src / "main-x" / "d0" / "f0").exists)
        wall.order(OrderKind.ADD, root_at(world.src / "main-x"))
        said = world.wait(wall).splitlines()
        assert said[0] == "143"
        assert said[-1] == "ended"
        # There is nothing to ask here, so nothing stays in front.
        words = f"-c 'alias.x=!echo $PPID; :' x worktree add b > {world.main}/parent"
        world.start(wall, f"git {words} & wait $!; echo $!")
        assert world.wait(wall) == (world.main / "parent").read_text()


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
    with pytest.raises(NotMade, match="at most 2"):
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
