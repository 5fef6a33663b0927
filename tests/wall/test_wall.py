"""A running program gains and loses folders, and nothing outlives its wall."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

import pytest

from rootsd.core.access import Access
from rootsd.core.errors import RootsdError
from rootsd.core.mount_plan import ConfinedRoot, FolderIdentity
from rootsd.core.wall import RevokePolicy
from rootsd.disk.process_stat import read_process_stat
from rootsd.wall.kernel.orders import OrderKind
from rootsd.wall.kernel.pause import ProgramPause, levels
from support.folder_identity import identity_of
from support.polling import until
from support.repositories import git, make_repository
from support.sizes import Sizes
from support.walls import Refused, Wall, Weakness, make_root, root_at

pytestmark = [pytest.mark.needs("wall")]

_HANG_GUARD_S = 120


@pytest.fixture
def wall(tmp_path: Path) -> Iterator[Wall]:
    (tmp_path / "home").mkdir()
    with Wall(tmp_path / "state", tmp_path / "home") as wall:
        yield wall


def test_each_order_reaches_a_running_program(tmp_path: Path, wall: Wall) -> None:
    a, b = make_root(tmp_path / "a", Access.READ), make_root(tmp_path / "b")
    assert wall.error_of(f"read('{tmp_path}/a/file')") == "ENOENT"
    assert wall.order(OrderKind.SET, a).shown == 1
    wall.run(f"read('{tmp_path}/a/file')")
    assert wall.error_of(f"make('{tmp_path}/a/new')") == "EROFS"
    wall.order(OrderKind.SET, a._replace(access=Access.READ_WRITE))
    wall.run(f"make('{tmp_path}/a/new')")
    assert wall.order(OrderKind.ADD, b).shown == 2
    assert wall.order(OrderKind.REMOVE, paths=[tmp_path / "a"]).shown == 1
    assert wall.run(f"result = sorted(os.listdir('{tmp_path}'))") == ["b", "home"]
    assert wall.order(OrderKind.SET).shown == 0
    assert wall.error_of(f"read('{tmp_path}/b/file')") == "ENOENT"
    # A root inside another one has its own access, and outlives that one.
    inner = make_root(tmp_path / "b" / "inner", Access.READ)
    wall.order(OrderKind.SET, b, inner)
    assert wall.error_of(f"make('{tmp_path}/b/inner/new')") == "EROFS"
    wall.order(OrderKind.SET, inner)
    assert wall.error_of(f"read('{tmp_path}/b/file')") == "ENOENT"
    wall.run(f"read('{tmp_path}/b/inner/file')")


@pytest.fixture
def checkout(tmp_path: Path) -> ConfinedRoot:
    """A root with a commit."""
    make_repository(tmp_path / "main")
    root = make_root(tmp_path / "main")
    git("add", "file", cwd=tmp_path / "main")
    git("commit", "-m", "file", cwd=tmp_path / "main")
    return root


def worktree_in(checkout: ConfinedRoot) -> ConfinedRoot:
    return ConfinedRoot(
        checkout.path + b"/.worktrees/x", Access.READ_WRITE, shared_git=checkout.path
    )


def git_inside(wall: Wall, folder: bytes, *words: str) -> int:
    """Run git inside, and return its exit status."""
    command = ["git", "-C", os.fsdecode(folder), *words]
    status: int = wall.run(f"result = subprocess.run({command!r}, stderr=2).returncode")
    return status


def test_a_worktree_inside_its_checkout_can_be_made_used_and_removed_while_it_is_published(
    tmp_path: Path, checkout: ConfinedRoot, wall: Wall
) -> None:
    (tmp_path / "weak").mkdir()
    weak = Wall(tmp_path / "weak", tmp_path / "home", weaknesses=[Weakness.EVERY_MOUNT])
    tree = worktree_in(checkout)
    with weak:
        for each, fails in ((wall, False), (weak, True)):
            each.order(OrderKind.SET, checkout)
            assert git_inside(each, checkout.path, "worktree", "add", "-q", ".worktrees/x") == 0
            each.run(f"os.chdir('{os.fsdecode(tree.path)}')")
            assert each.order(OrderKind.SET, checkout, tree).shown == 2
            each.run("read('file'); make('new')")  # the working directory is still the same
            assert git_inside(each, tree.path, "commit", "-q", "--allow-empty", "-m", "2") == 0
            each.run("os.chdir('/')")
            removed = git_inside(each, checkout.path, "worktree", "remove", ".worktrees/x") == 0
            assert removed is not fails
            assert (tmp_path / "main" / ".worktrees" / "x").exists() is fails
            assert each.order(OrderKind.SET, checkout).shown == 1
            shutil.rmtree(tmp_path / "main" / ".worktrees", ignore_errors=True)
            git("worktree", "prune", cwd=tmp_path / "main")
            git("branch", "-qD", "x", cwd=tmp_path / "main")


def entry_of(path: Path) -> Path:
    """Return git's entry of a worktree."""
    return Path((path / ".git").read_text().removeprefix("gitdir: ").strip())


@pytest.mark.parametrize("is_weak", [False, True])
def test_a_worktree_inside_its_checkout_that_exists_at_the_start_can_be_removed(
    tmp_path: Path, checkout: ConfinedRoot, is_weak: bool
) -> None:
    main, home = tmp_path / "main", tmp_path / "home"
    home.mkdir()
    git("worktree", "add", "-q", ".worktrees/x", cwd=main)
    git("worktree", "add", "-q", "../beside", cwd=main)
    weak = [Weakness.CLOSED_WORKTREES] if is_weak else []
    roots = [checkout, worktree_in(checkout)]
    with Wall(tmp_path / "state", home, roots, weaknesses=weak) as wall:
        # A rewrite of the settings outside makes the warden look again.
        git("config", "a.b", "1", cwd=main)
        until(lambda: wall.error_of(f"append_file('{main}/.git/config')") == "ELOOP")
        status = git_inside(wall, checkout.path, "worktree", "remove", ".worktrees/x")
        assert (status != 0) is is_weak
        assert entry_of(tmp_path / "beside").exists()
        assert wall.error_of(f"append('{entry_of(tmp_path / 'beside')}/commondir')") == "EROFS"


def test_a_working_directory_survives_new_worktrees_and_a_rewrite_of_the_settings(
    tmp_path: Path, checkout: ConfinedRoot, wall: Wall
) -> None:
    main = tmp_path / "main"
    wall.order(OrderKind.SET, checkout)
    wall.run(f"os.chdir('{main}')")
    for path in (".worktrees/x", "../beside"):
        git("worktree", "add", "-q", path, cwd=main)
    git("config", "a.b", "1", cwd=main)
    until(lambda: wall.error_of(f"append_file('{main}/.git/config')") == "ELOOP")
    until(lambda: wall.error_of(f"append('{entry_of(tmp_path / 'beside')}/commondir')") == "EROFS")
    wall.run("read('file')")


def test_the_entry_of_a_worktree_that_a_program_cannot_write_cannot_be_changed(
    tmp_path: Path, checkout: ConfinedRoot, wall: Wall
) -> None:
    """Git outside reads which settings to use from there."""
    main, tree = tmp_path / "main", worktree_in(checkout)
    path = main / ".worktrees" / "x"
    git("worktree", "add", "-q", path, cwd=main)
    append = f"append('{entry_of(path)}/commondir')"
    denied = checkout._replace(denied=frozenset({tree.path}))
    for roots in (
        [denied],
        [checkout, tree._replace(access=Access.READ)],
        [checkout],
        [checkout, tree._replace(denied=frozenset({tree.path + b"/denied"}))],
    ):
        wall.order(OrderKind.SET, *roots)
        assert wall.error_of(append) == ("" if roots == [checkout] else "EROFS"), roots
        wall.order(OrderKind.SET)
    # A link in the root may lead the worktree out of it.
    (main / ".worktrees").rename(tmp_path / "elsewhere")
    (main / ".worktrees").symlink_to(tmp_path / "elsewhere")
    wall.order(OrderKind.SET, checkout)
    assert wall.error_of(append) == "EROFS"


def test_the_entry_of_a_worktree_is_closed_once_the_worktree_becomes_read_only(
    tmp_path: Path, checkout: ConfinedRoot, wall: Wall
) -> None:
    main, tree = tmp_path / "main", worktree_in(checkout)
    path = main / ".worktrees" / "x"
    git("worktree", "add", "-q", path, cwd=main)
    wall.order(OrderKind.SET, checkout, tree)
    wall.run(f"os.chdir('{main}')")
    wall.order(OrderKind.SET, checkout, tree._replace(access=Access.READ))
    assert wall.error_of(f"append('{entry_of(path)}/commondir')") == "EROFS"
    wall.run("read('file')")  # the checkout is still the same mount


def test_a_worktree_inside_its_checkout_stays_when_the_checkout_goes(
    tmp_path: Path, checkout: ConfinedRoot, wall: Wall
) -> None:
    main, tree = tmp_path / "main", worktree_in(checkout)
    git("worktree", "add", "-q", ".worktrees/x", cwd=main)
    wall.order(OrderKind.SET, checkout, tree)
    wall.run(f"os.chdir('{main}/.worktrees')")
    report = wall.order(OrderKind.SET, tree)
    assert (report.shown, report.change.failed) == (1, ())
    assert wall.error_of(f"read('{main}/file')") == "ENOENT"
    assert wall.error_of("read('x/file')") == "EACCES"
    assert git_inside(wall, tree.path, "commit", "-q", "--allow-empty", "-m", "2") == 0
    assert wall.order(OrderKind.SET, checkout, tree).shown == 2
    wall.run(f"read('{main}/file')")
    assert wall.order(OrderKind.SET).shown == 0
    assert wall.error_of(f"read('{main}/.worktrees/x/file')") == "ENOENT"


def test_a_worktree_inside_a_checkout_that_cannot_be_shown_fails_for_the_same_reason(
    checkout: ConfinedRoot, wall: Wall
) -> None:
    other = checkout._replace(identity=FolderIdentity(1, 1, None, 1))
    report = wall.order(OrderKind.SET, other, worktree_in(checkout))
    assert [(each.path, each.reason) for each in report.change.failed] == [
        (path, "another folder is there now")
        for path in (checkout.path, worktree_in(checkout).path)
    ]


def test_a_repository_inside_a_root_has_its_own_protection_and_its_denial_reaches_a_program(
    tmp_path: Path, wall: Wall
) -> None:
    outer, inner = make_root(tmp_path / "a"), make_root(tmp_path / "a" / "b")
    git("init", tmp_path / "a" / "b")
    assert wall.order(OrderKind.SET, outer, inner).shown == 2
    assert wall.error_of(f"append_file('{tmp_path}/a/b/.git/config')") == "ELOOP"
    wall.run(f"os.chdir('{tmp_path}/a/b')")
    denied = frozenset({inner.path})
    assert wall.order(OrderKind.SET, outer._replace(denied=denied)).masked == 1
    assert wall.error_of("read('file')") == "EACCES"
    assert wall.run(f"result = os.listdir('{tmp_path}/a/b')") == []
    wall.run(f"read('{tmp_path}/a/file')")


def test_a_root_that_is_replaced_or_gone_is_not_shown_until_it_is_back(
    tmp_path: Path, wall: Wall
) -> None:
    root = make_root(tmp_path / "a")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    linked = root_at(tmp_path / "link", Access.READ)
    assert [each.path for each in wall.order(OrderKind.SET, linked).change.failed] == [linked.path]
    other = root._replace(identity=FolderIdentity(1, 1, None, 1))
    report = wall.order(OrderKind.SET, other)
    assert [(each.path, each.reason) for each in report.change.failed] == [
        (root.path, "another folder is there now")
    ]
    (tmp_path / "a").rename(tmp_path / "elsewhere")
    assert [each.path for each in wall.order(OrderKind.SET, root).change.failed] == [root.path]
    (tmp_path / "elsewhere").rename(tmp_path / "a")
    until(lambda: bool(wall.run(f"result = os.path.exists('{tmp_path}/a/file')")))
    assert wall.next_report().shown == 1


def test_a_link_planted_by_a_program_is_not_followed(tmp_path: Path, wall: Wall) -> None:
    """The warden sees the files outside, so it must not follow a program's links."""
    (tmp_path / "outside").mkdir()
    home = tmp_path / "home"
    wall.run(f"os.symlink('{tmp_path}/outside', '{home}/src')")
    wall.order(OrderKind.SET, make_root(home / "src" / "project"))
    wall.run(f"read('{home}/src/project/file')")
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_program_cannot_move_the_folders_above_a_root(tmp_path: Path, wall: Wall) -> None:
    home = tmp_path / "home"
    wall.order(OrderKind.SET, make_root(home / "src" / "deep" / "project"))
    assert wall.error_of(f"os.rename('{home}/src', '{home}/moved')") == "EBUSY"
    assert wall.error_of(f"os.rename('{home}/src/deep', '{home}/src/moved')") in ("EROFS", "EBUSY")
    wall.run(f"make('{home}/own')")


def test_a_protection_comes_back_after_the_file_was_replaced_outside(
    tmp_path: Path, wall: Wall, sizes: Sizes
) -> None:
    root = make_root(tmp_path / "a")
    git("init", tmp_path / "a")
    wall.order(OrderKind.SET, root)
    config = tmp_path / "a" / ".git" / "config"
    for number in range(sizes.pick(test=5, check=50, soak=150)):
        subprocess.run(["git", "-C", tmp_path / "a", "config", "a.b", str(number)], check=True)
        # The window: until the warden has noticed, the program may write the new file.
        until(lambda: wall.error_of(f"append_file('{config}')") == "ELOOP")
        os.rename(tmp_path / "a" / ".git" / "hooks", tmp_path / "a" / ".git" / "old")
        os.rename(tmp_path / "a" / ".git" / "old", tmp_path / "a" / ".git" / "hooks")
        until(lambda: wall.error_of(f"os.utime('{config.parent}/hooks')") == "EROFS")


def test_a_worktree_brings_its_repository_only_if_both_link_to_each_other(
    tmp_path: Path, checkout: ConfinedRoot, wall: Wall
) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    git("worktree", "add", "-q", tree, cwd=main)
    root = root_at(tree)
    wall.order(OrderKind.SET, root)
    assert wall.error_of(f"os.listdir('{main}')") == "ENOENT"
    wall.order(OrderKind.SET, root._replace(shared_git=checkout.path))
    assert git_inside(wall, root.path, "commit", "-q", "--allow-empty", "-m", "2") == 0
    assert wall.error_of(f"append_file('{main}/.git/config')") == "ELOOP"
    forged = make_root(tmp_path / "forged")
    (tmp_path / "forged" / ".git").write_text(f"gitdir: {main}/.git/worktrees/tree\n")
    wall.order(OrderKind.SET, forged._replace(shared_git=checkout.path))
    assert wall.error_of(f"os.listdir('{main}/.git')") == "ENOENT"


def test_a_worktree_brings_the_git_directory_only_of_the_checkout_that_was_seen(
    tmp_path: Path, checkout: ConfinedRoot, wall: Wall
) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    git("worktree", "add", "-q", tree, cwd=main)
    root = ConfinedRoot(
        os.fsencode(tree), Access.READ_WRITE, shared_git=checkout.path,
        shared_git_identity=identity_of(main),
    )  # fmt: skip
    commit = ("commit", "-q", "--allow-empty", "-m", "2")
    wall.order(OrderKind.SET, root)
    assert git_inside(wall, root.path, *commit) == 0
    assert wall.error_of(f"make('{main}/new')") == "EROFS"
    wall.order(OrderKind.SET)
    # The same Git directory, with the same links, in another folder at that path.
    main.rename(tmp_path / "old")
    main.mkdir()
    (tmp_path / "old" / ".git").rename(main / ".git")
    report = wall.order(OrderKind.SET, root)
    assert [each.reason for each in report.change.failed] == ["another folder is there now"]
    assert wall.error_of(f"os.listdir('{main}/.git')") == "ENOENT"
    known = root._replace(shared_git_identity=identity_of(main))
    assert wall.order(OrderKind.SET, known).change.failed == ()
    assert git_inside(wall, root.path, *commit) == 0


def test_holders_are_reported_or_killed(tmp_path: Path, wall: Wall) -> None:
    root = make_root(tmp_path / "a")
    wall.order(OrderKind.SET, root)
    pid = wall.run(f"FILE = open('{tmp_path}/a/file', 'rb'); result = os.getpid()")
    assert len(wall.order(OrderKind.SET).change.holders) == 1
    assert wall.run("result = FILE.read().decode()") == "text"
    wall.run("FILE.close()")
    wall.order(OrderKind.SET, root)
    assert wall.order(OrderKind.SET).change.holders == ()
    assert pid == 2
    # A file that waits in a socket counts as held.
    wall.order(OrderKind.SET, root)
    wall.run(_PARKED.format(path=tmp_path / "a"))
    assert len(wall.order(OrderKind.SET).change.holders) == 1
    wall.run("PARKED.close(); OTHER.close()")
    wall.order(OrderKind.SET, root)
    assert wall.order(OrderKind.SET).change.holders == ()


def test_with_kill_only_the_holders_end_also_one_that_hides_its_files(tmp_path: Path) -> None:
    """An ordinary user cannot look into a process that is not dumpable."""
    (tmp_path / "home").mkdir()
    root = make_root(tmp_path / "a")
    hide = "import ctypes, signal; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); print(); signal.pause()"
    with Wall(tmp_path / "s", tmp_path / "home", [root], on_revoke=RevokePolicy.KILL) as wall:
        wall.run(
            f"CHILD = subprocess.Popen(['sleep', '1000'], stdin=open('{tmp_path}/a/file'))\n"
            f"HIDING = subprocess.Popen([sys.executable, '-uc', '{hide}'], "
            f"stdin=open('{tmp_path}/a/file'), stdout=subprocess.PIPE); HIDING.stdout.readline()"
        )
        wall.order(OrderKind.SET)
        for each in ("CHILD", "HIDING"):
            assert wall.run(f"result = {each}.wait()") == -signal.SIGKILL


# Each process lives for an instant only, and passes the open file on to the next one. No process
# has the pipe open when all have ended.
_CHAIN = """
FILE = open('{path}/file')
ENDED, ALIVE = os.pipe()
FIRST = os.fork()
if FIRST == 0:
    try:
        while not os.path.exists('/tmp/end'):
            if os.fork() != 0:
                os._exit(0)
        open('/tmp/escaped', 'w').write(FILE.read())
    finally:  # also if its namespace is about to end, where fork fails
        os._exit(0)
os.waitpid(FIRST, 0)
FILE.close()
os.close(ALIVE)
"""
_PARKED = """
FILE = open('{path}/file')
PARKED, OTHER = socket.socketpair()
socket.send_fds(PARKED, [b'x'], [FILE.fileno()])
FILE.close()
"""


@pytest.mark.parametrize("is_weak", [False, True])
def test_with_kill_no_chain_of_short_lived_processes_escapes(
    tmp_path: Path, sizes: Sizes, is_weak: bool
) -> None:
    (tmp_path / "home").mkdir()
    root = make_root(tmp_path / "a")
    weak = [Weakness.KILL_ONCE] if is_weak else []
    escaped = 0
    for number in range(sizes.pick(test=2, check=20, soak=60)):
        own = tmp_path / str(number)  # the warden before may still end
        with Wall(
            own, tmp_path / "home", [root], on_revoke=RevokePolicy.KILL, weaknesses=weak
        ) as wall:
            wall.run(_CHAIN.format(path=tmp_path / "a"))
            wall.order(OrderKind.SET)
            try:
                wall.run("os.close(os.open('/tmp/end', os.O_CREAT)); os.read(ENDED, 1)")
                escaped += wall.error_of("content('/tmp/escaped')") == ""
            except (AssertionError, BrokenPipeError):
                assert not is_weak  # the whole program was ended
    assert (escaped > 0) is is_weak


_WITHOUT_FIRST_THREAD = """
import ctypes, signal, threading
threading.Thread(target=signal.pause).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_pause_stops_also_a_program_whose_first_thread_has_ended(wall: Wall) -> None:
    wall.run(f"subprocess.Popen([sys.executable, '-c', {_WITHOUT_FIRST_THREAD!r}])")
    until(lambda: {b"Z", b"S"} in _thread_states(wall))
    pause = ProgramPause(wall.process.pid, lambda _: None)
    pause.stop(RootsdError("no daemon answers"))
    until(lambda: {b"Z", b"T"} in _thread_states(wall))
    pause.resume()
    until(lambda: {b"Z", b"S"} in _thread_states(wall))


def _thread_states(wall: Wall) -> list[set[bytes]]:
    found = []
    for process in chain.from_iterable(levels(wall.process.pid)):
        with suppress(OSError):  # it has just ended
            tasks = Path(f"/proc/{process.pid}/task").iterdir()
            found.append({read_process_stat(b"%b/" % bytes(each)).state for each in tasks})
    return found


@pytest.mark.parametrize("victim", ["warden", "front", "program"])
def test_no_process_or_mount_outlives_any_part_of_the_wall(
    tmp_path: Path, victim: str, sizes: Sizes
) -> None:
    (tmp_path / "home").mkdir()
    for _ in range(sizes.pick(test=1, check=20, soak=60)):
        with Wall(tmp_path / "state", tmp_path / "home", [make_root(tmp_path / "a")]) as wall:
            wall.run("subprocess.Popen(['sleep', '1000'], start_new_session=True)")
            inside = _processes_in_other_namespaces(wall.process.pid)
            watched = {pid: os.pidfd_open(pid) for pid in inside}
            assert wall.warden_pid in watched
            if victim == "program":
                with pytest.raises((AssertionError, BrokenPipeError, Refused)):
                    wall.run("os.kill(os.getpid(), 9)")
            else:
                pid = wall.warden_pid if victim == "warden" else wall.process.pid
                os.kill(pid, signal.SIGKILL)
            wall.process.wait(_HANG_GUARD_S)
            wall.close()
            for pid, ended in watched.items():
                assert select.select([ended], [], [], _HANG_GUARD_S)[0], f"{pid} of {inside}"
                os.close(ended)
    with open("/proc/self/mountinfo", "rb") as mounts:  # other mounts need not be UTF-8
        assert os.fsencode(tmp_path) not in mounts.read()


def test_many_cycles_leak_no_mount_no_descriptor_and_no_process(
    tmp_path: Path, wall: Wall, sizes: Sizes
) -> None:
    roots = [make_root(tmp_path / name / "deep") for name in "ab"]
    wall.order(OrderKind.SET, *roots)  # the table of descriptors grows once
    wall.order(OrderKind.SET)

    def state() -> dict[str, object]:
        warden = Path(f"/proc/{wall.warden_pid}")
        status = (warden / "status").read_text().splitlines()
        return {
            "mounts": (warden / "mountinfo").read_bytes().count(b"\n"),
            "mounts inside": wall.run("result = read('/proc/self/mountinfo').count(b'\\n')"),
            "folders inside": wall.run(f"result = str(os.listdir('{tmp_path}'))"),
            # An ordinary user cannot list the descriptors, but sees the size of their table.
            "descriptors": next(line for line in status if line.startswith("FDSize:")),
        }

    def processes() -> int:
        return len(_processes_in_other_namespaces(wall.process.pid))

    before, most = state(), processes()
    for _ in range(sizes.pick(test=20, check=1_000, soak=3_000)):
        assert not wall.order(OrderKind.SET, *roots).change.failed
        wall.order(OrderKind.SET)
    assert state() == before
    until(lambda: processes() <= most)  # some still compare roots that are gone
    # The control: what is shown takes mounts and descriptors.
    wall.order(OrderKind.SET, *(make_root(tmp_path / "many" / str(each)) for each in range(100)))
    shown = state()
    assert all(shown[each] != before[each] for each in ("mounts", "mounts inside", "descriptors"))


def _processes_in_other_namespaces(front: int) -> list[int]:
    """Return the descendants of a process that run; each name in /proc is read once."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                status = Path(f"/proc/{name}/stat").read_text()
            except OSError:
                continue
            state, parent = status.rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(name)] = int(parent)
    found = {front}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {front})
