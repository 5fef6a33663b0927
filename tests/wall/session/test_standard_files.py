"""`rootsd confine` with its standard files redirected, in an interactive shell."""

from __future__ import annotations

import json
import os
import re
import select
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from rootsd.core.errors import Exit
from rootsd.core.mount_plan import ConfinedRoot
from rootsd.wall.session.user_terminal import read_now
from rootsd.wall.view.standard_files import refused_kind
from support.polling import until
from support.terminal_programs import SHELL, on_terminal

pytestmark = [pytest.mark.needs("wall")]

_HANG_GUARD_S = 60
# Writes down what it can do with its descriptors, besides reading and writing.
REACHES = """
import fcntl, json, os, sys
done = []
def attempt(name, action):
    try:
        action()
        done.append(name)
    except OSError:
        pass
for fd in range(3):
    attempt(f"inject into {fd}", lambda: fcntl.ioctl(fd, 0x5412, b"x"))
    attempt(f"copy from {fd}", lambda: fcntl.ioctl(fd, 0x541C, b"\\x03"))
    attempt(f"open {fd} again", lambda: os.close(os.open(f"/proc/self/fd/{fd}", os.O_RDWR)))
for fd in range(256):
    attempt(f"list above {fd}", lambda: os.listdir(f"/proc/self/fd/{fd}/.."))
for fd in range(3, 256):
    attempt(f"have {fd}", lambda: os.fstat(fd))
attempt("open the terminal", lambda: os.close(os.open("/dev/tty", os.O_RDWR)))
print(json.dumps([os.fstat(2).st_dev, done]), file=open(sys.argv[1], "w"))
"""


class UserShell:
    """An interactive shell outside the wall, in a root. `c` confines a program.

    Words in what it types are split by quotes, so that an echo of the line does not match.
    """

    def __init__(self, root: Path, prefix: Sequence[str] = ()) -> None:
        variables = {"TERM": "dumb", "PS1": "$ "}
        self._bash = on_terminal([*prefix, *SHELL], root, variables, columns=100)
        self.expect("$ ")
        self.type(f"alias c='{sys.executable} -m rootsd confine --'")
        self.expect("$ ")
        self.type('s() { echo "<${PIPESTATUS[*]}>"; }')
        self.expect("$ ")

    def run(self, line: str) -> None:
        """Run a line; `status` returns the statuses of its last pipeline.

        The statuses are part of the line, because a program may take what is typed after it.
        """
        self.type(f"{line}; s")

    def type(self, line: str) -> None:
        self._bash.sendline(line)

    def press(self, key: str) -> None:
        self._bash.send(key)

    def expect(self, text: str) -> None:
        self._bash.expect_exact(text)

    def status(self) -> str:
        self._bash.expect(r"<([0-9 ]+)>")
        assert isinstance(self._bash.match, re.Match)
        return str(self._bash.match[1])

    def close(self) -> None:
        self._bash.close(force=True)


@pytest.fixture
def root(root: ConfinedRoot) -> Path:
    return Path(os.fsdecode(root.path))


@pytest.fixture
def shell(root: Path) -> Iterator[UserShell]:
    shell = UserShell(root)
    yield shell
    shell.close()


@pytest.fixture
def shell_of_another_user(root: Path) -> Iterator[UserShell]:
    """A shell as after `su`: its terminal may not be opened again by name."""
    lose, prefix = 'chmod 000 "$(tty)"', []
    if os.geteuid() == 0:
        lose = 'chown 65534 "$(tty)"'
        prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    shell = UserShell(root, ["sh", "-c", f'{lose}; exec "$@"', "sh", *prefix])
    yield shell
    shell.close()


def test_input_from_the_terminal_goes_to_a_file(shell: UserShell, root: Path) -> None:
    shell.run("c cat > out")
    shell.type("typed")
    shell.press("\x04")
    assert shell.status() == "0"
    assert (root / "out").read_text() == "typed\n"


def test_a_program_reaches_nothing_by_its_standard_files(shell: UserShell, root: Path) -> None:
    (root / "attempts.py").write_text(REACHES)
    (root.parent / "given").write_text("")
    files = "< ../given > ../taken 9< .. 10< ../given"
    shell.run(f"python3 attempts.py outside {files}; c python3 attempts.py inside {files}")
    assert shell.status() == "0"
    device, done = json.loads((root / "outside").read_text())
    assert {"open 0 again", "open 1 again", "have 9", "list above 9", "have 10"} <= {*done}
    own_device, own = json.loads((root / "inside").read_text())
    assert own == ["open 2 again", "open the terminal"]
    assert own_device != device


def test_the_programs_of_a_pipeline_have_the_keys_until_the_confined_one_reads(
    shell: UserShell,
) -> None:
    reader = "{ read word; read key < /dev/tty; echo $key-$word; }"
    shell.type(f"c sh -c 'echo u''p; exec sleep 1000' | {reader}")
    shell.type("first")
    shell.expect("first-up")
    shell.press("\x03")
    shell.expect("$ ")
    program = "read one; echo $one; read two; echo $two >&2"
    shell.run(f"c sh -c '{program}' | {{ read word; echo o''ne-$word; }}")
    shell.type("second")
    shell.expect("one-second")
    shell.type("third")
    shell.expect("third")
    assert shell.status() == "0 0"


def test_a_pipeline_is_interrupted_and_suspended_as_one(shell: UserShell) -> None:
    reader = "sh -c \"trap 'echo i''nt >&2; exit 5' INT; echo u''p >&2; cat\""
    # Before the program has read from the terminal, and after it.
    for program in ("echo reached >&2", "read x; echo reached-$x"):
        shell.type(f"c sh -c '{program}; sleep 1000' | {reader}")
        shell.expect("up\r\n")
        shell.type("word")
        shell.expect("reached")
        shell.press("\x1a")
        shell.expect("Stopped")
        shell.run("fg")
        shell.press("\x03")
        shell.expect("int")
        assert shell.status() == "5"


def test_a_job_goes_on_in_a_terminal_of_another_user(
    shell_of_another_user: UserShell, root: Path
) -> None:
    """The shell makes the open file of its terminal block again while the job is stopped."""
    shell = shell_of_another_user
    shell.type('(exec 3<> "$(tty)") 2> /dev/null || echo clo""sed')
    shell.expect("closed")
    shell.type("c sh -c 'echo u''p; exec cat'")
    shell.expect("up\r\n")
    for _ in range(2):
        shell.type("typed")
        shell.expect("typed\r\ntyped\r\n")
        shell.press("\x1a")
        shell.expect("Stopped")
        shell.type("read line; echo $line-$((1+1))")
        shell.type("for the shell")
        shell.expect("for the shell-2")
        shell.type("fg")
        shell.expect("exec cat'\r\n")
    shell.press("\x04")
    shell.run("true")
    assert shell.status() == "0"


def test_a_terminal_that_is_shared_is_never_read_while_it_blocks() -> None:
    master, slave = os.openpty()
    with os.fdopen(master, "wb", buffering=0) as keys, os.fdopen(slave, "rb") as terminal:
        os.set_blocking(terminal.fileno(), True)
        with pytest.raises(BlockingIOError):
            read_now(terminal.fileno())
        keys.write(b"line\n")
        until(lambda: select.select([terminal], [], [], 0)[0])
        assert read_now(terminal.fileno()) == b"line\n"
        assert os.get_blocking(terminal.fileno())


def test_a_background_job_stops_when_it_reads_and_goes_on_in_the_foreground(
    shell: UserShell,
) -> None:
    script = "echo started; read x; echo got-$x"
    shell.type("set -b")  # bash tells at once that the whole job has stopped; before, fg is early
    shell.type(f"(c sh -c '{script}'; true) &")
    shell.expect("started\r\r\n")
    shell.expect("Stopped")
    shell.run("fg")
    shell.type("word")
    shell.expect("got-word")
    assert shell.status() == "0"


def test_a_program_without_a_terminal_stops_with_its_front(shell: UserShell, root: Path) -> None:
    shell.type("echo | c sh -c 'echo > started; exec sleep 10003' > out 2> err")
    until((root / "started").exists)
    shell.press("\x1a")
    shell.expect("Stopped")
    until(lambda: _states("sleep", "10003") == [psutil.STATUS_STOPPED])
    shell.run("fg")
    until(lambda: _states("sleep", "10003") == [psutil.STATUS_SLEEPING])
    shell.press("\x03")
    assert shell.status() == "130"
    assert not _states("sleep", "10003")


def test_a_closed_standard_file_is_no_descriptor_of_rootsd(shell: UserShell, root: Path) -> None:
    names = "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2"
    shell.run(f"c sh -c 'stat -L -c %t:%T {names} > ../root/kinds; exit 9' <&- >&- 2>&-")
    assert shell.status() == "9"
    null = os.stat("/dev/null").st_rdev
    expected = f"{os.major(null):x}:{os.minor(null):x}"
    found = (root / "kinds").read_text().split()
    assert (found[0], found[2]) == (expected, expected)


def test_large_binary_data_passes_unchanged(root: Path) -> None:
    data = bytes(range(256)) * 20_000
    done = subprocess.run(
        [sys.executable, "-m", "rootsd", "confine", "--", "cat"],
        input=data, capture_output=True, check=True, cwd=root, timeout=_HANG_GUARD_S,
    )  # fmt: skip
    assert done.stdout == data


def test_the_end_of_a_reader_or_writer_is_seen_at_once(shell: UserShell) -> None:
    shell.run("c yes | head -1 > /dev/null")
    assert shell.status() == "141 0"
    # The program closes its standard files long before it ends.
    shell.run("c sh -c 'exec >&- <&-; read x < /dev/tty' | { cat; echo e''nd; }")
    shell.expect("end")
    shell.type("")
    assert shell.status() == "0 0"


def _states(*words: str) -> list[str]:
    found = psutil.process_iter(["cmdline", "status"])
    return [each.info["status"] for each in found if each.info["cmdline"] == list(words)]


def test_what_leads_elsewhere_is_refused() -> None:
    with ExitStack() as stack:
        stream = [stack.enter_context(each) for each in socket.socketpair()]
        datagrams = [
            stack.enter_context(each) for each in socket.socketpair(type=socket.SOCK_DGRAM)
        ]
        network, unconnected, listener = (
            stack.enter_context(socket.socket(family))
            for family in (socket.AF_INET, socket.AF_UNIX, socket.AF_UNIX)
        )
        listener.bind(b"\0rootsd-%d" % os.getpid())
        listener.listen()
        fine = [stream[0].fileno(), *os.pipe(), os.open("/dev/null", os.O_RDONLY)]
        fine.append(os.open("/etc/hostname", os.O_RDONLY))
        sockets = [each.fileno() for each in (network, unconnected, listener, datagrams[0])]
        folder, path = os.open("/", os.O_RDONLY), os.open("/etc/hostname", os.O_PATH)
        other = os.eventfd(0)
        for fd in (*fine[1:], folder, path, other):
            stack.callback(os.close, fd)
        assert [refused_kind(fd) for fd in fine] == [None] * len(fine)
        assert all("a socket that" in (refused_kind(fd) or "") for fd in sockets)
        kinds = [refused_kind(fd) or "" for fd in (folder, path, other)]
        assert [kind[:7] for kind in kinds] == ["a folde", "a path ", "not a f"]


def test_a_refused_file_is_named(root: Path) -> None:
    with socket.socket(socket.AF_INET) as network:
        done = subprocess.run(
            [sys.executable, "-m", "rootsd", "confine", "--", "touch", "started"],
            stdin=network.fileno(), capture_output=True, text=True, check=False, cwd=root,
            timeout=_HANG_GUARD_S,
        )  # fmt: skip
    assert done.returncode == Exit.REFUSED
    assert "standard input is a socket" in done.stderr
    assert not (root / "started").exists()
