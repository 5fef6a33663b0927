"""Programs that race with the warden never read anything outside.

Each race has a control: without the layer that decides it, the program reads outside.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rootsd.core.access import Access
from rootsd.wall.kernel.orders import OrderKind
from rootsd.wall.kernel.supervision import Layer
from support.polling import until, until_won
from support.sizes import Sizes
from support.walls import Interpreter, Wall, Weakness, root_at

pytestmark = [pytest.mark.needs("wall")]

MakeWall = Callable[..., Wall]
_MAX_CONTROL_ROUNDS = 5_000

# Each exchange wakes the warden. Without a pause, it is so far behind that one order takes 0.4 s,
# and the control leaks at one order in thirty, instead of at one in five.
_EXCHANGER = """
import select
CHILD = os.fork()
if CHILD == 0:
    while True:
        libc.renameat2(-100, b'{root}/a', -100, b'{root}/link', 2)
        select.select([], [], [], 0.00005)
"""
_CLIMBER = """
os.chdir('{root}/deep/inner')
CHILD = os.fork()
if CHILD == 0:
    while True:
        for path in ('../../../pending/key', '../../pending/key', '../pending/key'):
            try:
                if read(path) == b'secret':
                    os._exit(7)
            except OSError:
                pass
"""
_NESTED = """
ASK, TELL = socket.socketpair()
CHILD = os.fork()
if CHILD == 0:
    checked(libc.unshare(0x10020000))
    os.mkdir('/tmp/kept')
    while ASK.recv(1):
        found = b'refused'
        for path in ('{root}/file', '/tmp/kept/file'):
            try:
                read(path)
                found = b'read'
            except OSError:
                pass
        try:
            mount('{root}', '/tmp/kept', None, 0x5000)
        except OSError:
            pass
        ASK.sendall(found)
    os._exit(0)
ASK.close()
"""
# A read counts only if the folder was gone before and after it.
_BOMB = """
FOLDER = os.open('{root}', os.O_RDONLY)
open('/tmp/gone', 'w').close()
CHILD = os.fork()
if CHILD == 0:
    while True:
        if os.fork() == 0:
            before = read('/tmp/gone')
            try:
                os.close(os.open('file', os.O_RDONLY, dir_fd=FOLDER))
                if before and before == read('/tmp/gone'):
                    os.close(os.open('/tmp/leak', os.O_CREAT))
            except OSError:
                pass
            os._exit(0)
        os.wait()
"""
_WRITER = """
WON, TELL = os.pipe()
os.set_blocking(WON, False)
CHILD = os.fork()
if CHILD == 0:
    while True:
        try:
            os.close(os.open('{root}/.envrc', os.O_WRONLY))
            os.write(TELL, b'x')
        except OSError:
            pass
"""
_WINS = """
try:
    result = len(os.read(WON, 1 << 16))
except BlockingIOError:
    result = 0
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "deep" / "inner").mkdir(parents=True)
    (root / "file").write_text("text")
    (root / ".envrc").write_text("")
    for name in ("pending", "elsewhere", "home"):
        (tmp_path / name).mkdir()
    (tmp_path / "pending" / "key").write_text("secret")
    (root / "link").symlink_to(tmp_path / "pending")
    return root


@pytest.fixture
def make_wall(tmp_path: Path, root: Path) -> Iterator[MakeWall]:
    with ExitStack() as stack:

        def make(name: str, *without: Layer, weaknesses: tuple[Weakness, ...] = ()) -> Wall:
            return stack.enter_context(
                Wall(
                    tmp_path / name,
                    tmp_path / "home",
                    [root_at(root)],
                    without=without,
                    weaknesses=weaknesses,
                )
            )

        yield make


def rounds(sizes: Sizes) -> range:
    return range(sizes.pick(test=6, check=800, soak=2_000))


def test_a_folder_that_is_exchanged_with_a_link_leads_nowhere(
    root: Path, make_wall: MakeWall, sizes: Sizes
) -> None:
    # With the access of the root around it, it would need no mount.
    inner = root_at(root / "a", Access.READ)

    def leaks(wall: Wall) -> bool:
        wall.order(OrderKind.ADD, inner)
        leaked = wall.error_of(f"read('{root}/a/key')") == ""
        wall.order(OrderKind.REMOVE, paths=[root / "a"])
        return leaked

    wall = make_wall("whole")
    wall.run(_EXCHANGER.format(root=root))
    assert not any(leaks(wall) for _ in rounds(sizes))
    wall.run("os.kill(CHILD, 9)")
    names = itertools.count()

    def a_weak_one_leaks() -> bool:
        # A mount that went astray ends the exchanges in its wall. So each round has a new one.
        weak = make_wall(f"weak-{next(names)}", weaknesses=(Weakness.FOLLOW_LINKS,))
        weak.run(_EXCHANGER.format(root=root))
        leaked = any(leaks(weak) for _ in range(10))
        weak.run("os.kill(CHILD, 9)")
        return leaked

    until_won(a_weak_one_leaks)


def test_no_way_leads_up_from_a_folder_that_is_moved_outside(
    tmp_path: Path, root: Path, make_wall: MakeWall, sizes: Sizes
) -> None:
    wall = make_wall("whole")
    wall.run(_CLIMBER.format(root=root))
    inner, elsewhere = root / "deep" / "inner", tmp_path / "elsewhere" / "inner"
    for _ in rounds(sizes):
        inner.rename(elsewhere)
        elsewhere.rename(inner)
    assert wall.run("result = os.waitpid(CHILD, os.WNOHANG)[0]") == 0
    with Interpreter(tmp_path) as outside:
        outside.run(_CLIMBER.format(root=root))
        assert outside.run("result = os.waitstatus_to_exitcode(os.waitpid(CHILD, 0)[1])") == 7


def test_no_descriptor_is_of_use_between_a_revoke_and_the_next_grant(
    root: Path, make_wall: MakeWall, sizes: Sizes
) -> None:
    def leaks(wall: Wall) -> bool:
        wall.order(OrderKind.SET, root_at(root))
        wall.run(f"F = os.open('{root}', os.O_RDONLY); os.chdir('{root}')")
        wall.order(OrderKind.SET)
        by_folder = wall.error_of("os.close(os.open('file', os.O_RDONLY, dir_fd=F))")
        by_working_directory = wall.error_of("read('file')")
        wall.run("os.close(F)")
        return not (by_folder and by_working_directory)

    wall = make_wall("whole")
    assert not any(leaks(wall) for _ in rounds(sizes))
    assert leaks(make_wall("weak", Layer.LANDLOCK))


def test_a_namespace_of_the_program_loses_the_folder_with_all_others(
    root: Path, make_wall: MakeWall, sizes: Sizes
) -> None:
    ask = "TELL.sendall(b'?'); result = TELL.recv(9).decode()"

    def leaks(wall: Wall) -> bool:
        wall.order(OrderKind.SET, root_at(root))
        assert wall.run(ask) == "read"
        wall.order(OrderKind.SET)
        return bool(wall.run(ask) == "read")

    wall = make_wall("whole")
    wall.run(_NESTED.format(root=root))
    assert not any(leaks(wall) for _ in rounds(sizes))
    weak = make_wall("weak", Layer.LANDLOCK, Layer.MOUNT_CALLS)
    weak.run(_NESTED.format(root=root))
    assert leaks(weak)


def test_a_bomb_of_short_lived_programs_reads_nothing_after_a_revoke(
    root: Path, make_wall: MakeWall, sizes: Sizes
) -> None:
    leak = "result = os.path.exists('/tmp/leak')"

    def attack(wall: Wall, number: int) -> None:
        wall.order(OrderKind.SET, root_at(root))
        wall.order(OrderKind.SET)
        wall.run(f"open('/tmp/gone', 'w').write('{number}')")
        wall.run("read('/tmp/gone')")
        wall.run("open('/tmp/gone', 'w').close()")

    wall = make_wall("whole")
    wall.run(_BOMB.format(root=root))
    for number in rounds(sizes):
        attack(wall, number)
    assert not wall.run(leak)
    wall.run("os.kill(CHILD, 9)")
    weak = make_wall("weak", Layer.LANDLOCK)
    weak.run(_BOMB.format(root=root))
    for number in range(_MAX_CONTROL_ROUNDS):
        attack(weak, number)
        if weak.run(leak):
            return
    pytest.fail("the control leaked nothing")


def test_a_protected_file_can_be_written_in_the_window_after_a_replacement_only(
    root: Path, make_wall: MakeWall, sizes: Sizes
) -> None:
    """The window is published. Nothing is written before it, and it ends each time."""
    wall = make_wall("whole")
    wall.run(_WRITER.format(root=root))
    for _ in rounds(sizes):
        wall.run("pass")
    assert wall.run(_WINS) == 0
    for _ in rounds(sizes):
        (root / "new").write_text("")
        (root / "new").rename(root / ".envrc")
        until(lambda: wall.error_of(f"append('{root}/.envrc')") == "EROFS")
    wall.run("os.kill(CHILD, 9); os.waitpid(CHILD, 0)")  # it may be late to tell about a success
    wall.run(_WRITER.format(root=root))
    for _ in rounds(sizes):
        wall.run("pass")
    assert wall.run(_WINS) == 0
    weak = make_wall("weak", weaknesses=(Weakness.NO_REPAIR,))
    weak.run(_WRITER.format(root=root))
    (root / "new").write_text("")
    (root / "new").rename(root / ".envrc")
    until_won(lambda: weak.run(_WINS) > 0)
