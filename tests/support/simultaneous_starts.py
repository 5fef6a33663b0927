"""Daemons that start at one moment: `main(COUNT, ROUNDS)`, in a process of its own.

It loads a daemon's modules once, so all COUNT forks reach the lock within milliseconds. For each
round it prints a line of JSON with the outcome of each daemon, and whether the winner served. It
then kills the winner, or ends it in every second round. The next round starts from what is left.
"""

from __future__ import annotations

import json
import os
import signal
from typing import NoReturn

from rootsd.core.errors import RootsdError
from rootsd.daemon import main as daemon
from rootsd.helper.client import UnavailableHelper
from rootsd.link.connect import connect
from rootsd.link.rpc import ask
from rootsd.places.daemon_folders import find_places
from rootsd.places.runtime_dir import find_runtime_dir

_HELPER = UnavailableHelper("a test")
HANG_GUARD_S = 120


def _start(go: int, says: int) -> NoReturn:
    """Run a daemon once `go` is closed. `says` gets that it is ready, or why not."""
    os.read(go, 1)
    status = 1
    try:
        status = daemon.run(find_places(), helper=_HELPER, ready_fd=says)
    except RootsdError as error:
        os.write(says, f"{type(error).__name__}: {error.message}\n".encode())
    except BaseException as error:  # noqa: BLE001 - whatever it is, the test is to see it
        os.write(says, f"{error!r}\n".encode())
    finally:
        os._exit(status)


def _served() -> int:
    """Return the pid that answers on the control socket."""
    with connect(find_runtime_dir().control_socket) as channel:
        channel.settimeout(HANG_GUARD_S)
        pid: int = ask(channel, "status", {})["daemon"]["pid"]
        return pid


def play(count: int, last: signal.Signals) -> dict[str, object]:
    """Run one round."""
    waits, go = os.pipe()
    heard, pids = list[int](), list[int]()
    for _ in range(count):
        hears, says = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(go)
            _start(waits, says)
        os.close(says)
        heard.append(hears)
        pids.append(pid)
    os.close(waits)
    os.close(go)
    told = [_line(hears) for hears in heard]
    winners = [pid for pid, line in zip(pids, told, strict=True) if line == "ready"]
    served = _served() if winners else 0
    for pid in winners:
        os.kill(pid, last)
    for pid in pids:
        os.waitpid(pid, 0)
    return {"told": told, "winners": winners, "served": served}


def _line(hears: int) -> str:
    with os.fdopen(hears) as lines:
        return lines.readline().rstrip("\n")


def main(count: int, rounds: int) -> None:
    """Run all rounds."""
    signal.alarm(HANG_GUARD_S * (1 + rounds // 50))
    for number in range(rounds):
        last = signal.SIGTERM if number % 2 else signal.SIGKILL
        print(json.dumps(play(count, last)), flush=True)  # noqa: T201
