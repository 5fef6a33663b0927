"""The calls in the daemon for one `approve` by a person on a terminal, by module.

Only the functions of rootsd count, in all threads of the daemon. Each time that a coroutine goes
on counts, too. The number does not depend on the speed of the machine.

Run: make bench ARGS='-k bench_calls'
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from bench.measuring import table, wait_until_calm
from support import preloaded
from support.guarded_daemon import LEAN_ORDER, GuardedDaemon
from support.person import Resident

MOST = 2_000
SHOWN = 15
START = """
import collections, json, os, signal, sys, threading
calls, is_counting = collections.Counter(), False

def count(frame, event, _):
    _, package, module = frame.f_code.co_filename.rpartition("/rootsd/")
    if is_counting and event == "call" and package:
        calls[module] += 1

def turn(*_):
    global is_counting
    is_counting = not is_counting
    if not is_counting:
        os.write({tells}, json.dumps(calls).encode() + b"\\n")

signal.signal(signal.SIGUSR2, turn)
threading.setprofile(count)
sys.setprofile(count)
from rootsd.cli.answers import run_daemon
sys.exit(run_daemon.main(["--ready-fd", "{says_ready}"]))
"""


@pytest.mark.needs("linux")
def test_calls_in_the_daemon_for_one_approval(tmp_path: Path) -> None:
    person = Resident(tmp_path, guard="agents")
    for name in ("one", "two"):
        person.clone(name)
    config = Path(person.environment()["ROOTSD_DIR"], "config", "config.toml")
    config.write_text(f'{config.read_text()}[[parent]]\npath = "{person.parent}"\n')
    (ready, says_ready), (told, tells) = os.pipe(), os.pipe()
    text = START.format(says_ready=says_ready, tells=tells)
    daemon = preloaded.Program(text, person.environment(), (says_ready, tells))
    os.close(says_ready)
    os.close(tells)
    try:
        with open(ready) as lines:
            assert lines.readline() == "ready\n"
        person.wait_until_listed("one", "pending")
        scene = GuardedDaemon(person, tmp_path, LEAN_ORDER, None)
        with scene.launcher:
            scene.allow_own_programs()
            # The first approval also loads what later ones use.
            assert not scene.launcher.run_on_terminal(*LEAN_ORDER, "approve", "two").status
            wait_until_calm(daemon.pid)
            daemon.send_signal(signal.SIGUSR2)
            assert not scene.launcher.run_on_terminal(*scene.approve).status
            wait_until_calm(daemon.pid)
            daemon.send_signal(signal.SIGUSR2)
        with open(told) as lines:
            calls: dict[str, int] = json.loads(lines.readline())
    finally:
        daemon.terminate()
        daemon.communicate()
    total = sum(calls.values())
    most = sorted(calls.items(), key=lambda each: -each[1])[:SHOWN]
    table("Calls in the daemon for one approve", ("", "calls"), [*most, ("all", total)])
    assert total <= MOST
