"""How soon the Read tool of a running Claude Code follows a decision, and rootsd's share of that
time.

The time runs from the end of `rootsd approve` or `rootsd deny`. "Written" is when the client's
settings file has the entry; "followed" is the tool's first answer that matches. The difference is
the client's share, because it polls its settings.

Run: make bench ARGS='-k bench_sync'
"""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from support.agent_access import Access, Reader, decider
from support.agent_world import AgentWorld
from support.sizes import Sizes

MOST_S = 10


@pytest.mark.needs("user-namespaces", "npm")
def test_the_tool_of_an_agent_follows_within_seconds(tmp_path: Path, sizes: Sizes) -> None:
    rounds = sizes.pick(test=5, check=20, soak=50)
    with AgentWorld(tmp_path, ["api", "wanted"]) as world:
        world.rootsd("approve", "api")
        settings = world.home / ".claude" / "settings.json"
        settings.parent.mkdir()
        settings.write_text("{}\n")
        world.rootsd("sync", "add", "claude-code", "--only", "tag:work")
        file = world.parent / "wanted" / "README.md"
        reader = Reader(file, rounds, decider(world, "wanted", settings))
        reader.play(world, world.parent / "api")
    print(f"{'':<10} {'written':>10} {'followed':>10} {'slowest':>10}")
    for access in Access:
        changes = [change for change in reader.changes if change.access is access]
        written = statistics.median(change.written for change in changes)
        followed = statistics.median(change.followed for change in changes)
        slowest = max(change.followed for change in changes)
        print(f"{access.name.lower():<10} {written:>8.2f} s {followed:>8.2f} s {slowest:>8.2f} s")
        assert len(changes) == rounds
        assert slowest < MOST_S
