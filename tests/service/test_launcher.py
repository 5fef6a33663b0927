"""Starting the daemon in the background: ready, failed, recorded, forbidden."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rootsd.core.errors import DaemonUnreachable, ErrorCode
from rootsd.service import launcher
from rootsd.service.launcher import ExitWaiter, StartFailed
from rootsd.service.start_record import StartPlan

HANG_GUARD = 60
# The program that replaces the daemon. It finds the descriptor as the daemon does.
PROGRAM = "import os, sys; fd = int(sys.argv[sys.argv.index('--ready-fd') + 1]); "


def recipe(tmp_path: Path, program: str, **environment: str) -> StartPlan:
    command = (sys.executable, "-c", PROGRAM + program)
    return StartPlan(command, command, environment, tmp_path, tmp_path / "log")


def test_it_waits_only_for_the_daemons_first_process(tmp_path: Path) -> None:
    """The daemon forks itself into the background."""
    program = (
        "os.fork() and os._exit(0); os.write(fd, b'ready\\n'); os.close(fd); "
        f"open({str(tmp_path / 'go')!r}).read()"
    )
    os.mkfifo(tmp_path / "go")
    launcher.launch(recipe(tmp_path, program), HANG_GUARD)
    with (tmp_path / "go").open("w"):
        pass  # it can be opened only while the daemon reads, so the daemon is alive


# It is left to run, so the end of the `Popen` warns.
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_the_start_of_sync_waits_until_it_is_ready_and_not_until_it_ends(tmp_path: Path) -> None:
    program = (
        f"open({str(tmp_path / 'lock')!r}, 'x').close(); os.write(fd, b'ready\\n'); os.close(fd); "
        f"open({str(tmp_path / 'end')!r}).read()"
    )
    os.mkfifo(tmp_path / "end")
    launcher.launch_sync(recipe(tmp_path, program))
    assert (tmp_path / "lock").exists()
    with (tmp_path / "end").open("w"):
        pass  # it can be opened only while the process reads, so the process is alive


def test_the_daemon_is_detached_and_has_a_clean_environment(tmp_path: Path) -> None:
    program = (
        "print(os.getsid(0), os.getcwd(), os.umask(0), os.read(0, 9), dict(os.environ)); "
        "sys.stdout.flush(); os.write(fd, b'ready\\n')"
    )
    made = recipe(tmp_path, program, HOME="/h")
    launcher.launch(made, HANG_GUARD)
    said = made.log.read_text()
    assert not said.startswith(f"{os.getsid(0)} ")
    assert " / 63 b'' {'HOME': '/h'" in said
    assert stat.S_IMODE(made.log.stat().st_mode) == 0o600


def test_a_daemon_that_ends_first_is_an_error_with_its_last_output(tmp_path: Path) -> None:
    log = tmp_path / "log" / "daemon.log"
    log.parent.mkdir(mode=0o700)
    log.write_text("an old line\n")
    program = "[print('line', n, file=sys.stderr) for n in range(9)]; sys.exit(1)"
    with pytest.raises(StartFailed) as caught:
        launcher.launch(recipe(tmp_path, program), HANG_GUARD)
    assert caught.value.message.splitlines() == [
        "the daemon ended before it was ready",
        *(f"line {n}" for n in range(4, 9)),
    ]
    assert caught.value.remedy == f"tail {log}"
    assert "an old line" in log.read_text()


def test_an_error_of_the_daemon_is_passed_on_completely(tmp_path: Path) -> None:
    told = {"code": "busy", "message": "another rootsd is at work", "remedy": "rootsd status"}
    program = f"os.write(fd, b'error ' + {json.dumps(told).encode()!r} + b'\\n')"
    with pytest.raises(StartFailed, match="another rootsd") as caught:
        launcher.launch(recipe(tmp_path, program), HANG_GUARD)
    assert (caught.value.code, caught.value.remedy) == (ErrorCode.BUSY, "rootsd status")
    with pytest.raises(StartFailed, match="ended before it was ready"):  # it is still an error
        launcher.launch(recipe(tmp_path, "os.write(fd, b'error {}\\n')"), HANG_GUARD)


@pytest.mark.parametrize("error", [None, DaemonUnreachable("was stopped", "rootsd up")])
def test_a_message_of_the_daemon_without_a_reader_is_ignored(
    error: DaemonUnreachable | None,
) -> None:
    def say(fd: int) -> None:
        launcher.report_ready(fd) if error is None else launcher.report_failed(fd, error)

    listening, fd = os.pipe()
    say(fd)
    with open(listening, "rb") as pipe:
        assert pipe.read().startswith(b"ready\n" if error is None else b'error {"code": ')
    gone, fd = os.pipe()
    os.close(gone)
    say(fd)


def test_a_daemon_that_is_never_ready_is_given_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "end")
    program = f"open({str(tmp_path / 'end')!r}).read()"
    with pytest.raises(StartFailed, match="not ready after 0 s"):
        launcher.launch(recipe(tmp_path, program), 0.1)


def test_a_missing_command_is_named(tmp_path: Path) -> None:
    gone = recipe(tmp_path, "")._replace(daemon=(str(tmp_path / "python"),))
    with pytest.raises(StartFailed, match="python cannot be started: No such file"):
        launcher.launch(gone)


def test_it_returns_when_the_daemon_is_ready_and_rotates_a_large_log(tmp_path: Path) -> None:
    log = tmp_path / "log" / "daemon.log"
    log.parent.mkdir(mode=0o700)
    log.write_bytes(b"x" * (launcher.MAX_LOG + 1))
    launcher.launch(recipe(tmp_path, "os.write(fd, b'ready\\n')"), HANG_GUARD)
    assert log.stat().st_size == 0
    assert (log.parent / "daemon.log.old").stat().st_size == launcher.MAX_LOG + 1


def test_it_waits_for_the_end_of_a_process() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with ExitWaiter(process.pid) as departure:
        assert not departure.wait(0)
        process.send_signal(signal.SIGKILL)
        assert departure.wait(HANG_GUARD)
    process.communicate()
    with ExitWaiter(process.pid) as departure:
        assert departure.wait(0), "an ended process counts as ended"


def test_one_start_at_a_time_holds_the_lock_which_ends_with_its_holder() -> None:
    program = (
        "from rootsd.service import launcher\n"
        "with launcher.hold_start_lock():\n"
        "    print('holding', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"holding\n"
        entered = threading.Event()

        def enter() -> None:
            with launcher.hold_start_lock():
                entered.set()

        waiting = threading.Thread(target=enter)
        waiting.start()
        assert not entered.wait(0.2)
        holder.kill()
        assert entered.wait(HANG_GUARD)
        waiting.join()
