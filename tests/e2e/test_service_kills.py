"""A service daemon that is killed, hangs, or stops is replaced, and no client is refused.

systemd holds the sockets, so a client that connects meanwhile waits. MCP clients behind a bridge
do not even notice.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support import pipx_install
from support.bridges import Client, request
from support.sizes import Sizes
from support.user_manager import HOME, RUNTIME, UserManager, interpreter_folders, user_manager

pytestmark = pytest.mark.needs("systemd-user")

HANG_GUARD_S = 60
OVERRIDE = HOME / ".config/systemd/user/rootsd.service.d/90-test.conf"

# The clients would otherwise take the processors from the daemon that starts.
PAUSE_S = 0.03
# Connects directly to the socket until its input ends; a bridge would retry. The daemon may be
# killed while it answers: the connection then breaks, which is no refusal.
KNOCKER = """
import json, socket, sys, threading
seen = {"answered": 0, "broken off": 0, "refused": 0}
enough = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), enough.set()), daemon=True).start()

def knock():
    with socket.socket(socket.AF_UNIX) as knocking:
        knocking.settimeout(60)
        try:
            knocking.connect(sys.argv[1])
        except (ConnectionRefusedError, FileNotFoundError):
            return "refused"
        try:
            knocking.sendall(b'{"jsonrpc":"2.0","id":1,"method":"roots/list"}\\n')
            return "answered" if knocking.recv(65536) else "broken off"
        except ConnectionError:
            return "broken off"

print("begun", flush=True)
seen[knock()] += 1
while not enough.wait(float(sys.argv[2])):
    seen[knock()] += 1
print(json.dumps(seen))
"""

# Blocks the event loop, as a bug would, on an otherwise unused signal.
HANGING = """
import signal, threading
signal.signal(signal.SIGUSR1, lambda *_: threading.Event().wait())
"""
WATCHED = f"""
[Unit]
StartLimitIntervalSec=0
[Service]
WatchdogSec=1s
Environment=PYTHONPATH={HOME}
"""


@dataclass
class Asker:
    """An MCP client behind a bridge that asks for the roots continuously."""

    client: Client
    answers: list[list[str]] = field(default_factory=list)
    wrong: list[object] = field(default_factory=list)
    news: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    def keep_asking(self) -> None:
        """Ask until it is over, and check each answer."""
        while not self.over.wait(PAUSE_S):
            number = len(self.answers) + 1
            self.client.say(request(number, "roots/list"))
            while (answer := self.client.hear()).get("id") != number:
                if "id" in answer:
                    self.wrong.append(answer)
            roots = answer.get("result", {}).get("roots")
            self.answers.append([root["name"] for root in roots] if roots is not None else [])
            if self.answers[-1] != ["api"]:
                self.wrong.append(answer)
            self.news.set()

    def wait_past(self, answers: int) -> None:
        """Return when there are more than `answers` answers."""
        while len(self.answers) <= answers:
            self.news.clear()
            if len(self.answers) <= answers:
                assert self.news.wait(HANG_GUARD_S), "a bridge does not come back"


@contextmanager
def asking(user: UserManager, bridges: int = 1) -> Iterator[list[Asker]]:
    """Run bridges whose clients ask until the block ends."""
    askers: list[Asker] = []
    threads: list[threading.Thread] = []
    pipe = subprocess.PIPE
    with ExitStack() as stack:
        for _ in range(bridges):
            command = user.command("rootsd", "bridge")
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
            stack.enter_context(process)
            stack.callback(process.kill)
            askers.append(Asker(Client(process)))
        for asker in askers:
            asker.client.shake_hands()
            threads.append(threading.Thread(target=asker.keep_asking))
            threads[-1].start()
        try:
            yield askers
        finally:
            for asker in askers:
                asker.over.set()
            for thread in threads:
                thread.join(HANG_GUARD_S)


@contextmanager
def knocking(user: UserManager) -> Iterator[dict[str, int]]:
    """Connect again and again during the block, and collect the results."""
    seen: dict[str, int] = {}
    socket = f"{RUNTIME}/rootsd/pub/mcp.sock"
    command = user.command("python3", "-c", KNOCKER, socket, str(PAUSE_S))
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "begun\n"
    try:
        yield seen
    finally:
        out, _ = process.communicate(timeout=HANG_GUARD_S)
        seen.update(json.loads(out))


@pytest.fixture(scope="module")
def user(installation: Path) -> Iterator[UserManager]:
    """Yield a user with a repository that the service publishes."""
    with user_manager(interpreter_folders()) as user:
        pipx_install.put_back(user, installation)
        user.succeed("git", "init", "-q", f"{HOME}/src/api")
        user.rootsd("service", "install")
        user.rootsd("up", f"{HOME}/src")
        user.rootsd("approve", f"{HOME}/src/api")
        yield user


def until_all_are_answered(askers: list[Asker]) -> None:
    """Return when a daemon that runs now has answered every client.

    One answer of the previous daemon may still be in flight.
    """
    before = [len(asker.answers) for asker in askers]
    for asker, answered in zip(askers, before, strict=True):
        asker.wait_past(answered + 1)


def kill(user: UserManager, signal: str = "KILL") -> str:
    """Send a signal to the daemon, and return its pid."""
    pid = user.shown("rootsd.service", "MainPID")
    assert pid != "0"  # that would be every process here
    user.run("kill", f"-{signal}", pid)
    return pid


def test_kills_and_hangs_cause_no_refused_connection_and_no_wrong_answer(
    user: UserManager, sizes: Sizes
) -> None:
    kills, bridges = sizes.pick(test=(1, 2), check=(25, 8), soak=(75, 8))
    hangs = sizes.pick(test=("USR1",), check=("USR1", "STOP"), soak=("USR1", "STOP"))
    user.run("tee", str(OVERRIDE), said="[Unit]\nStartLimitIntervalSec=0\n")
    user.systemctl("daemon-reload")
    with knocking(user) as seen, asking(user, bridges) as askers:
        for _ in range(kills - 1):
            kill(user)
            until_all_are_answered(askers)
        user.run("tee", str(HOME / "sitecustomize.py"), said=HANGING)
        user.run("tee", str(OVERRIDE), said=WATCHED)
        user.systemctl("daemon-reload")
        for fault in ("KILL", *hangs):  # the daemon that follows the kill can hang
            pid = kill(user, fault)
            until_all_are_answered(askers)
            assert user.shown("rootsd.service", "MainPID") not in (pid, "0")
    assert [asker.wrong for asker in askers] == [[]] * bridges
    assert seen["refused"] == 0
    assert seen["answered"] >= kills + len(hangs)
    # On a busy machine a daemon may have missed a check of the watchdog, too.
    assert int(user.shown("rootsd.service", "NRestarts")) + 1 >= kills + len(hangs)


def test_control_without_the_sockets_clients_are_refused(user: UserManager) -> None:
    """The counter of refusals above does see them."""
    sockets = ("rootsd.socket", "rootsd-control.socket")
    user.systemctl("stop", *sockets, "rootsd.service")
    with knocking(user) as seen:
        pass
    assert seen["refused"] > 0
    user.systemctl("start", *sockets)
