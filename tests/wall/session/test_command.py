"""`rootsd confine` as people start it, with a control socket that publishes roots."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest
from psutil import STATUS_STOPPED, Process

import rootsd
from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot
from rootsd.wall.session.front import NOT_EXECUTABLE
from rootsd.wall.session.kept_names import kept_names
from support import preloaded
from support.polling import until
from support.repositories import make_repository
from support.roots_publisher import RootsPublisher
from support.terminal_programs import on_terminal, type_to_cat
from support.unread_errors import ROOTSD, UnreadErrors, started_unread

pytestmark = [pytest.mark.needs("wall"), pytest.mark.usefixtures("publisher")]

_HANG_GUARD_S = 120
# Each of these takes 1 to 14 ms of each start. The last are ours, for few programs or the warden.
_UNNEEDED = {
    "pathlib", "hashlib", "shutil", "tempfile", "subprocess", "urllib.parse", "click", "msgspec",
    "rootsd.wall.kernel.fixed_view", "rootsd.wall.session.agent_state",
    "rootsd.wall.kernel.warden_loop", "rootsd.wall.kernel.mounted_view", "rootsd.wall.git.facts",
}  # fmt: skip
_PROBE = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from rootsd.__main__ import main
main()
print(*sys.modules, file=sys.stderr)
"""


def confine(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return preloaded.run(("confine", *words), os.environ, _HANG_GUARD_S, cwd)


def start(cwd: Path, *words: str) -> pexpect.spawn[str]:
    front = [sys.executable, "-m", "rootsd", "confine", "--", *words]
    return on_terminal(front, cwd, {"PS1": "$ "}, columns=100)


def test_a_name_cannot_control_the_terminal(root: ConfinedRoot, tmp_path: Path) -> None:
    done = confine("--", "no-such\x1b]0;title\x07", cwd=tmp_path / "root")
    assert done.returncode == 127
    assert "no-such" in done.stderr
    assert done.stderr.replace("\n", "").isprintable()


@pytest.mark.parametrize("kind", [UnreadErrors.NO_READER, UnreadErrors.FULL_PIPE])
def test_a_program_starts_if_nobody_reads_what_confine_says(kind: UnreadErrors) -> None:
    with started_unread(kind, (*ROOTSD, "confine", "--", "echo", "started")) as client:
        assert client.stdout.read() == b"started\n"
        assert client.process.wait(_HANG_GUARD_S) == 0


def loaded(home: Path, *words: str) -> set[str]:
    """Return the modules that the front has loaded at its end."""
    place = str(Path(rootsd.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _PROBE, place, "confine", "--quiet", *words],
        cwd=home, check=True, capture_output=True, text=True, timeout=_HANG_GUARD_S,
    )  # fmt: skip
    return {*done.stderr.split()}


def test_a_front_loads_no_module_that_few_walls_or_only_wardens_need(
    root: ConfinedRoot, home: Path
) -> None:
    found = loaded(home, "--", "true")
    assert "rootsd.wall.kernel.warden" in found, "the control"
    assert found & _UNNEEDED == set()


def test_nothing_is_in_use_after_the_end(root: ConfinedRoot, home: Path, tmp_path: Path) -> None:
    (home / ".nvm").mkdir()
    state = bytes(tmp_path / "rootsd/state")
    program = start(home, "sh", "-c", "echo made > ~/.nvm/new; echo here; cat")
    program.expect("here")
    assert [each.is_running for each in kept_names(state)] == [True], "the control"
    program.sendeof()
    program.wait()
    for _ in range(3):
        assert [each.is_running for each in kept_names(state)] == [False]
        assert confine("--", "sh", "-c", "cat ~/.nvm/new", cwd=home).stdout == "made\n"
    assert len([*tmp_path.rglob("confine/sh/*/lock")]) == 1, "each start has taken the same folder"


def test_work_in_a_worktree_in_the_private_home_outlives_the_session_until_it_is_cleaned(
    publisher: RootsPublisher, home: Path, tmp_path: Path
) -> None:
    main = make_repository(tmp_path / "main")
    publisher.publish(ConfinedRoot(bytes(main), Access.READ_WRITE))
    work = "git worktree add -q ~/x && echo uncommitted > ~/x/work"
    done = confine("--", "sh", "-c", work, cwd=main)
    said = " ".join(done.stderr.split())
    [place] = tmp_path.glob("rootsd/state/confine/sh/0/left-*/*/x")
    assert f"left by sh: {place} has the files of the worktree {home}/x," in said
    assert said.count("worktrees/x") == 0
    assert confine("--", "true", cwd=main).returncode == 0
    assert (place / "work").read_text() == "uncommitted\n"
    listed = confine("--clean", "--dry-run", cwd=main).stdout
    assert "sh" in listed.split()
    assert confine("--clean", "--yes", cwd=main).returncode == 0
    assert not place.exists()


def test_a_program_gets_its_folder_and_its_status_comes_back(
    publisher: RootsPublisher, root: ConfinedRoot, tmp_path: Path
) -> None:
    done = confine("--", "sh", "-c", "cat file; ls ..; exit 7", cwd=tmp_path / "root")
    assert (done.returncode, done.stdout) == (7, "text\nhome\nroot\nrootsd\n")
    assert "the network" in done.stderr
    request = publisher.requests[0]
    hello = request["hello"]
    assert (hello["client"], hello["scope"]["workspace"]) == ("sh", str(tmp_path / "root"))


@pytest.mark.parametrize("flags", [(), ("--static",)])
@pytest.mark.parametrize(
    ("words", "status"),
    [(("no-such-program",), 127), (("/etc/hostname",), 126), (("sh", "-c", "kill -9 $$"), 137),
     (("sh", "-c", "exit 7"), 7)],
)  # fmt: skip
def test_the_exit_statuses_are_those_of_a_shell(
    home: Path, words: tuple[str, ...], status: int, flags: tuple[str, ...]
) -> None:
    done = confine(*flags, "--", *words, cwd=home)
    assert done.returncode == status
    says_why = "rootsd confine: /etc/hostname cannot be started: " in done.stderr
    assert says_why is (status == NOT_EXECUTABLE)


@pytest.mark.parametrize("option", ["--read", "--write", "--keep"])
@pytest.mark.parametrize("flags", [(), ("--static",)])
def test_the_wall_cannot_show_everything(home: Path, option: str, flags: tuple[str, ...]) -> None:
    done = confine(*flags, option, "/", "--", "true", cwd=home)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{option}: / holds everything" in done.stderr


def test_the_view_is_printed_with_reasons(root: ConfinedRoot, home: Path, tmp_path: Path) -> None:
    done = confine("--show", "--read", str(home), cwd=home)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [str(tmp_path / "root"), "writable", "an approved root"] in rows
    assert [str(home), "read-only", "--read"] in rows
    assert all(len(row) == 3 and row[2] for row in rows)


def test_the_view_does_not_refer_to_itself(home: Path) -> None:
    (home / ".npmrc").write_text("//registry.example.org/:_authToken=secret\n")
    assert "(--show lists them)" in confine("--", "true", cwd=home).stderr
    shown = confine("--show", cwd=home).stderr
    assert "a copy without the lines with secrets" in " ".join(shown.split())
    assert "(--show lists them)" not in shown


@pytest.mark.parametrize("flags", [(), ("--static",)])
@pytest.mark.parametrize("name", ["opened", "opened/inner"])
def test_a_denial_wins_over_an_option_and_the_start_says_so(
    publisher: RootsPublisher, home: Path, tmp_path: Path, flags: tuple[str, ...], name: str
) -> None:
    (tmp_path / "opened/inner").mkdir(parents=True)
    (tmp_path / "opened/inner/file").write_text("secret")
    (tmp_path / "opened/file").write_text("text")
    opened = ("--read", str(tmp_path / "opened"), *flags)
    words = ("--", "cat", str(tmp_path / "opened/inner/file"))
    assert confine(*opened, *words, cwd=home).stdout == "secret", "the control: it is not denied"
    denied = tmp_path / name
    publisher.publish(denied=(os.fsencode(denied),))
    done = confine(*opened, *words, cwd=home)
    assert (done.stdout, done.returncode) == ("", 1)
    note = f"--read: {denied} is denied, so it is not shown; try: rootsd why {denied}"
    assert done.stderr.count(note) == 1
    shown = confine(*opened, "--show", cwd=home)
    rows = [line.split("\t") for line in shown.stdout.splitlines()]
    assert [str(denied), "refused" if flags else "hidden", "denied"] in rows
    assert sum(str(tmp_path / "opened") == row[0] for row in rows) == 1
    assert note in shown.stderr


def test_the_environment_leads_to_no_socket_outside(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    monkeypatch.setenv("TMPDIR", str(home))
    monkeypatch.setenv("TOKEN", "kept")
    done = confine("--name", "agent", "--", "env", cwd=home)
    lines = done.stdout.splitlines()
    assert not [line for line in lines if line.startswith(("SSH_AUTH_SOCK", "TMPDIR"))]
    assert {"TOKEN=kept", "ROOTSD_CONFINED=agent"} <= set(lines)


def test_a_variable_for_caches_stays_only_if_its_folder_can_be_used(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    places = {
        "XDG_CACHE_HOME": f"{tmp_path}/elsewhere", "UV_CACHE_DIR": f"{home}/new/uv",
        "GOCACHE": "/usr", "HF_HOME": "", "PLAYWRIGHT_BROWSERS_PATH": "0",
    }  # fmt: skip
    for name, place in places.items():
        monkeypatch.setenv(name, place)
    lines = confine("--name", "agent", "--", "env", cwd=home).stdout.splitlines()
    assert f"XDG_CACHE_HOME={places.pop('XDG_CACHE_HOME')}" not in lines
    assert {f"{name}={place}" for name, place in places.items()} <= set(lines)


@pytest.mark.parametrize("flags", [(), ("--static",)])
def test_kept_changes_stay_with_the_name_and_not_outside(
    home: Path, flags: tuple[str, ...]
) -> None:
    (home / ".agent").mkdir()
    (home / ".agent" / "state").write_text("outside\n")
    keep = (*flags, "--keep", str(home / ".agent"))
    write = "cat ~/.agent/state; echo inside > ~/.agent/state"
    assert confine(*keep, "--name", "a", "--", "sh", "-c", write, cwd=home).stdout == "outside\n"
    assert confine(*keep, "--name", "a", "--", "sh", "-c", write, cwd=home).stdout == "inside\n"
    assert confine(*keep, "--name", "b", "--", "sh", "-c", write, cwd=home).stdout == "outside\n"
    assert (home / ".agent" / "state").read_text() == "outside\n"


def test_a_hidden_path_is_empty_inside_a_root(
    root: ConfinedRoot, tmp_path: Path, home: Path
) -> None:
    hidden = str(tmp_path / "root" / "file")
    assert confine("--hide", hidden, "--", "cat", hidden, cwd=home).stdout == ""


@pytest.mark.parametrize("number", ["0", "1", "2"])
def test_a_program_never_gets_a_folder_as_a_standard_file(home: Path, number: str) -> None:
    """It could list the folder. Python itself refuses to start with one."""
    flag = home / "started"
    command = (
        f"exec {sys.executable} -m rootsd confine --write {home} -- touch {flag} {number}<{home}"
    )
    done = subprocess.run(
        ["sh", "-c", f"{command} {number}<{home}"], check=False, capture_output=True
    )
    assert done.returncode != 0
    assert not flag.exists()


def test_a_wall_in_a_wall_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOTSD_CONFINED", "agent")
    done = confine("--", "true", cwd=home)
    assert done.returncode == 7
    assert "confined already" in done.stderr


def test_a_terminal_behaves_as_without_a_wall(home: Path) -> None:
    shell = start(home, "bash", "--norc", "-i")
    shell.expect_exact("$ ")
    shell.sendline("stty size")
    shell.expect_exact("30 100")
    shell.setwinsize(44, 120)
    shell.sendline("until [ \"$(stty size)\" = '44 120' ]; do :; done; echo size-$((1+1))")
    shell.expect_exact("size-2")
    type_to_cat(shell, "cat")
    shell.send("\x1a")
    shell.expect_exact("Stopped")
    type_to_cat(shell, "fg")
    shell.send("\x03")
    shell.sendline("echo status-$?")
    shell.expect_exact("status-130")
    shell.sendline("exit 7")
    shell.expect(pexpect.EOF)
    shell.close()
    assert shell.exitstatus == 7


def test_a_signal_to_the_front_reaches_the_program(home: Path) -> None:
    front = subprocess.Popen(
        [sys.executable, "-m", "rootsd", "confine", "--", "sh", "-c",
         "trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=home,
    )  # fmt: skip
    with front:
        assert front.stdout is not None
        assert front.stdout.readline() == "up\n"
        front.send_signal(signal.SIGTERM)
        assert front.wait(_HANG_GUARD_S) == 9


@pytest.mark.parametrize("flag", ["--ssh-agent", "--gpg", "--docker"])
def test_an_option_without_its_socket_says_so(
    home: Path, flag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SSH_AUTH_SOCK", "GNUPGHOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{home}/nothing")
    done = confine(flag, "--", "true", cwd=home)
    assert done.returncode == 1
    assert flag in done.stderr


def repository_of(root: ConfinedRoot) -> Path:
    """Make the root a repository, and return a path in its git directory for a link."""
    folder = Path(os.fsdecode(root.path))
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder / ".git" / "FETCH_HEAD"


@pytest.mark.parametrize("flags", [(), ("--static",)])
def test_a_link_left_in_a_git_directory_is_removed_and_named(
    root: ConfinedRoot, flags: tuple[str, ...]
) -> None:
    link = repository_of(root)
    done = confine(*flags, "--", "ln", "-s", "/elsewhere", str(link), cwd=link.parent.parent)
    assert done.returncode == 0
    assert f"left by ln: {link} was a link to /elsewhere" in done.stderr
    assert not link.is_symlink()


_LINK_AND_WAIT = "ln -s /elsewhere {}; echo linked; exec cat"


def started_with_a_link(link: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start a program that makes a link and waits. Return the front and the pid of the warden."""
    words = (*ROOTSD, "confine", "--", "sh", "-c", _LINK_AND_WAIT.format(link))
    front = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=link.parent.parent, process_group=0,  # the kernel stops no orphaned group
    )  # fmt: skip
    assert front.stdout is not None
    assert front.stdout.readline() == b"linked\n"
    return front, int(children_of(front)[0])  # before the waiter


def children_of(front: subprocess.Popen[bytes]) -> list[str]:
    return Path(f"/proc/{front.pid}/task/{front.pid}/children").read_text().split()


def test_the_relay_for_git_runs_before_the_front_stops_and_cannot_start_it(
    root: ConfinedRoot,
) -> None:
    front, _ = started_with_a_link(repository_of(root))
    with front:
        assert len(children_of(front)) == 2, "the control: the warden and the waiter"
        front.send_signal(signal.SIGTSTP)
        until(lambda: Process(front.pid).status() == STATUS_STOPPED)
        assert len(children_of(front)) == 3
        front.send_signal(signal.SIGCONT)
        front.communicate()


def test_a_revoke_does_not_wait_for_a_front_that_is_stopped(
    root: ConfinedRoot, publisher: RootsPublisher, tmp_path: Path
) -> None:
    first, later = (ConfinedRoot(os.fsencode(tmp_path / each), Access.READ) for each in "ab")
    for each in (first, later):
        os.mkdir(each.path)
    publisher.publish(root, first)
    front, _ = started_with_a_link(repository_of(root))
    program = Process(int(children_of(front)[-1])).children(recursive=True)[-1]
    mounts = Path(f"/proc/{program.pid}/mountinfo")

    def sees(each: ConfinedRoot) -> bool:
        return b" %b " % each.path in mounts.read_bytes()

    with front:
        assert sees(first), "the control"
        front.send_signal(signal.SIGSTOP)
        try:
            publisher.publish_and_wait(root, later)
            # The new root needs the front, which must look at its origin.
            assert not sees(first)
            assert not sees(later)
            publisher.publish(later)
            until(lambda: not sees(root))
            assert not sees(later)
        finally:
            front.send_signal(signal.SIGCONT)
        until(lambda: sees(later))


@pytest.mark.parametrize("victim", ["front", "warden"])
def test_the_link_is_removed_if_one_of_the_two_is_killed(root: ConfinedRoot, victim: str) -> None:
    link = repository_of(root)
    front, warden = started_with_a_link(link)
    with front:
        os.kill(front.pid if victim == "front" else warden, signal.SIGKILL)
        said = front.communicate()[1].decode()
        assert (f"{link} was a link to /elsewhere" in said) is (victim == "warden")
        until(lambda: not link.is_symlink())


def test_if_both_are_killed_the_next_start_names_the_link(
    root: ConfinedRoot, tmp_path: Path
) -> None:
    link = repository_of(root)
    front, warden = started_with_a_link(link)
    with front:
        for pid in (front.pid, warden):
            os.kill(pid, signal.SIGSTOP)  # or the second sees the end of the first
        for pid in (front.pid, warden):
            os.kill(pid, signal.SIGKILL)
        front.wait()
    # The kernel may still be about to release the lock of the warden. A program that starts before
    # would be one of two that may have made the link.
    (lock,) = tmp_path.rglob("confine/sh/*/lock")
    until(lambda: is_free(lock))
    said = f"found after sh was killed: {link} is a link to /elsewhere"
    assert said in confine("--", "true", cwd=link.parent.parent).stderr
    assert link.is_symlink()


def is_free(lock: Path) -> bool:
    """Return whether nobody holds this lock."""
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.mark.needs("root")
def test_a_device_is_there_only_with_the_option(home: Path) -> None:
    device = next(each for each in ("/dev/kvm", "/dev/hwrng") if os.access(each, os.R_OK))
    for flags in ((), ("--static",)):
        opened = ("sh", "-c", f"exec 3<{device} && echo opened")
        done = confine(*flags, "--device", device, "--", *opened, cwd=home)
        assert (done.returncode, done.stdout) == (0, "opened\n"), done.stderr
        assert f"--device: the program uses {device}" in done.stderr
        assert confine(*flags, "--", *opened, cwd=home).stdout == ""


def test_a_device_that_leads_to_disks_or_terminals_is_refused(home: Path) -> None:
    (home / "link").symlink_to("/dev/tty")
    for path in ("/dev/tty", str(home / "link"), "/etc/passwd", "/dev/kmsg"):
        done = confine("--device", path, "--", "echo", "started", cwd=home)
        assert (done.returncode, done.stdout) == (7, "")
        assert "--device: /" in done.stderr
