"""A program that cuts its mounts off from the warden's loses a root with all others.

In a user namespace of its own, a program has every capability over its own mounts. The filter
refuses the calls with which it could stop the warden's unmounts from coming through. And each root
hangs on a point, whose removal detaches the root from such a namespace, too. Each of the two is
enough to take a root away, so each is tried alone. The control has neither.

Only the filter makes a renewed protection reach every namespace.
"""

# ruff: noqa: E501 - one line for each way

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot
from rootsd.wall.kernel.orders import OrderKind
from rootsd.wall.kernel.supervision import WARDEN_LOST, Layer
from support.polling import until
from support.repositories import git, make_repository
from support.walls import Wall, Weakness, make_root

pytestmark = [pytest.mark.needs("wall")]

MakeWall = Callable[..., Wall]

# Each way runs in a child with namespaces of its own, which then reads and writes below PLACE.
WAYS = {
    "a nested namespace": "",
    "mount_setattr on everything": "cut_off('/', 0x8000)",
    "mount_setattr on the root": "cut_off('{root}')",
    "mount_setattr on the root's mounts": "cut_off('{root}', 0x8000)",
    "mount_setattr by its number of x32": "checked(libc.syscall(0x40000000 | 442, -100, b'/', 0x8000, PRIVATE, 32))",
    "mount_setattr in a second namespace": "nest(); cut_off('/', 0x8000)",
    "MS_PRIVATE": "mount(None, '/', None, 0x44000)",
    "MS_UNBINDABLE": "mount(None, '{root}', None, 1 << 17)",
    "a bind mount": "PLACE = '/tmp'; mount('{root}', '/tmp', None, 0x5000)",
    "a bind mount of a folder above": "PLACE = '/tmp/' + os.path.basename('{root}'); mount(os.path.dirname('{root}'), '/tmp', None, 0x5000)",
    "an overlay": "PLACE = '/tmp'; mount('o', '/tmp', 'overlay', 0, 'lowerdir={root}')",
    "open_tree": "PLACE = '.'; os.fchdir(checked(libc.syscall(428, -100, b'{root}', 0x8001)))",
    "open_tree on everything": "PLACE = '.' + '{root}'; os.fchdir(checked(libc.syscall(428, -100, b'/', 0x8001)))",
    "open_tree_attr": "PLACE = '.'; os.fchdir(checked(libc.syscall(467, -100, b'{root}', 0x8001, PRIVATE, 32)))",
    "move_mount of a copy": "PLACE = '/tmp'; checked(libc.syscall(429, checked(libc.syscall(428, -100, b'{root}', 0x8001)), b'', -100, b'/tmp', 4))",
    "move_mount into another group": "checked(libc.syscall(429, -100, b'/usr', -100, b'{root}', 0x100))",
    "move_mount of the root": "PLACE = '/tmp'; checked(libc.syscall(429, -100, b'{root}', -100, b'/tmp', 0))",
    "a new file system over /tmp": "checked(libc.syscall(429, new_mount('tmpfs'), b'', -100, b'/tmp', 4))",
    "fspick": "checked(libc.syscall(433, -100, b'/', 0))",
    "pivot_root": "os.chdir('/'); checked(libc.pivot_root(b'.', b'.'))",
    "chroot": "PLACE = '/' + os.path.basename('{root}'); os.chroot(os.path.dirname('{root}'))",
    "umount": "checked(libc.umount2(b'{root}', 2))",
    "a working directory": "PLACE = '.'; os.chdir('{root}')",
    "an open folder": "PLACE = '/proc/self/fd/%d' % os.open('{root}', os.O_RDONLY)",
    "a renamed folder": "os.rename('{root}', '{root}.moved'); PLACE = '{root}.moved'",
}  # fmt: skip

_SEVER = """
PRIVATE = struct.pack('=QQQQ', 0, 0, 1 << 18, 0)

def nest():
    uid, gid = os.getuid(), os.getgid()
    checked(libc.unshare(0x10020000))
    texts = {'setgroups': 'deny', 'uid_map': f'{uid} {uid} 1', 'gid_map': f'{gid} {gid} 1'}
    for name, text in texts.items():
        # Root without capabilities may not map itself.
        can(lambda: open('/proc/self/' + name, 'w').write(text))

def can(action, *arguments):
    try:
        action(*arguments)
    except OSError:
        return False
    return True

def sever(root, file, ways):
    # Return a function that lists the ways by which a file of the root can be read and written.
    children = []
    for name, line in ways.items():
        ask, answer = socket.socketpair()
        if os.fork() == 0:
            ask.close()
            SPACE['PLACE'] = root
            try:
                nest()
                exec(line, SPACE)
            except OSError:
                pass
            while answer.recv(1):
                path = PLACE + '/' + file
                found = ['read ' + name] if can(read, path) else []
                found += ['write ' + name] if can(append_file, path) else []
                answer.sendall(json.dumps(found).encode())
            os._exit(0)
        answer.close()
        children.append(ask)
    def reached():
        found = []
        for each in children:
            each.sendall(b'?')
            found += json.loads(each.recv(1000))
        return found
    return reached
"""


def sever(wall: Wall, root: Path, file: str = "file") -> list[str]:
    """Try all ways on a root, and return those by which its file can be reached now."""
    ways = {each: line.replace("{root}", str(root)) for each, line in WAYS.items()}
    wall.run(_SEVER)
    wall.run(f"REACHED = sever({str(root)!r}, {file!r}, {ways!r})")
    return reached(wall)


def reached(wall: Wall) -> list[str]:
    found: list[str] = wall.run("result = REACHED()")
    return found


class Layout(NamedTuple):
    """Roots before and after a revoke. Then `file` in `root` must be gone.

    If it may `still` be read or written, this is the word for that.
    """

    before: tuple[ConfinedRoot, ...]
    after: tuple[ConfinedRoot, ...]
    root: Path
    file: str = "file"
    still: str = "nothing"


def _below_a_folder(base: Path, _: Path) -> Layout:
    return Layout((make_root(base / "root"),), (), base / "root")


def _in_the_home_folder(base: Path, _: Path) -> Layout:
    return Layout((make_root(base / "home" / "root"),), (), base / "home" / "root")


def _in_tmp(_: Path, in_tmp: Path) -> Layout:
    return Layout((make_root(in_tmp),), (), in_tmp)


def _protected(base: Path, _: Path) -> Layout:
    subprocess.run(["git", "init", "-q", base / "home" / "root"], check=True)
    return _in_the_home_folder(base, base)


def _writable_in_a_read_only_root(base: Path, _: Path) -> Layout:
    outer = make_root(base / "outer", Access.READ)
    inner = make_root(base / "outer" / "a" / "inner")
    return Layout((outer, inner), (outer,), base / "outer" / "a" / "inner", still="read")


def _writable_that_becomes_read_only(base: Path, _: Path) -> Layout:
    root = make_root(base / "home" / "root")
    after = root._replace(access=Access.READ)
    return Layout((root,), (after,), base / "home" / "root", still="read")


def _inner_that_goes_with_the_outer_one(base: Path, _: Path) -> Layout:
    roots = make_root(base / "home" / "root"), make_root(base / "home" / "root/a", Access.READ)
    return Layout(roots, (), base / "home" / "root" / "a")


def _outer_that_goes_without_the_inner_one(base: Path, _: Path) -> Layout:
    inner = make_root(base / "home" / "root" / "a", Access.READ)
    return Layout((make_root(base / "home" / "root"), inner), (inner,), base / "home" / "root")


def _project_that_is_denied(base: Path, _: Path) -> Layout:
    root, denied = make_root(base / "root"), base / "root" / "denied"
    make_root(denied)
    after = root._replace(denied=frozenset({os.fsencode(denied)}))
    return Layout((root,), (after,), base / "root", "denied/file")


def _root_in_a_denied_project(base: Path, _: Path) -> Layout:
    denied = base / "root" / "denied"
    make_root(denied)
    root = make_root(base / "root")._replace(denied=frozenset({os.fsencode(denied)}))
    return Layout((root, make_root(denied / "inner")), (root,), denied / "inner")


LAYOUTS = (
    _below_a_folder,
    _in_the_home_folder,
    _in_tmp,
    _protected,
    _writable_in_a_read_only_root,
    _writable_that_becomes_read_only,
    _inner_that_goes_with_the_outer_one,
    _outer_that_goes_without_the_inner_one,
    _project_that_is_denied,
    _root_in_a_denied_project,
)
FILTER_ONLY: tuple[tuple[Layer, ...], tuple[Weakness, ...]] = ((), (Weakness.NO_POINT,))
_HANG_GUARD_S = 120
POINT_ONLY: tuple[tuple[Layer, ...], tuple[Weakness, ...]] = ((Layer.MOUNT_CALLS,), ())
NEITHER = (Layer.MOUNT_CALLS,), (Weakness.NO_POINT,)


@pytest.fixture
def make_wall(tmp_path: Path) -> Iterator[MakeWall]:
    (tmp_path / "home").mkdir()
    with ExitStack() as stack:

        def make(without: tuple[Layer, ...] = (), weaknesses: tuple[Weakness, ...] = ()) -> Wall:
            return stack.enter_context(
                Wall(tmp_path / "state", tmp_path / "home", without=without, weaknesses=weaknesses)
            )

        yield make


@pytest.fixture
def in_tmp() -> Iterator[Path]:
    """A folder directly in /tmp, where a wall has a private folder."""
    with tempfile.TemporaryDirectory(prefix="rootsd-severed-", dir="/tmp") as folder:
        yield Path(folder)


def kept(wall: Wall, layout: Layout) -> list[str]:
    """Try all ways on a layout, revoke, and return those that kept the folder."""
    # A program's own folder at the path of a root cannot be removed by the warden.
    wall.error_of(f"os.makedirs('{layout.root}/planted')")
    wall.order(OrderKind.SET, *layout.before)
    assert "read a nested namespace" in sever(wall, layout.root, layout.file)
    wall.order(OrderKind.SET, *layout.after)
    return [each for each in reached(wall) if not each.startswith(layout.still)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_way_keeps_a_root(
    tmp_path: Path, in_tmp: Path, make_wall: MakeWall, layout: Callable[[Path, Path], Layout]
) -> None:
    for without, weaknesses in (POINT_ONLY, FILTER_ONLY):
        assert kept(make_wall(without, weaknesses), layout(tmp_path, in_tmp)) == []


@pytest.mark.parametrize("layout", [_in_the_home_folder, _in_tmp, _protected])
def test_without_the_filter_and_the_point_some_ways_keep_a_root(
    tmp_path: Path, in_tmp: Path, make_wall: MakeWall, layout: Callable[[Path, Path], Layout]
) -> None:
    left = kept(make_wall(*NEITHER), layout(tmp_path, in_tmp))
    assert {"read mount_setattr on everything", "write mount_setattr on everything"} <= {*left}


def test_without_landlock_only_open_folders_keep_a_root(
    tmp_path: Path, make_wall: MakeWall
) -> None:
    """On older kernels, the filter alone must forbid mounts. `--on-revoke kill` does the rest."""
    layout = _protected(tmp_path, tmp_path)
    open_folders = {"a working directory", "an open folder"}
    left = kept(make_wall((Layer.LANDLOCK,), (Weakness.NO_POINT,)), layout)
    assert {each.partition(" ")[2] for each in left} == open_folders
    left = kept(make_wall((Layer.LANDLOCK, Layer.MOUNT_CALLS)), layout)
    assert "read a bind mount" in left


def test_a_root_that_is_approved_again_after_a_move_is_lost_too(
    tmp_path: Path, make_wall: MakeWall
) -> None:
    """Namespaces of before and after the move lose it, at both paths."""
    first, second = tmp_path / "home" / "first", tmp_path / "home" / "second"
    for without, weaknesses in (POINT_ONLY, FILTER_ONLY):
        wall = make_wall(without, weaknesses)
        wall.order(OrderKind.SET, make_root(first))
        sever(wall, first)
        wall.run("FIRST = REACHED")
        first.rename(second)
        wall.order(OrderKind.SET)
        wall.order(OrderKind.SET, make_root(second))
        assert "read a nested namespace" in sever(wall, second)
        wall.order(OrderKind.SET)
        second.rename(first)
        wall.order(OrderKind.SET, make_root(first))
        wall.order(OrderKind.SET)
        assert (reached(wall), wall.run("result = FIRST()")) == ([], [])


def test_a_git_directory_of_a_worktree_is_lost_with_it(
    tmp_path: Path, make_wall: MakeWall
) -> None:
    main, tree = make_repository(tmp_path / "main"), tmp_path / "home" / "tree"
    git("worktree", "add", tree, cwd=main)
    root = make_root(tree)._replace(shared_git=os.fsencode(main))
    for without, weaknesses in (POINT_ONLY, FILTER_ONLY):
        wall = make_wall(without, weaknesses)
        wall.order(OrderKind.SET, root)
        assert "write a nested namespace" in sever(wall, main / ".git", "HEAD")
        wall.order(OrderKind.SET)
        assert reached(wall) == []


def test_a_nested_root_that_was_removed_outside_takes_nothing_with_it(
    tmp_path: Path, make_wall: MakeWall
) -> None:
    """Its point went with its folder. What is left of it must still be taken away."""
    outer = make_root(tmp_path / "outer")
    inner = make_root(tmp_path / "outer" / "inner", Access.READ)
    wall = make_wall()
    wall.order(OrderKind.SET, outer, inner)
    (tmp_path / "outer" / "inner" / "file").unlink()
    (tmp_path / "outer" / "inner").rmdir()
    report = wall.order(OrderKind.SET, outer)
    assert (report.shown, report.change.lost) == (1, ())
    wall.run(f"read('{tmp_path}/outer/file')")


def test_a_point_that_cannot_be_removed_ends_the_wall(tmp_path: Path, make_wall: MakeWall) -> None:
    root = make_root(tmp_path / "root")
    wall = make_wall(weaknesses=(Weakness.BUSY_POINT,))
    wall.order(OrderKind.SET, root)
    assert wall.order(OrderKind.SET).change.lost == (root.path,)
    assert wall.process.wait(_HANG_GUARD_S) == WARDEN_LOST


def test_a_lost_root_in_a_repair_ends_the_wall(tmp_path: Path, make_wall: MakeWall) -> None:
    root = make_root(tmp_path / "root")
    (tmp_path / "root" / ".husky").mkdir()
    wall = make_wall(weaknesses=(Weakness.BUSY_POINT,))
    wall.order(OrderKind.SET, root)
    (tmp_path / "root" / ".husky").rename(tmp_path / "root" / "old")
    (tmp_path / "root" / ".husky").mkdir()  # so the root is hidden and shown again
    assert wall.next_report().change.lost == (root.path,)
    assert wall.process.wait(_HANG_GUARD_S) == WARDEN_LOST


@pytest.mark.parametrize("is_weak", [False, True])
def test_a_rewrite_of_git_settings_outside_stays_protected_in_every_namespace(
    tmp_path: Path, make_wall: MakeWall, is_weak: bool
) -> None:
    """Git outside runs what these settings name. Only the filter brings the protection."""
    root, config = tmp_path / "root", tmp_path / "root" / ".git" / "config"
    subprocess.run(["git", "init", "-q", root], check=True)
    wall = make_wall((Layer.MOUNT_CALLS,) if is_weak else ())
    wall.order(OrderKind.SET, make_root(root))
    before = sever(wall, root, ".git/config")
    assert [each for each in before if each.startswith("write")] == []
    for number in range(2):
        subprocess.run(["git", "-C", root, "config", "a.b", str(number)], check=True)
        until(lambda: wall.error_of(f"append_file('{config}')") == "ELOOP")
        # The window in which nobody has protected the new file is over, here and there.
        written = [each for each in reached(wall) if each.startswith("write")]
        assert ("write mount_setattr on everything" in written) is is_weak
        assert bool(written) is is_weak
