"""An ordinary user with its own processes and no network except loopback.

Tests run real agent programs as this user. Some of the programs refuse to run as root, all of them
would use the network, and the processes that they start must end with the test. `unshare` makes
namespaces for users, processes, mounts, and the network. Inside, the user id is 1000, whatever
user runs the tests. Files keep their owner, so the checkout and its interpreter stay readable.

The processes are arranged as on a desktop. The first process only reaps orphans. A session
process, which is older than all agents, starts everything that the test asks for. The programs of
a person stay in the control group of that session. A program started with `Group.OWN` gets its own
control group, as systemd does for each program of a desktop. That takes root outside, or a
delegated group: `has_groups` says whether it works.

This file is also the program that runs inside. It needs Linux and `unshare`, `setpriv`, and
`mount` of util-linux.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

USER, UID = "you", 1000
HANG_GUARD_S = 180
_NAMESPACES = (
    "unshare", "--user", f"--map-user={UID}", f"--map-group={UID}", "--keep-caps",
    "--net", "--cgroup", "--pid", "--fork", "--kill-child", "--mount-proc", "--",
)  # fmt: skip
_NO_CAPABILITIES = ("setpriv", "--ambient-caps=-all", "--inh-caps=-all", "--no-new-privs")
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_LINE = 1 << 16
_GROUPS = Path("/sys/fs/cgroup")


class Group(StrEnum):
    """The control group of a program: the one of the whole login, or its own."""

    SHARED = "shared"
    OWN = "own"


@dataclass(frozen=True, slots=True)
class Finished:
    """The exit status of a program (negative for a signal) and its output."""

    status: int
    output: str


class Running:
    """A program that was started inside. Closing the test's end of `life` kills its session."""

    def __init__(self, life: socket.socket, output: Path) -> None:
        self._life, self._output = life, output

    def wait(self, seconds: float = HANG_GUARD_S) -> Finished:
        """Return how the program ended. Kill it and raise `TimeoutError` after `seconds`."""
        self._life.settimeout(seconds)
        try:
            answer = self._life.recv(_LINE)
        except TimeoutError as late:
            raise TimeoutError(f"still running, after: {self.output[-2000:]}") from late
        finally:
            self._life.close()
        return Finished(json.loads(answer), self.output)

    def end(self) -> None:
        """Kill it."""
        self._life.close()

    @property
    def output(self) -> str:
        """What it has written so far."""
        return self._output.read_text(errors="replace")


class IsolatedUser:
    """The test's side, a context manager. At its end every process inside is killed.

    `listening` is a socket inside, bound to a free port on loopback, for a server of the test.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [*_NAMESPACES, sys.executable, __file__, "prepare", str(theirs.fileno())],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self._ours.settimeout(HANG_GUARD_S)
        answer, handles, _, _ = socket.recv_fds(self._ours, _LINE, 1)
        assert handles, "the isolated user could not be made"
        self.has_groups: bool = json.loads(answer)
        self.listening = socket.socket(fileno=handles[0])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ours.close()
        self.listening.close()
        self._process.wait(HANG_GUARD_S)

    def start(
        self,
        words: Sequence[str | Path],
        variables: Mapping[str, str],
        folder: Path,
        where: Group = Group.SHARED,
    ) -> Running:
        """Start a program with exactly `variables` in `folder`, in a session without a terminal.

        Without control groups, `where` makes no difference.
        """
        handle, name = tempfile.mkstemp(dir=self._folder, prefix="output-")
        life, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        order = {
            "words": [str(word) for word in words],
            "variables": dict(variables),
            "folder": str(folder),
            "group": where,
        }
        with other:
            socket.send_fds(self._ours, [json.dumps(order).encode()], [handle, other.fileno()])
        os.close(handle)
        return Running(life, Path(name))

    def run(
        self, words: Sequence[str | Path], variables: Mapping[str, str], folder: Path
    ) -> Finished:
        """Start a program and wait for its end."""
        return self.start(words, variables, folder).wait()


def _prepare(handle: str) -> None:
    """Run first inside, while capabilities are there, and stay as the first process."""
    _start_loopback()
    _name_the_user()
    group = _make_group()
    session = subprocess.Popen(
        [*_NO_CAPABILITIES, sys.executable, __file__, "serve", handle, group],
        pass_fds=[int(handle)],
    )
    os.close(int(handle))
    while os.wait()[0] != session.pid:
        pass  # that was an orphan
    if group:
        _end_everybody()
        Path(group).rmdir()


def _start_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, asked))[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))


def _name_the_user() -> None:
    """Give the user id a name, without which some programs do not start."""
    with tempfile.NamedTemporaryFile("w", suffix="-passwd") as accounts:
        accounts.write(f"{USER}:x:{UID}:{UID}:{USER}:/nonexistent:/bin/bash\n")
        accounts.write("nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n")
        accounts.flush()
        os.chmod(accounts.name, 0o644)
        subprocess.run(["mount", "--bind", accounts.name, "/etc/passwd"], check=True)


def _make_group() -> str:
    """Make a control group, and return its folder, or nothing if that is not permitted."""
    mounted = subprocess.run(
        ["mount", "-t", "cgroup2", "none", str(_GROUPS)], check=False, capture_output=True
    )
    try:
        return tempfile.mkdtemp(prefix="app-agent-", suffix=".scope", dir=_GROUPS)
    except OSError:
        return ""
    finally:
        mounted.check_returncode()


def _end_everybody() -> None:
    try:
        os.kill(-1, signal.SIGKILL)
        while True:
            os.wait()
    except (ProcessLookupError, ChildProcessError):
        return


def _serve(handle: str, group: str) -> None:
    """Start what the test orders until the test ends."""
    listening = socket.create_server(("127.0.0.1", 0))
    with socket.socket(fileno=int(handle)) as orders:
        socket.send_fds(orders, [json.dumps(bool(group)).encode()], [listening.fileno()])
        listening.close()
        while True:
            order, handles, _, _ = socket.recv_fds(orders, _LINE, 2)
            if not order:
                return
            output, life = handles
            process = _begin(json.loads(order), output, group)
            os.close(output)
            connection = socket.socket(fileno=life)
            threading.Thread(target=_watch, args=(process, connection), daemon=True).start()
            threading.Thread(target=_report, args=(process, connection), daemon=True).start()


def _begin(order: dict[str, Any], output: int, group: str) -> subprocess.Popen[bytes] | None:
    words = order["words"]
    if group and order["group"] == Group.OWN:
        enter = f'echo 0 >{group}/cgroup.procs && exec "$@"'
        words = ["sh", "-c", enter, "sh", *words]
    try:
        return subprocess.Popen(
            words, env=order["variables"], cwd=order["folder"],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        os.write(output, str(error).encode())
        return None


def _watch(process: subprocess.Popen[bytes] | None, life: socket.socket) -> None:
    """Kill the process when the test hangs up."""
    if not life.recv(1) and process is not None and process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def _report(process: subprocess.Popen[bytes] | None, life: socket.socket) -> None:
    status = 127 if process is None else process.wait()
    try:
        life.send(json.dumps(status).encode())
    except OSError:
        return  # nobody waits any more


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        _prepare(sys.argv[2])
    else:
        _serve(sys.argv[2], sys.argv[3])
