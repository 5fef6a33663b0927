"""The overhead of a verb and of a hook: its start compared with an empty Python.

And `ls` of 20,000 projects compared with `ls` of none, in a pipe, from the command to the last
byte.

Run: make bench ARGS='-k bench_verbs'
"""

from __future__ import annotations

import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from bench.measuring import interleaved
from rootsd import hook
from rootsd.control.routes import RequestContext
from rootsd.core.inputs import ProjectObserved
from rootsd.core.model import ProjectKind
from rootsd.wire.projects import ProjectsQuery
from support.control_harness import ControlHarness
from support.fake_daemon import FakeDaemon, a_listing, an_item
from support.golden_files import golden_commands
from support.sample_answers import ANSWERS
from support.sample_decisions import PERSON, identity

ROUNDS = 9
MOST = 13.0
MOST_OF_DOCTOR = 25.0  # it asks the desktop's bus, and loads asyncio for that
MOST_OF_HOOK = 5.0
PATCH = "*** Begin Patch\n*** Delete File: /src/x\n*** End Patch\n"
TOOL_CALLS: dict[str, tuple[str, dict[str, str]]] = {
    "codex": ("apply_patch", {"command": PATCH}),
    "gemini": ("read_file", {"file_path": "/src/x"}),
    "qwen": ("read_file", {"file_path": "/src/x"}),
}
PROJECTS = 20_000
MOST_OF_LISTING = 80.0
BASE = "python -c pass"
ROOTSD = str(Path(sys.executable).with_name("rootsd"))
COMMANDS = {
    **{name: words for name, words in golden_commands().items() if name == words[0]},
    # The golden files of these two keep an error.
    "completion": ("completion", "bash"),
    "shell-init": ("shell-init", "bash"),
    "--help": ("--help",),
}
del COMMANDS["review"]  # it needs a terminal


def _run(*words: str) -> Callable[[], object]:
    return lambda: subprocess.run(words, stdout=subprocess.DEVNULL, check=True)


@pytest.fixture
def answering(rootsd_dir: Path) -> Any:  # noqa: ANN401 - a fixture that yields
    """A daemon that answers everything."""
    with FakeDaemon(rootsd_dir) as daemon, socket.socket(socket.AF_UNIX) as mcp:
        for folder in ("run/pub", "state", "config"):
            (rootsd_dir / folder).mkdir(0o700, parents=True)
        (rootsd_dir / "config" / "config.toml").write_text('[[parent]]\npath = "/src"\n')
        (rootsd_dir / "run").chmod(0o700)
        mcp.bind(str(rootsd_dir / "run" / "pub" / "mcp.sock"))
        mcp.listen()  # doctor knocks there, and nothing else does
        # Names that need escapes, as in the sample, load further modules of Python.
        root = an_item("api", verdict="approved", published=True, tags=["go"])
        usual = a_listing(root)
        daemon.answers |= {**ANSWERS, "projects": usual}
        yield daemon


def test_a_verb_takes_at_most_thirteen_times_as_long_as_an_empty_python(
    answering: FakeDaemon,
) -> None:
    actions = {BASE: _run(sys.executable, "-c", "pass")}
    actions |= {f"rootsd {name}": _run(ROOTSD, *words) for name, words in COMMANDS.items()}
    costs = interleaved(actions, ROUNDS)
    ratios = {name: cost.wall_ms / costs[BASE].wall_ms for name, cost in costs.items()}
    for name, ratio in ratios.items():
        of_cpu = costs[name].cpu_ms / costs[BASE].cpu_ms
        print(f"{name:<24} {costs[name].wall_ms:6.1f} ms  {ratio:5.2f} x  CPU {of_cpu:5.2f} x")
    assert ratios.pop("rootsd doctor") <= MOST_OF_DOCTOR
    assert max(ratios.values()) <= MOST


def _ask(client: str) -> Callable[[], object]:
    """Return a run of the hook of `client`, which must deny."""
    tool, given = TOOL_CALLS.get(client, ("Read", {"file_path": "/src/x", "path": "/src/x"}))
    call = {
        "hook_event_name": hook.dialects()[client].events[-1], "cwd": "/", "tool_name": tool,
        "tool_input": given,
    }  # fmt: skip
    words = [sys.executable, "-m", "rootsd", "hook", client]

    def run() -> None:
        done = subprocess.run(words, input=json.dumps(call).encode(), stdout=-1, check=True)
        assert b"deny" in done.stdout

    return run


def test_a_hook_takes_at_most_five_times_as_long_as_an_empty_python(
    answering: FakeDaemon,
) -> None:
    """That is 60 ms where an empty Python takes 12 ms. An agent waits for it at each call."""
    answering.answers["check"] = {
        "published": False, "verdict": "denied", "root": None, "access": None,
    }  # fmt: skip
    actions = {BASE: _run(sys.executable, "-c", "pass")} | {
        name: _ask(name) for name in hook.dialects()
    }
    costs = interleaved(actions, ROUNDS)
    ratios = {name: cost.wall_ms / costs[BASE].wall_ms for name, cost in costs.items()}
    for name, ratio in ratios.items():
        print(f"{name:<24} {costs[name].wall_ms:6.1f} ms  {ratio:5.2f} x")
    assert max(ratios.values()) <= MOST_OF_HOOK


async def _answer_of_many() -> tuple[dict[str, Any], float]:
    """What a daemon with so many projects answers, and how long it takes for that."""
    control = ControlHarness()
    seen = [
        ProjectObserved(b"/home/ann/src/g%d/p%d" % (n % 100, n), ProjectKind.GIT, identity(n))
        for n in range(PROJECTS)
    ]
    await control.world.ledger.observe(seen)
    taken = []
    answer: dict[str, Any] = {}
    for _ in range(5):
        started = time.perf_counter()
        answer = await control.dispatcher.answer(ProjectsQuery("/"), RequestContext(PERSON))
        taken.append(time.perf_counter() - started)
    return answer, statistics.median(taken)


def test_a_listing_of_twenty_thousand_takes_at_most_eighty_empty_pythons(
    answering: FakeDaemon,
) -> None:
    whole, daemons_part_s = anyio.run(_answer_of_many)
    listings = {"none": a_listing(), "many": whole}
    costs: dict[str, float] = {}
    for name, listing in listings.items():
        answering.answers["projects"] = listing
        taken = []
        for _ in range(5):
            started = time.perf_counter()
            _run(ROOTSD, "ls")()
            taken.append(time.perf_counter() - started)
        costs[name] = statistics.median(taken)
    # The fake daemon's part, to write the JSON, is in it: a real one does that, too.
    beyond = costs["many"] - costs["none"] + daemons_part_s
    empty_s = interleaved({BASE: _run(sys.executable, "-c", "pass")}, ROUNDS)[BASE].wall_ms / 1e3
    print(
        f"ls of {PROJECTS}: {beyond:.2f} s beyond its start, {daemons_part_s:.2f} s the daemon's;"
        f" {beyond / empty_s:.0f} times an empty Python"
    )
    assert beyond <= MOST_OF_LISTING * empty_s
