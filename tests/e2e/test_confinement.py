"""The confined daemon does all its work, and the kernel refuses none of its calls."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from support import bridges, call_trace
from support.bridges import ASKING_FOR_ROOTS, told_roots
from support.person import HANG_GUARD, Person
from support.sizes import Sizes

pytestmark = [pytest.mark.needs("landlock"), pytest.mark.needs("strace")]

SOME_TESTS = ("test_main_job.py", "test_request_root.py")
# Excluded tests: some run the daemon as other users, who are refused many calls without
# confinement; some refuse it a folder on purpose; some trace processes, which a traced process
# cannot.
NOT_TRACED = (
    "test_confinement.py",
    "test_logout.py",
    "test_sandbox.py",
    "test_service.py",
    "test_service_hardening.py",
    "test_service_kills.py",
    "test_service_upgrades.py",
    "test_other_users.py",
)
STRACE = ("strace", "-f", "-qq", "--seccomp-bpf")
TRACE = (*STRACE, "-e", "trace=%file,%network,%desc,%process", "-e", "status=failed")
REFUSED = re.compile(r"= -1 E(?:ACCES|PERM)\b")


def refused_calls(trace: Path) -> list[str]:
    """Return the refused calls, without those of the helper, which is not confined."""
    lines = trace.read_text(errors="replace").splitlines()
    return [line for line in lines if REFUSED.search(line) and '"/proc/' not in line]


@contextmanager
def traced_daemon(person: Person, trace: Path, tracer: Sequence[str] = TRACE) -> Iterator[None]:
    """Run a daemon in the foreground, and record each failed call of its threads and its
    helper.
    """
    command = [*tracer, "-o", str(trace), sys.executable, "-m", "rootsd", "daemon", "--ready-fd"]
    ready, says_ready = os.pipe()
    with subprocess.Popen(
        [*command, str(says_ready)], pass_fds=(says_ready,), env=person.environment()
    ) as daemon:
        os.close(says_ready)
        with os.fdopen(ready) as told:
            assert told.readline() == "ready\n"
        try:
            yield
        finally:
            person.rootsd("down")
            daemon.wait(HANG_GUARD)


def test_no_call_of_the_working_confined_daemon_is_refused(tmp_path: Path) -> None:
    person, trace = Person(tmp_path), tmp_path / "trace"
    with traced_daemon(person, trace):
        assert json.loads(person.rootsd("status", "--json"))["daemon"]["confined"] == "landlock"
        person.rootsd("parent", "add", str(person.parent))
        one = person.clone("one")
        person.wait_until_listed("one", "pending")
        person.rootsd("approve", "one")
        person.rootsd("show", "one")
        done = bridges.run(ASKING_FOR_ROOTS, HOME=str(person.home))
        assert [root["name"] for root in told_roots(done.stdout.decode())] == ["one"]
        shutil.copytree(one, person.parent / "two")
        person.wait_until_listed("two", "pending")
        person.rootsd("deny", "two")
        shutil.rmtree(one)
        person.rootsd("scan")
        person.rootsd("guard", "agents")
        person.rootsd("guard")
        person.rootsd("log")
        person.rootsd("sessions", "--history")
    assert refused_calls(trace) == []
    assert "ENOENT" in trace.read_text(), "nothing was traced"


def test_without_landlock_the_daemon_serves_and_says_so(tmp_path: Path) -> None:
    person = Person(tmp_path)
    lacking = "inject=landlock_create_ruleset:error=ENOSYS"
    tracer = (*STRACE, "-e", lacking)
    with traced_daemon(person, tmp_path / "trace", tracer):
        status = json.loads(person.rootsd("status", "--json"))
        assert status["daemon"]["confined"] == "none"
        assert any("this kernel offers no Landlock" in told for told in status["degraded"])
        person.rootsd("parent", "add", str(person.parent))
        person.clone("one")
        person.wait_until_listed("one", "pending")
        person.rootsd("approve", "one")
        assert person.run("check", str(person.parent / "one")).returncode == 0


def test_control_a_refused_call_is_seen(tmp_path: Path) -> None:
    """The positive control."""
    (tmp_path / "state").mkdir()
    code = f"""
from rootsd.wall.kernel.daemon_rights import confine_daemon
confine_daemon([{bytes(tmp_path / "state")!r}])
try:
    open({str(tmp_path / "elsewhere")!r}, "w")
except PermissionError:
    pass
"""
    trace = tmp_path / "trace"
    subprocess.run([*TRACE, "-o", str(trace), sys.executable, "-c", code], check=True)
    assert len(refused_calls(trace)) == 1


def test_no_call_of_confined_processes_is_refused_while_other_tests_run(
    tmp_path: Path, sizes: Sizes
) -> None:
    """Cover all daemons and workers of those tests. They are recognized by the calls that confine
    them.
    """
    here = Path(__file__).parent
    whole = [file.name for file in sorted(here.glob("test_*.py")) if file.name not in NOT_TRACED]
    names = sizes.pick(test=(), check=SOME_TESTS, soak=tuple(whole))
    if not names:  # to trace pytest belongs to `make check`; above is the daemon's whole work
        return
    refused = tmp_path / "refused"
    follow = f"{sys.executable} {call_trace.__file__} {refused}"
    words = [*STRACE, "-e", f"trace={call_trace.TRACED}"]
    tests = [
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib",
        "-o", "faulthandler_timeout=900",
    ]  # fmt: skip
    with TemporaryDirectory() as short:  # the paths of other programs' sockets must fit
        done = subprocess.run(
            [*words, "-o", f"|{follow}", sys.executable, *tests, f"--basetemp={short}/t",
             *(str(here / name) for name in names)],
            cwd=here.parent.parent, capture_output=True, text=True, check=False,
        )  # fmt: skip
    told = json.loads(refused.read_text())
    print(f"{told['confined']} threads confined, {len(told['refused'])} calls refused")  # noqa: T201
    assert told["refused"] == []
    assert told["confined"] > len(names), "the daemons were not seen"
    assert done.returncode == 0, done.stdout


def test_the_trace_parser_distinguishes_confined_processes() -> None:
    trace = """\
10 openat(AT_FDCWD, "/x", O_WRONLY) = -1 EACCES (Permission denied)
10 landlock_restrict_self(3, 0) = 0
10 clone3({flags=CLONE_VM} <unfinished ...>
11 openat(AT_FDCWD, "/y", O_WRONLY) = -1 EACCES (Permission denied)
10 <... clone3 resumed> => {parent_tid=[12]}, 88) = 12
12 openat(AT_FDCWD, "/z", O_WRONLY <unfinished ...>
12 <... openat resumed>) = -1 EPERM (Operation not permitted)
10 mkdir("/w", 0700) = -1 EEXIST (File exists)
12 +++ exited with 0 +++
12 mkdir("/v", 0700) = -1 EACCES (Permission denied)
"""
    told = call_trace.parse_trace(trace.splitlines())
    assert told.confined == 2
    assert [line.split()[0] for line in told.refused] == ["12"]
    assert "openat" in told.refused[0]
