"""Reading real processes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rootsd.core.known_programs import ProgramUse
from rootsd.core.processes import Lineage, LineageCompleteness, ProgramSight
from rootsd.core.recognition import uses_of
from rootsd.processes import process_tree as module
from rootsd.processes.process_tree import ProcessReader, ReadBudget, lineages
from support.polling import until

WAIT = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.mark.needs("linux")
def test_a_process_and_its_ancestors(tmp_path: Path) -> None:
    program = tmp_path / "my agent"
    program.symlink_to(sys.executable)
    with subprocess.Popen(
        [program, "-c", WAIT, "word"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "MARK": "1", "EMPTY": "", "OTHER": "x"},
    ) as started:  # fmt: skip
        assert started.stdin is not None
        assert started.stdout is not None
        assert started.stdout.readline() == b"ready\n"
        markers = ("MARK", "MARK=1", "MARK=2", "EMPTY", "OTHER=1", "ABSENT")
        line = lineages([started.pid], markers)[started.pid].processes
        again = {
            pid: seen.processes for pid, seen in lineages([started.pid, os.getpid()], ()).items()
        }
        started.stdin.close()
    first, second = line[:2]
    assert (first.pid, first.parent, second.pid) == (started.pid, os.getpid(), os.getpid())
    assert first.name == b"my agent"
    assert first.arguments == (os.fsencode(program), b"-c", WAIT.encode(), b"word")
    assert first.markers == {"MARK", "MARK=1"}
    assert first.started >= second.started
    assert 1 not in {process.pid for process in line}
    assert again[started.pid][1:] == again[os.getpid()]


@pytest.mark.needs("linux")
def test_a_terminal_is_reported() -> None:
    pid, terminal = pty.fork()
    if not pid:
        # Closing the terminal ends this process with SIGHUP, or fails the read if that is ignored.
        with suppress(OSError):
            os.write(1, b"ready")
            os.read(0, 1)
        os._exit(0)
    try:
        assert os.read(terminal, 5) == b"ready"
        assert lineages([pid], ())[pid].processes[0].terminal != 0
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


DEEP = """
import os, sys
depth = int(sys.argv[1])
while depth and not os.fork():
    depth -= 1
if depth:
    os.wait()
    os._exit(0)
else:
    print(os.getpid(), flush=True)
    sys.stdin.read()
"""


@pytest.mark.needs("linux")
def test_a_very_long_lineage_is_marked_as_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DEEP, "20"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as started:
        assert started.stdin is not None
        assert started.stdout is not None
        deepest = int(started.stdout.readline())
        whole = lineages([deepest], ("MARK",))[deepest]
        assert whole.completeness is LineageCompleteness.COMPLETE
        monkeypatch.setattr(module, "_MAX_ANCESTORS", 20)
        cut = lineages([deepest], ("MARK",))[deepest]
        assert cut == Lineage(whole.processes[:20], LineageCompleteness.CUT_OFF)
        started.stdin.close()


@pytest.mark.needs("linux")
def test_an_environment_beyond_the_limit_is_marked_as_incomplete() -> None:
    large = {f"V{n:02}": "x" * 100_000 for n in range(12)}
    with subprocess.Popen(
        [sys.executable, "-c", WAIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={"EARLY": "1", **large, "MARK": "1"},
    ) as started:  # fmt: skip
        assert started.stdin is not None
        assert started.stdout is not None
        assert started.stdout.readline() == b"ready\n"
        cut = lineages([started.pid], ("EARLY", "MARK"))[started.pid]
        assert cut.completeness is LineageCompleteness.CUT_OFF
        assert cut.processes[0].markers == {"EARLY"}
        # If no variable is requested, none has to be read.
        assert lineages([started.pid], ())[started.pid].is_complete
        spent = ProcessReader(("EARLY",), ReadBudget(environments=0)).lineage(started.pid)
        assert spent.completeness is LineageCompleteness.CUT_OFF
        started.stdin.close()


def test_a_read_that_ran_out_of_time_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert lineages([ended.pid], ("MARK",)) == {ended.pid: Lineage()}, "the control: it has ended"
    assert lineages([], ()) == {}
    monkeypatch.setattr(module, "READ_TIMEOUT_S", -1.0)
    assert lineages([os.getpid()], ())[os.getpid()] == Lineage((), LineageCompleteness.LATE)


IDLE = "import os, sys; os.write(1, b'ready'); sys.stdin.read()"
DISGUISE = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(15, b"bash", 0, 0, 0)  # PR_SET_NAME
os.write(1, b"ready")
sys.stdin.read()
"""
# The first thread ends, and another one goes on: pthread_exit(3).
WITHOUT_LEADER = """
import ctypes, os, sys, threading
threading.Thread(target=lambda: (os.write(1, b"ready"), sys.stdin.read())).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)  # exit(2)
"""


def running(program: str, text: str, *, named: str = "") -> subprocess.Popen[bytes]:
    """Start Python under a name, and return it once it runs `text`."""
    started = subprocess.Popen(
        [named or program, "-c", text], executable=program, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, env={**os.environ, "MARK": "1", "PYTHONHOME": sys.base_prefix},
    )  # fmt: skip
    assert started.stdout is not None
    assert started.stdout.read(5) == b"ready"
    return started


@pytest.mark.needs("linux")
def test_the_program_is_the_real_one_whatever_a_process_calls_itself(tmp_path: Path) -> None:
    python = os.path.realpath(sys.executable)
    link, copy = tmp_path / "bash", tmp_path / "zsh"
    link.symlink_to(python)
    copy.write_bytes(Path(python).read_bytes())
    copy.chmod(0o700)
    for program, name, real in ((str(link), "bash", python), (str(copy), "-zsh", str(copy))):
        with running(program, DISGUISE, named=name) as started:
            (first, *_) = lineages([started.pid], ())[started.pid].processes
            assert first.name == b"bash"
            assert first.program == os.fsencode(real)
            assert first.sight is ProgramSight.SEEN
            assert uses_of((first,)) == [None]
            started.communicate()


@pytest.mark.needs("linux")
def test_a_plain_folder_is_not_the_mount_of_an_app_image(monkeypatch: pytest.MonkeyPatch) -> None:
    with TemporaryDirectory(prefix=".mount_", dir="/tmp") as folder:
        copy = Path(folder) / "code"
        copy.write_bytes(Path(os.path.realpath(sys.executable)).read_bytes())
        copy.chmod(0o700)
        with running(str(copy), DISGUISE) as started:
            (first, *_) = lineages([started.pid], ())[started.pid].processes
            assert (first.program, uses_of((first,))) == (b"", [None])
            # The control: on another file system than /tmp, it is the image's program.
            monkeypatch.setattr(module, "_TEMPORARY", b"/proc")
            (first, *_) = lineages([started.pid], ())[started.pid].processes
            assert uses_of((first,)) == [ProgramUse.EDITOR]
            started.communicate()


@pytest.mark.needs("linux")
def test_a_zombie_is_dead_but_not_one_whose_other_threads_live() -> None:
    ended = subprocess.Popen([sys.executable, "-c", "pass"], stdout=subprocess.PIPE)
    assert ended.stdout is not None
    assert ended.stdout.read() == b""
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert Path(f"/proc/{ended.pid}/stat").exists(), "nobody has waited for it"
    assert lineages([ended.pid], ("MARK",))[ended.pid] == Lineage()
    ended.communicate()
    with running(sys.executable, WITHOUT_LEADER) as started:
        leader = Path(f"/proc/{started.pid}/stat")
        until(lambda: leader.read_text().rpartition(")")[2].split()[0] == "Z")
        (first, *_) = lineages([started.pid], ("MARK",))[started.pid].processes
        assert first.program == os.fsencode(os.path.realpath(sys.executable))
        assert first.arguments[1] == b"-c"
        assert first.markers == {"MARK"}
        started.communicate()


@pytest.mark.needs("linux")
def test_a_program_at_another_path_in_its_own_mount_namespace_is_unknown(tmp_path: Path) -> None:
    shown = tmp_path / "bash"
    shown.write_bytes(b"#")
    words = ["unshare", "-Urm", "sh", "-c", f'mount --bind "$0" {shown} && exec {shown} -c "$1"']
    with subprocess.Popen(
        [*words, os.path.realpath(sys.executable), IDLE],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as started:  # fmt: skip
        assert started.stdout is not None
        assert started.stdout.read(5) == b"ready"
        (first, *_) = lineages([started.pid], ())[started.pid].processes
        assert first.program == b""
        started.communicate()


# After its imports, because Python may lie where only root may look. A program that root starts as
# another user can be examined again, as it could after an exec.
BECOMES_ORDINARY = """
import ctypes, os
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(12345, 12345, 12345)
    os.setresuid(12345, 12345, 12345)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE
"""
HIDES = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
os.write(1, b"ready")
sys.stdin.read()
"""
READS = """
import os, sys
from rootsd.processes.process_tree import lineages
from rootsd.processes.terminals import _instance_at
BECOMES_ORDINARY
pid = int(sys.argv[1])
# A hidden process has a terminal like any other, so that a challenge can be shown.
assert _instance_at(pid) == os.stat("/dev/pts").st_dev
print(lineages([pid], ())[pid].processes[0].sight.value)
"""


@pytest.mark.needs("linux")
def test_a_process_that_hides_is_told_from_one_with_other_rights() -> None:
    """As an ordinary user: root may read every process."""

    def sight_of(started: subprocess.Popen[bytes]) -> str:
        text = READS.replace("BECOMES_ORDINARY", BECOMES_ORDINARY)
        words = [sys.executable, "-c", text, str(started.pid)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run(
            words, check=True, capture_output=True, text=True, env=environment
        ).stdout.strip()

    for text, expected in ((HIDES, ProgramSight.HIDDEN), (IDLE, ProgramSight.SEEN)):
        with subprocess.Popen(
            [sys.executable, "-c", f"import sys\n{BECOMES_ORDINARY}\n{text}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as started:
            assert started.stdout is not None
            assert started.stdout.read(5) == b"ready"
            assert sight_of(started) == expected
            started.communicate()
    if os.geteuid() == 0:
        with running(sys.executable, IDLE) as of_root:
            assert sight_of(of_root) == ProgramSight.OF_ROOT
            of_root.communicate()
