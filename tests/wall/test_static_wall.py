"""A static wall: its roots are fixed, a loss ends the program, and nothing outlives it."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil
import pytest

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot, FolderIdentity
from rootsd.core.wall import WallEngine
from rootsd.wall.kernel.orders import OrderKind
from rootsd.wall.kernel.supervision import WARDEN_LOST
from rootsd.wall.view.fixed_roots import HOLDS_HIDDEN
from support.folder_identity import identity_of
from support.repositories import git, make_repository
from support.sizes import Sizes
from support.walls import Interpreter, Refused, Wall, make_root, root_at

pytestmark = [pytest.mark.needs("static-wall")]

_HANG_GUARD_S = 120
# A daemon as programs make them: it leaves its session, its group, and its parent.
DAEMON = "subprocess.Popen(['sh', '-c', 'setsid sh -c \"sleep 1000 & sleep 1000\" &'])"
# Each process starts the next one and ends at once, so a list of processes is always outdated.
RUNNER = """
if os.fork() == 0:
    os.setsid()
    while True:
        if os.fork():
            os._exit(0)
"""
DEEP = """
os.symlink('/', 'link')
open('file', 'w').close()
for _ in range(DEPTH):
    os.mkdir('d')
    os.chdir('d')
os.mkdir('last', 0)
os.chdir(os.environ['HOME'])
"""
VERSIONS = [None, 5]  # the kernel's, and one without limits for signals


class StaticTestWall(Wall):
    """A static wall. `marker` is text that only processes behind it have in their environment."""

    def __init__(
        self, folder: Path, roots: Iterable[ConfinedRoot] = (), version: int | None = None
    ) -> None:
        home = folder / "home"
        home.mkdir(exist_ok=True)
        super().__init__(folder / "state", home, roots, engine=WallEngine.STATIC, landlock=version)
        self.marker = os.fsencode(self.run("result = os.environ['HOME']"))

    def ended(self) -> int:
        """Wait until the wall has ended, and return its exit status."""
        return self.process.wait(_HANG_GUARD_S)

    def survivors(self) -> list[int]:
        found = []
        for name in os.listdir("/proc"):
            try:
                environment = Path(f"/proc/{name}/environ").read_bytes()
            except OSError:
                continue
            if self.marker in environment:
                found.append(int(name))
        return found


@pytest.fixture
def wall(tmp_path: Path) -> Iterator[StaticTestWall]:
    with StaticTestWall(tmp_path, [make_root(tmp_path / "a")]) as wall:
        yield wall


def test_a_grant_waits_for_the_next_start_and_a_denial_inside_a_root_ends_the_program(
    tmp_path: Path, wall: StaticTestWall
) -> None:
    first, second = make_root(tmp_path / "a"), make_root(tmp_path / "b")
    report = wall.order(OrderKind.SET, first, second)
    assert (report.shown, report.change.waiting, report.change.lost) == (1, (second.path,), ())
    assert wall.error_of(f"read('{tmp_path}/b/file')") == "EACCES"
    wall.run(f"read('{tmp_path}/a/file'); make('{tmp_path}/a/new')")
    assert wall.order(OrderKind.SET, first).change.waiting == ()
    (tmp_path / "a" / "denied").mkdir()
    denied = frozenset({os.fsencode(tmp_path / "a" / "denied")})
    assert wall.order(OrderKind.SET, first._replace(denied=denied)).change.lost == (first.path,)
    assert wall.ended() == WARDEN_LOST


@pytest.mark.parametrize("version", VERSIONS)
def test_a_revoke_ends_the_program_and_everything_it_started(
    tmp_path: Path, version: int | None, sizes: Sizes
) -> None:
    for _ in range(sizes.pick(test=1, check=20, soak=60)):
        root = make_root(tmp_path / "a")
        with StaticTestWall(tmp_path, [root], version) as wall:
            wall.run(DAEMON)
            assert wall.survivors()
            assert wall.order(OrderKind.SET).change.lost == (root.path,)
            assert wall.ended() == WARDEN_LOST
            assert wall.survivors() == []


@pytest.mark.needs("landlock-signals")
def test_a_program_cannot_escape_its_end_by_forking(tmp_path: Path, sizes: Sizes) -> None:
    for _ in range(sizes.pick(test=2, check=30, soak=90)):
        with StaticTestWall(tmp_path, [make_root(tmp_path / "a")]) as wall:
            for _ in range(3):
                wall.run(RUNNER)
            wall.order(OrderKind.SET)
            assert wall.ended() == WARDEN_LOST
            assert wall.survivors() == []


def test_control_the_end_of_a_group_does_not_end_a_daemon(tmp_path: Path) -> None:
    """The processes of the tests above survive an ordinary end."""
    with Interpreter(tmp_path, env={**os.environ, "MARKER": str(tmp_path)}) as program:
        ended = program.run(f"found = {DAEMON}; found.wait(); result = os.getpid()")
    assert not psutil.pid_exists(ended)
    assert _left(tmp_path)
    while left := _left(tmp_path):
        for each in left:
            each.kill()
        psutil.wait_procs(left)


def _left(marker: Path) -> list[psutil.Process]:
    return [
        each for each in psutil.process_iter() if _environment(each).get("MARKER") == str(marker)
    ]


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return dict(process.environ())
    except psutil.Error:
        return {}


def test_the_end_of_the_program_ends_everything_and_removes_its_own_folders(
    tmp_path: Path, sizes: Sizes
) -> None:
    with StaticTestWall(tmp_path) as wall:
        wall.run(f"DEPTH = {sizes.pick(test=50, check=1_100, soak=3_300)}")
        wall.run(DAEMON + DEEP + "os.makedirs('own/inner'); os.chmod('own', 0)")
        with pytest.raises((AssertionError, Refused)):
            wall.run("os._exit(7)")
        assert wall.ended() == 7
        assert wall.survivors() == []
    with StaticTestWall(tmp_path) as again:
        left = [each for each in os.listdir(tmp_path / "state") if each.startswith("run-")]
        assert [os.fsencode(tmp_path / "state" / each / "home") for each in left] == [again.marker]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("victim", ["warden", "front", "waiter", "init", "program"])
def test_nothing_outlives_any_part_of_a_static_wall(
    tmp_path: Path, victim: str, version: int | None, sizes: Sizes
) -> None:
    for _ in range(sizes.pick(test=1, check=20, soak=60)):
        with StaticTestWall(tmp_path, [make_root(tmp_path / "a")], version) as wall:
            wall.run(DAEMON)
            program = psutil.Process(wall.run("result = os.getpid()"))
            init = program.parent()
            assert init is not None
            waiter = init.parent()
            assert waiter is not None
            assert waiter.ppid() == wall.process.pid
            pids = {
                "warden": wall.warden_pid, "front": wall.process.pid, "waiter": waiter.pid,
                "init": init.pid, "program": program.pid,
            }  # fmt: skip
            inside = [*wall.survivors(), waiter.pid, init.pid, wall.warden_pid]
            watched = {pid: os.pidfd_open(pid) for pid in inside}
            os.kill(pids[victim], signal.SIGKILL)
            wall.ended()
            wall.close()
            for pid, ended in watched.items():
                assert select.select([ended], [], [], _HANG_GUARD_S)[0], (victim, pid)
                os.close(ended)
            assert wall.survivors() == []


@pytest.mark.needs("landlock-signals")
def test_a_program_can_end_neither_init_nor_the_waiter_nor_the_warden(
    wall: StaticTestWall,
) -> None:
    for pid in ("os.getppid()", str(wall.warden_pid), str(wall.process.pid)):
        assert wall.error_of(f"os.kill({pid}, 9)") == "EPERM"
        assert wall.error_of(f"os.kill({pid}, signal.SIGSTOP)") == "EPERM"


def test_roots_that_cannot_be_enforced_are_left_out_or_read_only(tmp_path: Path) -> None:
    outer = make_root(tmp_path / "a")
    make_root(tmp_path / "a" / "denied")
    masked = outer._replace(denied=frozenset({os.fsencode(tmp_path / "a" / "denied")}))
    around, inner = make_root(tmp_path / "b"), make_root(tmp_path / "b" / "c", Access.READ)
    with StaticTestWall(tmp_path, [masked, around, inner]) as wall:
        assert wall.error_of(f"read('{tmp_path}/a/file')") == "EACCES"
        wall.run(f"read('{tmp_path}/b/file')")
        assert wall.error_of(f"make('{tmp_path}/b/new')") == "EACCES"
        report = wall.order(OrderKind.SET, masked, around, inner)
        assert (report.shown, report.read_only, report.change.lost) == (2, 2, ())
        assert [(each.path, each.reason) for each in report.change.failed] == [
            (outer.path, HOLDS_HIDDEN)
        ]


def test_another_folder_at_the_path_of_a_root_is_not_reached(tmp_path: Path) -> None:
    root = make_root(tmp_path / "a")
    other = root._replace(identity=FolderIdentity(1, 1, None, 1))
    with StaticTestWall(tmp_path, [other]) as wall:
        assert wall.error_of(f"read('{tmp_path}/a/file')") == "EACCES"
        report = wall.order(OrderKind.SET, other)
        assert [each.reason for each in report.change.failed] == ["another folder is there now"]
        assert report.change.waiting == ()
    with StaticTestWall(tmp_path, [root]) as wall:
        (tmp_path / "a").rename(tmp_path / "old")
        make_root(tmp_path / "a")
        assert wall.error_of(f"read('{tmp_path}/a/file')") == "EACCES"


def test_a_worktree_brings_its_repository_here_too(tmp_path: Path) -> None:
    main, folder = make_repository(tmp_path / "main"), tmp_path / "tree"
    git("worktree", "add", folder, cwd=main)
    tree = root_at(folder)
    commit = ["git", "-C", str(folder), "commit", "-q", "--allow-empty", "-m", "2"]
    run = f"subprocess.run({commit}, check=True, stderr=subprocess.DEVNULL)"
    shared = tree._replace(shared_git=os.fsencode(main), shared_git_identity=identity_of(main))
    with StaticTestWall(tmp_path, [shared]) as wall:
        wall.run(run)
        assert wall.error_of(f"make('{main}/new')") == "EACCES"
        assert wall.order(OrderKind.SET, tree).change.lost == (os.fsencode(main / ".git"),)
    other = shared._replace(shared_git_identity=identity_of(tmp_path))
    with StaticTestWall(tmp_path, [other]) as wall:
        assert wall.error_of(f"read('{main}/.git/config')") == "EACCES"
    with StaticTestWall(tmp_path, [tree]) as wall:
        assert wall.error_of(f"read('{main}/.git/config')") == "EACCES"


def test_the_private_home_has_the_users_settings_and_changes_nothing_outside(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[a]\n")
    (home / ".npmrc").write_text("registry=r\n_auth=secret\n")
    (home / ".npm").mkdir()
    with StaticTestWall(tmp_path) as wall:
        own = wall.marker.decode()
        assert wall.run("result = os.getcwd()") == own
        wall.run(f"read('{own}/.gitconfig'); make('{own}/.npm/cache'); make('{own}/new')")
        assert wall.error_of(f"append('{own}/.gitconfig')") == "EACCES"
        assert wall.error_of(f"read('{home}/.npmrc')") == "EACCES"
        assert wall.run(f"result = open('{own}/.npmrc').read()") == "registry=r\n"
        assert wall.error_of(f"make('{home}/new')") == "EACCES"
    assert sorted(os.listdir(home)) == [".gitconfig", ".npm", ".npmrc"]


def test_a_toolchain_is_read_only_and_the_caches_in_it_are_the_programs_own(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    for name in ("bin/tool", "registry/crate", "credentials.toml", "config.toml"):
        (home / ".cargo" / name).parent.mkdir(parents=True, exist_ok=True)
        (home / ".cargo" / name).write_text(name)
    with StaticTestWall(tmp_path) as wall:
        cargo = f"{wall.marker.decode()}/.cargo"
        wall.run(f"read('{cargo}/bin/tool'); make('{cargo}/lock'); make('{cargo}/registry/new')")
        assert wall.error_of(f"make('{cargo}/bin/new')") == "EACCES"
        assert wall.error_of(f"read('{cargo}/registry/crate')") == "ENOENT"
        assert wall.error_of(f"read('{cargo}/credentials.toml')") == "ENOENT"
        assert wall.error_of(f"read('{home}/.cargo/credentials.toml')") == "EACCES"
    assert sorted(os.listdir(home / ".cargo/registry")) == ["crate"]
