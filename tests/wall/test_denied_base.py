"""A denied folder in the base of the view is masked, at the start and while the program runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rootsd.core.mount_plan import ConfinedRoot, ViewEntry, ViewEntryKind
from rootsd.core.wall import WallEngine
from rootsd.wall.kernel.orders import OrderKind
from rootsd.wall.kernel.supervision import Layer
from rootsd.wall.view.denied_base import DeniedBase
from support.polling import until
from support.sizes import Sizes
from support.walls import Wall, Weakness, make_root

pytestmark = [pytest.mark.needs("wall")]

MakeWall = Callable[..., Wall]

# A toolchain, one below a folder of its own, a cache, and a cache in which programs have a layer.
PROJECTS = ("bin/p", ".nvm/versions/p", ".cache/uv/p", ".local/share/uv/deep/p")
# What denies a project: itself, the entry of the base, or a folder above it.
DENIALS = (
    *((name, name) for name in PROJECTS),
    ("bin/p", "bin"),
    (".nvm/versions/p", ".nvm/versions"),
    (".cache/uv/p", ".cache"),
    (".local/share/uv/deep/p", ".local"),
    ("bin/p", "."),
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    for name in PROJECTS:
        (home / name).mkdir(parents=True)
        (home / name / "file").write_text("secret")
        (home / name).with_name("beside").write_text("text")
    (home / ".gitconfig").write_text("[user]")
    return home


@pytest.fixture
def make_wall(tmp_path: Path, home: Path) -> Iterator[MakeWall]:
    with ExitStack() as walls:

        def make(
            *weaknesses: Weakness, roots: tuple[ConfinedRoot, ...] = (), **more: object
        ) -> Wall:
            folder = tmp_path / f"state-{'-'.join(each.name for each in weaknesses)}"
            wall = Wall(folder, home, roots, weaknesses=weaknesses, **more)  # type: ignore[arg-type]
            return walls.enter_context(wall)

        yield make


def is_read(wall: Wall, path: Path) -> bool:
    return not wall.error_of(f"content('{path}')")


def test_a_folder_that_is_denied_while_a_program_runs_is_gone_and_comes_back(
    home: Path, make_wall: MakeWall
) -> None:
    wall = make_wall()
    for project, denied in (each for each in DENIALS for _ in range(2)):
        place = home / project
        assert is_read(wall, place / "file")
        wall.run(f"os.chdir('{place}'); FOLDER = os.open('{place}', os.O_RDONLY)")
        wall.run("ABOVE = os.open('..', os.O_PATH)")
        assert not wall.order(OrderKind.SET, denied=[home / denied]).change.lost
        for line in (
            f"content('{place}/file')",
            "content('file')",
            "os.listdir('.')",
            "os.listdir('/proc/self/fd/%d' % FOLDER)",
            "os.close(os.open('file', os.O_RDONLY, dir_fd=FOLDER))",
            "os.close(os.open('p/file', os.O_RDONLY, dir_fd=ABOVE))",
        ):
            assert wall.error_of(line), (project, denied, line)
        assert is_read(wall, place.with_name("beside")) is (project == denied)
        assert is_read(wall, home / ".gitconfig") is (denied != ".")
        wall.run("os.chdir('/'); os.close(FOLDER); os.close(ABOVE)")
        wall.order(OrderKind.SET, denied=[])


@pytest.mark.parametrize(
    "denied", [PROJECTS, ("bin", ".nvm/versions", ".cache", ".local"), (".",)]
)
def test_a_folder_that_is_denied_at_the_start_is_gone_and_comes_back(
    home: Path, make_wall: MakeWall, denied: tuple[str, ...]
) -> None:
    wall = make_wall(denied=[home / name for name in denied])
    files = [home / project / "file" for project in PROJECTS]
    assert not any(is_read(wall, file) for file in files)
    wall.order(OrderKind.SET, denied=[])
    assert all(is_read(wall, file) for file in files)


def test_controls_without_a_mask_with_a_mask_only_and_without_a_repair(
    home: Path, make_wall: MakeWall
) -> None:
    project = denied = PROJECTS[0]
    assert is_read(make_wall(Weakness.BASE_SHOWN, denied=[home / denied]), home / project / "file")
    wall = make_wall(Weakness.BASE_COVERED)
    wall.run(f"os.chdir('{home / project}')")
    wall.order(OrderKind.SET, denied=[home / denied])
    assert not is_read(wall, home / project / "file")
    assert wall.error_of("content('file')") == "", "the working directory keeps the folder"
    wall = make_wall(Weakness.NO_REPAIR, denied=[home / denied])
    (home / denied).rename(home / "bin/q")
    (home / denied).mkdir()
    (home / project / "file").write_text("secret")
    assert is_read(wall, home / project / "file"), "nobody masks what replaces it"


@pytest.mark.parametrize("name", ["bin", "bin/p", ".local/share/uv/deep"])
def test_a_denied_root_uncovers_nothing_of_the_base(
    home: Path, make_wall: MakeWall, name: str
) -> None:
    root = make_root(home / name)
    for weaknesses, is_shown in (((), False), ((Weakness.BASE_SHOWN,), True)):
        wall = make_wall(*weaknesses, roots=(root,))
        wall.run(f"os.chdir('{home / name}'); make('new')")
        wall.order(OrderKind.SET, denied=[home / name])
        assert is_read(wall, home / name / "file") is is_shown
        assert wall.error_of("read('file')")
        # It is approved again.
        wall.order(OrderKind.SET, root, denied=[])
        wall.run(f"make('{home / name}/new')")
        # After the root goes, the base is there as before.
        wall.order(OrderKind.SET)
        assert is_read(wall, home / name / "file")
        assert wall.error_of(f"make('{home / name}/new')") in ("EROFS", "")


@pytest.mark.parametrize("denied", ["bin", "bin/outer", "."])
def test_an_approved_root_inside_a_denied_folder_of_the_base_is_shown(
    home: Path, make_wall: MakeWall, denied: str
) -> None:
    inner, other = make_root(home / "bin/outer/inner"), make_root(home / "bin/outer/other")
    (home / "bin/outer/page").write_text("page")
    wall = make_wall(roots=(inner,))
    for roots in ((inner,), (inner, other), (other,), ()):
        wall.order(OrderKind.SET, *roots, denied=[home / denied])
        for root in (inner, other):
            path = Path(os.fsdecode(root.path))
            assert is_read(wall, path / "file") is (root in roots)
            if root in roots:
                wall.run(f"make('{path}/new')")
        assert not is_read(wall, home / "bin/outer/page")
        assert is_read(wall, home / "bin/beside") is (denied == "bin/outer")
    wall.order(OrderKind.SET, denied=[])
    assert is_read(wall, home / "bin/outer/page")


def test_only_what_shows_something_from_outside_is_denied_by_where_that_is() -> None:
    def entry(path: bytes, kind: ViewEntryKind, target: bytes = b"") -> ViewEntry:
        return ViewEntry(path, kind, "a test", target)

    tools, below = (
        entry(b"/h/tools", ViewEntryKind.READ),
        entry(b"/h/tools/d", ViewEntryKind.FOLDER),
    )
    own = entry(b"/h/tools/own", ViewEntryKind.STATE, b"/state")
    stand_in = entry(b"/h/settings", ViewEntryKind.READ, b"/state/settings")
    agent = entry(b"/run/agent", ViewEntryKind.SOCKET, b"/h/keys/agent")
    base = DeniedBase([tools, below, own, stand_in, agent])
    for denied, masked in (
        (b"/h/tools/d/x", b"/h/tools/d/x"), (b"/h/tools/own/x", None), (b"/state", None),
        (b"/h/keys", b"/run/agent"), (b"/run", None), (b"/h/settings", b"/h/settings"),
    ):  # fmt: skip
        assert [mask.path for mask in base.masks(frozenset([denied]))] == [masked] * bool(masked)
    hidden = ViewEntry(b"/h/tools", ViewEntryKind.HIDDEN, "denied")
    without = base.entries_without(frozenset([b"/h/tools"]))
    assert without == (below, own, stand_in, agent, hidden)


@pytest.mark.parametrize("weaknesses", [(), (Weakness.NO_POINT,)])
def test_a_namespace_that_is_cut_off_loses_it_too(
    home: Path, make_wall: MakeWall, weaknesses: tuple[Weakness, ...]
) -> None:
    wall = make_wall(*weaknesses, without=[Layer.MOUNT_CALLS])
    wall.run(
        "ASK, ANSWER = socket.socketpair()\n"
        "def severed():\n"
        "    checked(libc.unshare(0x10020000)); cut_off('/', 0x8000)\n"
        "    while ANSWER.recv(1):\n"
        "        try:\n"
        f"            content('{home}/bin/p/file'); ANSWER.sendall(b'y')\n"
        "        except OSError: ANSWER.sendall(b'n')\n"
        "if os.fork() == 0:\n"
        "    ASK.close(); severed(); os._exit(0)\n"
    )
    assert wall.run("ASK.sendall(b'?'); result = ASK.recv(1).decode()") == "y"
    wall.order(OrderKind.SET, denied=[home / "bin/p"])
    answer = wall.run("ASK.sendall(b'?'); result = ASK.recv(1).decode()")
    assert answer == ("y" if weaknesses else "n")
    assert not is_read(wall, home / "bin/p/file")


@pytest.mark.parametrize("is_away_first", [True, False])
def test_a_denied_folder_that_is_replaced_outside_is_masked_again(
    home: Path, make_wall: MakeWall, is_away_first: bool
) -> None:
    wall = make_wall(roots=(inner := make_root(home / "bin/inner"),), denied=[home / "bin/p"])
    if is_away_first:
        shutil.rmtree(home / "bin/p")
    else:
        (home / "bin/p").rename(home / "bin/q")
    (home / "bin/p").mkdir()
    (home / "bin/p/file").write_text("secret")
    until(lambda: not is_read(wall, home / "bin/p/file"))
    until(lambda: is_read(wall, home / "bin/inner/file"))
    assert wall.order(OrderKind.SET, inner).shown == 1


def test_a_denied_folder_that_is_replaced_again_and_again_ends_nothing(
    home: Path, make_wall: MakeWall
) -> None:
    """It may go between two steps of the warden, and nothing can be mounted on it then."""
    wall = make_wall(denied=[home / "bin/p"])
    for _ in range(300):
        shutil.rmtree(home / "bin/p")
        (home / "bin/p").mkdir()
    (home / "bin/p/file").write_text("secret")
    until(lambda: not is_read(wall, home / "bin/p/file"))


def test_a_folder_behind_a_link_is_denied_by_its_real_path(
    tmp_path: Path, home: Path, make_wall: MakeWall
) -> None:
    real = tmp_path / "elsewhere"
    (real / "bin").mkdir(parents=True)
    (real / "bin/file").write_text("secret")
    (home / ".npm-global").mkdir()
    (home / ".local").rename(tmp_path / "local")
    (home / ".local").symlink_to(real)
    shown = home / ".local/bin/file"
    wall = make_wall()
    assert is_read(wall, shown)
    wall.order(OrderKind.SET, denied=[real / "bin"])
    assert not is_read(wall, shown)


@pytest.mark.parametrize("kind", [ViewEntryKind.READ, ViewEntryKind.WRITE, ViewEntryKind.KEPT])
def test_a_folder_that_a_person_opens_is_masked_too(
    tmp_path: Path, home: Path, make_wall: MakeWall, kind: ViewEntryKind
) -> None:
    for name in ("opened/secret", "opened/open"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text("text")
    entry = ViewEntry(os.fsencode(tmp_path / "opened"), kind, "--read")
    wall = make_wall(entries=[entry])
    wall.run(f"os.chdir('{tmp_path}/opened/secret')")
    wall.order(OrderKind.SET, denied=[tmp_path / "opened/secret"])
    assert wall.error_of("read('file')")
    assert not is_read(wall, tmp_path / "opened/secret/file")
    assert is_read(wall, tmp_path / "opened/open/file")
    assert wall.error_of(f"os.rename('{tmp_path}/opened/secret', '{tmp_path}/opened/x')")


def test_many_denials_leak_no_mount_and_no_descriptor(
    home: Path, make_wall: MakeWall, sizes: Sizes
) -> None:
    wall = make_wall(roots=(make_root(home / "bin/inner"),))

    def deny_and_allow() -> None:
        wall.order(OrderKind.SET, denied=[home / "bin/p", home / ".local"])
        wall.order(OrderKind.SET, denied=[])

    def state() -> tuple[int, int, str]:
        warden = Path(f"/proc/{wall.warden_pid}")
        lines = (warden / "status").read_text().splitlines()
        return (
            (warden / "mountinfo").read_bytes().count(b"\n"),
            wall.run("result = read('/proc/self/mountinfo').count(b'\\n')"),
            next(line for line in lines if line.startswith("FDSize:")),
        )

    deny_and_allow()  # the copies without masks stay
    before = state()
    for _ in range(sizes.pick(test=25, check=100, soak=300)):
        deny_and_allow()
    assert state() == before
    # The control: masks take mounts.
    wall.order(OrderKind.SET, denied=[home / "bin/p"])
    assert state() != before


@pytest.mark.needs("static-wall")
def test_a_static_wall_hides_what_is_denied_and_ends_at_a_later_denial(
    home: Path, make_wall: MakeWall
) -> None:
    weak = make_wall(Weakness.BASE_SHOWN, engine=WallEngine.STATIC, denied=[home / "bin/p"])
    assert is_read(weak, home / "bin/p/file")
    wall = make_wall(engine=WallEngine.STATIC, denied=[home / "bin/p", home / ".nvm"])
    assert not is_read(wall, home / "bin/p/file")
    assert not is_read(wall, home / ".nvm/versions/p/file")
    assert is_read(wall, home / "bin/beside")
    assert not wall.order(OrderKind.SET, denied=[home / "bin/p"]).change.lost
    report = wall.order(OrderKind.SET, denied=[home / "bin"])
    assert report.change.lost == (os.fsencode(home / "bin"),)
