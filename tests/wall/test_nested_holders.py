"""With `--nested --on-revoke kill`, no process keeps a folder that was taken away.

Neither Landlock nor seccomp forbids mounts then, so a program can keep more than open files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from rootsd.core.wall import RevokePolicy
from rootsd.wall.kernel.orders import OrderKind
from rootsd.wall.kernel.supervision import Layer
from support.walls import Wall, Weakness, root_at

pytestmark = [pytest.mark.needs("wall")]

_NESTED = (Layer.LANDLOCK, Layer.MOUNT_CALLS)
# Each line makes `kept` a path by which the folder `root` can still be reached.
_BY_FOLDERS_AND_MOUNTS = {
    "a working directory": "os.chdir(root); kept = '.'",
    "the working directory of a thread": "in_thread(lambda: (unshare(0x200), os.chdir(root)))",
    "a bind mount": "apart(); bind(root, '/tmp/a'); kept = '/tmp/a'",
    "a bind mount of a folder in it": "apart(); bind(root + '/sub', '/tmp/b'); kept = '/tmp/b/..'",
    "a bind mount in a thread": "apart(); in_thread(lambda: ("
    "unshare(0x20000), bind(root, '/tmp/t')))",
    "a bind mount after chroot": "apart(); bind(root, '/tmp/c/x'); os.chroot('/tmp/c');"
    " os.chdir('/'); kept = '/x'",
    "a root folder": "apart(); os.chroot(root); os.chdir('/'); kept = '/'",
    "a namespace without a process": "space = child(lambda: bind(root, '/tmp/d'), 'ns/mnt');"
    " owner = child(lambda: bind(root, '/tmp/d'), 'ns/mnt'); kept = '/proc/self/fd'",
}
if os.geteuid() != 0:  # root has no capability to map itself once more
    _BY_FOLDERS_AND_MOUNTS["the root folder of a namespace with locked mounts"] = (
        "top = child(lambda: (bind(root, '/tmp/e'), apart()), 'root');"
        " kept = f'/proc/self/fd/{top}/tmp/e'"
    )
# Their standard files hang below no mount that they still see.
_FOUND_ANYWAY = {"a bind mount after chroot", "a root folder"}
_BY_THREADS = {
    "an open folder after the first thread": "FD = os.open(root, os.O_PATH); outlive()",
    "an open folder of a thread with its own table": "in_thread(lambda: ("
    "unshare(0x400), os.open(root + '/file', 0)))",
}
# In a process that a wall's interpreter has forked.
_HELPERS = """
import threading
kept = None

def unshare(flags):
    checked(libc.unshare(flags))

def apart():
    uid, gid = os.geteuid(), os.getegid()
    unshare(0x10020000)
    one = f'{uid} {uid} 1', f'{gid} {gid} 1'
    for name, text in zip(('setgroups', 'uid_map', 'gid_map'), ('deny', *one)):
        if uid:
            with open('/proc/self/' + name, 'w') as file:
                file.write(text)

def bind(source, target):
    os.makedirs(target, exist_ok=True)
    flags = ctypes.c_ulong(0x1000)
    checked(libc.mount(os.fsencode(source), os.fsencode(target), None, flags, None))

def child(action, name):
    # Open something of a child that is then killed.
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        apart()
        action()
        os.write(tell, b'x')
        os.read(0, 1)
        os._exit(0)
    os.close(tell)
    assert os.read(ready, 1) == b'x'
    fd = os.open(f'/proc/{pid}/{name}', os.O_PATH if name == 'root' else 0)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return fd

def serve():
    print('ready', flush=True)
    for line in iter(lambda: os.read(0, 1), b''):
        try:
            print(open(kept + '/file').read() if kept else 'runs', flush=True)
        except OSError as error:
            print(error, flush=True)

def in_thread(action):
    thread = threading.Thread(target=lambda: (action(), serve()))
    thread.start()
    thread.join()
    os._exit(0)

def outlive():
    threading.Thread(target=serve).start()
    libc.syscall(60 if os.uname().machine == 'x86_64' else 93, 0)
"""

_START = """
def start(way, helpers):
    (theirs, to), (back, ours) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(theirs, 0), os.dup2(ours, 1)
        os.closerange(3, 100)
        try:
            exec(helpers + way + '\\nserve()', {**SPACE})
        except BaseException as error:
            print(repr(error), flush=True)
        finally:
            os._exit(1)
    os.close(theirs), os.close(ours)
    HELD[way] = to, open(back)
    return HELD[way][1].readline().strip()

def ask(way):
    to, back = HELD[way]
    try:
        os.write(to, b'x')
    except BrokenPipeError:
        pass
    return back.readline().strip()
"""


class Holders:
    """A wall without the layers that `--nested` leaves out, and processes that hold its root."""

    def __init__(self, folder: Path, weak: tuple[Weakness, ...]) -> None:
        root = folder / "home" / "root"
        (root / "sub").mkdir(parents=True)
        (root / "file").write_text("text")
        self.wall = Wall(
            folder / "state",
            folder / "home",
            [root_at(root)],
            without=_NESTED,
            on_revoke=RevokePolicy.KILL,
            weaknesses=weak,
        )
        self.wall.run(f"HELD, root = {{}}, {str(root)!r}\n{_START}")

    def start(self, ways: Iterable[str]) -> None:
        for way in ways:
            began = self.wall.run(f"result = start({way!r}, {_HELPERS!r})")
            assert began == "ready", (way, began)

    def revoke(self) -> None:
        self.wall.order(OrderKind.SET)

    def answer_of(self, way: str) -> str:
        """Return what the process says; nothing if it has ended."""
        answer: str = self.wall.run(f"result = ask({way!r})")
        return answer


@pytest.mark.parametrize("is_weak", [False, True])
def test_no_folder_or_mount_of_a_program_outlives_a_revoke(tmp_path: Path, is_weak: bool) -> None:
    bystander = "threading.Thread(target=serve).start(); threading.Event().wait()"
    held = Holders(tmp_path, (Weakness.FILES_ONLY,) if is_weak else ())
    with held.wall:
        held.start((*_BY_FOLDERS_AND_MOUNTS.values(), bystander))
        held.revoke()
        left = {name for name, way in _BY_FOLDERS_AND_MOUNTS.items() if held.answer_of(way)}
        assert left == (_BY_FOLDERS_AND_MOUNTS.keys() - _FOUND_ANYWAY if is_weak else set())
        assert held.answer_of(bystander) == "runs"
        if is_weak:
            assert held.answer_of(_BY_FOLDERS_AND_MOUNTS["a bind mount"]) == "text"
            assert held.answer_of(_BY_FOLDERS_AND_MOUNTS["a working directory"]) == "text"


@pytest.mark.parametrize("is_weak", [False, True])
def test_every_thread_of_a_holder_is_looked_at(tmp_path: Path, is_weak: bool) -> None:
    held = Holders(tmp_path, (Weakness.FIRST_THREAD,) if is_weak else ())
    with held.wall:
        held.start(_BY_THREADS.values())
        held.revoke()
        left = {name for name, way in _BY_THREADS.items() if held.answer_of(way)}
        assert left == (_BY_THREADS.keys() if is_weak else set())
