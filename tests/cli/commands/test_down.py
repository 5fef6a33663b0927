"""`rootsd down`."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pexpect
import psutil
import pytest

from rootsd.cli.answers.confined_programs import end_programs
from rootsd.core.errors import DaemonUnreachable
from rootsd.places.base_folders import WALLS
from rootsd.service import start_record
from rootsd.wall.session.running_walls import running_walls
from support.fake_daemon import FakeDaemon, a_status
from support.person import Person
from support.polling import until
from support.terminal import Shell

_HANG_GUARD_S = 60


@pytest.fixture
def process(daemon: FakeDaemon) -> Iterator[subprocess.Popen[bytes]]:
    """The process whose pid the fake daemon reports; a stop ends it."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:

        def stop(_: object) -> dict[str, object]:
            with pytest.raises(DaemonUnreachable, match="stopped by rootsd down"):
                start_record.load_start_record()  # no bridge may start another one from now on
            child.kill()
            return {}

        about = {"version": "0.2.0", "pid": child.pid, "since": "2026-11-20T08:11:02Z"}
        daemon.answers |= {"status": a_status(daemon=about), "stop": stop}
        yield child
        child.kill()


def test_the_daemon_has_ended_when_it_returns(
    process: subprocess.Popen[bytes], daemon: FakeDaemon, shell: Shell
) -> None:
    done = shell.run("down")
    assert (done.status, done.out) == (0, "")
    assert done.err == f"The daemon (pid {process.pid}) is stopped.\n"
    assert process.poll() is not None
    assert daemon.asked("stop") == [{}]


def test_json_names_the_process(process: subprocess.Popen[bytes], shell: Shell) -> None:
    assert json.loads(shell.run("down", "--json").out)["stopped"] == process.pid


def test_without_a_daemon_it_says_so_and_keeps_bridges_from_starting_one(shell: Shell) -> None:
    start_record.record_start()
    done = shell.run("down")
    assert (done.status, done.err) == (0, "The daemon was not running.\n")
    with pytest.raises(DaemonUnreachable, match="stopped by rootsd down"):
        start_record.load_start_record()


def _front(script: str) -> subprocess.Popen[str]:
    """Start a process that takes the place of a front. It has begun when this returns."""
    front = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True)
    assert front.stdout is not None
    assert front.stdout.readline() == "up\n"
    return front


def test_a_program_that_keeps_running_is_killed() -> None:
    with (
        _front("trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done") as polite,
        _front("trap '' TERM; echo up; while :; do sleep 0.01; done") as stubborn,
    ):
        fronts = [{"pid": each.pid, "warden": each.pid} for each in (polite, stubborn)]
        end_programs(fronts, timeout_s=0.5)
        assert (polite.wait(), stubborn.wait()) == (9, -9)


def test_a_process_that_is_not_connected_is_never_ended() -> None:
    with _front("echo up; exec sleep 1000") as other, _front("echo up; exec sleep 1000") as warden:
        end_programs([{"pid": other.pid, "warden": warden.pid}, {"pid": 0, "warden": 0}])
        assert (other.poll(), warden.poll()) == (None, None)
        for each in (other, warden):
            each.kill()


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    person = Person(tmp_path)
    person.clone("api")
    person.rootsd("up", str(person.parent))
    person.rootsd("approve", "api")
    yield person
    person.run("down")


# A front whose program stops soon without a daemon.
_IMPATIENT = """
import sys
from rootsd.wall.session import main, view_feed
view_feed.GRACE_S = 0.1
sys.exit(main.main(sys.argv[2:]))
"""


@contextmanager
def _confined(
    person: Person, program: Sequence[str] = ("-m", "rootsd")
) -> Iterator[subprocess.Popen[str]]:
    """Run a program behind the wall, which ends when its input does."""
    script = "trap 'echo saved; exit 9' TERM; echo up; read x; echo $x"
    with subprocess.Popen(
        [sys.executable, *program, "confine", "--name", "victim", "--", "sh", "-c", script],
        cwd=person.parent / "api", env=person.environment(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as front:  # fmt: skip
        assert front.stdout is not None
        assert front.stdout.readline() == "up\n"
        try:
            yield front
        finally:
            front.kill()


def _ask(person: Person, key: str, answer: str) -> None:
    """Run `down` on a terminal, and press a key when it asks about the program."""
    down = pexpect.spawn(
        sys.executable, ["-m", "rootsd", "down"], env=person.environment(), encoding="utf-8",
        timeout=_HANG_GUARD_S,
    )  # fmt: skip
    down.expect_exact("victim")
    down.expect_exact("e: end them now")
    down.sendline(key)
    down.expect_exact(answer)
    down.expect(pexpect.EOF)
    down.close()
    assert down.exitstatus == 0


@pytest.mark.needs("wall")
def test_programs_behind_the_wall_wait_unless_a_person_ends_them(person: Person) -> None:
    with _confined(person) as front:
        done = json.loads(person.rootsd("down", "--json"))
        assert (done["waiting"], done["ended"]) == (["victim"], [])
        person.rootsd("up")
        _ask(person, "w", "1 program waits until")
        assert front.poll() is None
        person.rootsd("up")
        out, _ = front.communicate("word\n", timeout=_HANG_GUARD_S)
        assert out == "word\n"
    with _confined(person) as front:
        _ask(person, "e", "Ended: victim")
        assert front.stdout is not None
        assert (front.wait(_HANG_GUARD_S), front.stdout.read()) == (9, "saved\n")


@pytest.mark.needs("wall")
def test_programs_that_wait_for_a_dead_daemon_end_if_that_is_wanted(person: Person) -> None:
    with _confined(person, ["-c", _IMPATIENT]) as front:
        os.kill(person.daemon_pid(), signal.SIGKILL)
        inside = psutil.Process(front.pid)
        until(lambda: any(each.status() == "stopped" for each in inside.children(recursive=True)))
        done = person.run("down")
        assert "The daemon was not running." in done.stderr
        assert "1 program waits until the next rootsd up: victim" in done.stderr
        assert front.poll() is None
        assert "Ended: victim" in person.run("down", "--programs", "end").stderr
        assert front.stdout is not None
        assert (front.wait(_HANG_GUARD_S), front.stdout.read()) == (9, "saved\n")


@pytest.mark.needs("wall")
def test_a_wall_that_has_ended_or_a_forged_lock_names_no_process(tmp_path: Path) -> None:
    lock = tmp_path / "confine" / "name" / "0" / "lock"
    lock.parent.mkdir(parents=True)
    lock.write_text(f"{os.getpid()}\n")
    assert running_walls(os.fsencode(tmp_path) + WALLS) == []  # nobody holds it
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert running_walls(os.fsencode(tmp_path) + WALLS) == []  # this process has no waiter
