"""The rights that a confined daemon gives up and keeps, and the report where it cannot."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from rootsd.wall.kernel import daemon_rights as confine_module
from rootsd.wall.kernel.daemon_rights import Confinement, confine_daemon
from support.subprocesses import run_python

ATTEMPTS = """
import errno, os, shutil, socket, sqlite3, subprocess, sys, threading
from rootsd.wall.kernel.daemon_rights import confine_daemon

def attempt(what, action):
    try:
        action()
    except OSError as error:
        print(what, errno.errorcode[error.errno])
    except sqlite3.Error as error:
        print(what, error)
    else:
        print(what, "ok")

def write(path, flags=os.O_WRONLY | os.O_CREAT):
    os.close(os.open(path, flags))

def keep(path):
    db = sqlite3.connect(path)
    db.executescript("PRAGMA temp_store=MEMORY; CREATE TABLE t(x); INSERT INTO t VALUES(1)")
    db.close()

def replace(old, new):
    write(old)
    os.rename(old, new)

def bind(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path)

def start_from_memory():
    memory = os.memfd_create("program")
    with open(shutil.which("true"), "rb") as program:
        os.write(memory, program.read())
    subprocess.run([f"/proc/self/fd/{memory}"], pass_fds=[memory], check=True)

def tcp(port):
    socket.create_connection(("127.0.0.1", port), 10).close()

place, state, port = os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2]), int(sys.argv[3])
print("confined", *confine_daemon([state]))

def all_of(who):
    attempt(who + "-write", lambda: write(place + b"/file"))
    attempt(who + "-append", lambda: write(place + b"/file", os.O_WRONLY | os.O_APPEND))
    attempt(who + "-truncate", lambda: os.truncate(place + b"/file", 0))
    attempt(who + "-make", lambda: write(place + b"/new"))
    attempt(who + "-folder", lambda: os.mkdir(place + b"/folder"))
    attempt(who + "-link", lambda: os.symlink(b"x", place + b"/link"))
    attempt(who + "-rename", lambda: os.rename(place + b"/file", place + b"/other"))
    attempt(who + "-remove", lambda: os.unlink(place + b"/file"))
    attempt(who + "-move-in", lambda: os.rename(place + b"/file", state + b"/stolen"))
    attempt(who + "-start", lambda: subprocess.run(["true"], check=True))
    attempt(who + "-start-own", lambda: subprocess.run([sys.executable, "-V"], check=True))
    attempt(who + "-start-from-memory", start_from_memory)
    attempt(who + "-tcp", lambda: tcp(port))
    attempt(who + "-read", lambda: os.close(os.open(place + b"/file", os.O_RDONLY)))
    attempt(who + "-list", lambda: os.listdir(place))
    attempt(who + "-keep", lambda: keep(state + b"/" + who.encode() + b".db"))
    attempt(who + "-replace", lambda: replace(state + b"/a", state + b"/b"))
    attempt(who + "-bind", lambda: bind(state + b"/" + who.encode() + b".sock"))
    attempt(who + "-nowhere", lambda: write("/dev/null"))

all_of("main")
thread = threading.Thread(target=all_of, args=("thread",))
thread.start()
thread.join()
"""
REFUSED = {
    "write", "append", "truncate", "make", "folder", "link", "rename", "remove", "move-in",
    "start", "start-own", "start-from-memory", "tcp",
}  # fmt: skip
DUTIES = {"read", "list", "keep", "replace", "bind", "nowhere"}


@pytest.mark.needs("landlock")
def test_every_thread_is_refused_the_same_calls_and_keeps_the_others(tmp_path: Path) -> None:
    place, state = tmp_path / "place", tmp_path / "state"
    place.mkdir()
    state.mkdir()
    (place / "file").touch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = Path(str(server.getsockname()[1]))
        printed, complaint = run_python((), ATTEMPTS, place, state, port)
    assert complaint == ""
    confined, *lines = printed.splitlines()
    assert confined == "confined landlock None"
    told = dict(line.split(maxsplit=1) for line in lines)
    refused = {f"{who}-{what}" for who in ("main", "thread") for what in REFUSED}
    duties = {f"{who}-{what}" for who in ("main", "thread") for what in DUTIES}
    assert {what for what, result in told.items() if result in ("EACCES", "EXDEV")} == refused
    assert {what for what, result in told.items() if result == "ok"} == duties


def test_the_same_attempts_succeed_without_confinement(tmp_path: Path) -> None:
    """The positive control."""
    place, state = tmp_path / "place", tmp_path / "state"
    place.mkdir()
    state.mkdir()
    (place / "file").touch()
    free = ATTEMPTS.replace("confine_daemon([state])", '"not"')
    printed, _ = run_python((), free, place, state, Path("1"))
    told = dict(line.split(maxsplit=1) for line in printed.splitlines()[1:])
    starts = {f"main-{what}" for what in ("start", "start-own", "start-from-memory")}
    for what in starts | {"main-write", "main-append", "main-make"}:
        assert told[what] == "ok"


def test_without_landlock_the_daemon_continues_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert confine_daemon([b"/nowhere"]) == (Confinement.NONE, None)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(confine_module, "version", lambda: 0)
    monkeypatch.setattr(os, "listdir", lambda path: ["1"])
    kind, why = confine_daemon([b"/nowhere"])
    assert kind is Confinement.NONE
    assert "no Landlock" in (why or "")


@pytest.mark.needs("landlock")
def test_with_threads_or_a_missing_folder_no_right_is_given_up(tmp_path: Path) -> None:
    code = """
import sys, threading
from rootsd.wall.kernel.daemon_rights import confine_daemon
print(confine_daemon([b"/nowhere/at/all"]))
end = threading.Event()
thread = threading.Thread(target=end.wait)
thread.start()
print(confine_daemon([sys.argv[1].encode()]))
end.set()
open(sys.argv[1] + "/../outside", "w").close()
"""
    (tmp_path / "state").mkdir()
    printed, complaint = run_python((), code, tmp_path / "state")
    assert complaint == ""
    missing, threads = printed.splitlines()
    assert "No such file or directory" in missing
    assert "threads already" in threads
