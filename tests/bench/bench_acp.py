"""The cost of `rootsd acp`, compared with the same agent without it: a message, a session, and a
prompt of 5 MB that the agent repeats.

Run: make bench ARGS='-k bench_acp'
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from bench import plain_acp_agent
from bench.bench_run_proxy import BULK, interleaved
from bench.measuring import table
from support.bridges import environment
from support.mcp_harness import FakeSource, root
from support.sizes import Sizes
from support.threaded_publisher import published

ALONE, ACP = "the agent alone", "rootsd acp"
AGENT = [sys.executable, plain_acp_agent.__file__]
COMMANDS = {ALONE: AGENT, ACP: [sys.executable, "-m", "rootsd", "acp", "--", *AGENT]}


@contextmanager
def agent(words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start an agent."""
    pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=quiet, env=environment()) as it:
        try:
            yield it
        finally:
            it.kill()


def took(agent: subprocess.Popen[bytes], line: bytes) -> float:
    """Return how many seconds an answer takes, read by its receiver."""
    assert agent.stdin is not None
    assert agent.stdout is not None
    begin = time.perf_counter()
    agent.stdin.write(line)
    agent.stdin.flush()
    while "id" not in (answer := json.loads(agent.stdout.readline())):
        continue
    assert "result" in answer, answer
    return time.perf_counter() - begin


def test_messages_sessions_and_long_prompts(sizes: Sizes, tmp_path: Path) -> None:
    new = {"cwd": str(tmp_path), "mcpServers": []}
    rounds = {
        "a message and its answer, ms": ("x", {}, sizes.pick(test=300, check=1_000, soak=10_000)),
        "session/new, ms": ("session/new", new, sizes.pick(test=20, check=50, soak=500)),
        f"{BULK / 1e6:.0f} MB there and back, ms": (
            "session/prompt", {"text": "a" * BULK}, sizes.pick(test=5, check=15, soak=50),
        ),
    }  # fmt: skip
    rows = []
    with published(FakeSource(root(str(tmp_path)))), ExitStack() as stack:
        agents = {name: stack.enter_context(agent(words)) for name, words in COMMANDS.items()}
        for what, (method, params, number) in rounds.items():
            request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            line = json.dumps(request).encode() + b"\n"
            actions = {name: partial(took, it, line) for name, it in agents.items()}
            measured = interleaved(number, actions)
            alone, ours = (statistics.median(measured[name]) * 1e3 for name in (ALONE, ACP))
            rows.append((what, alone, ours, ours - alone, f"{ours / alone:.2f} x"))
    table("rootsd acp", ("", ALONE, ACP, "added", "ratio"), rows)
