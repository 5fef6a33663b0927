"""How soon the Read tool of a running Claude Code follows a decision, and rootsd's share of that
time; and what synced folders cost Claude Code at its start.

The first time runs from the end of `rootsd approve` or `rootsd deny`. "Written" is when the
client's settings file has the entry; "followed" is the tool's first answer that matches. The
difference is the client's share, because it polls its settings.

A start takes until the first request to the model, with no synced folder and with as many as
rootsd writes. The size of that request is the size of the prompt.

Run: make bench ARGS='-k bench_sync'
"""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path

import pytest

from rootsd.sync.access import MAX_GRANTS
from support.agent_access import Access, CarefulClaude, Reader, decider
from support.agent_world import AgentWorld
from support.polling import until
from support.scripted_model import Call
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


@pytest.mark.needs("user-namespaces", "npm")
def test_synced_folders_cost_little_at_the_start(tmp_path: Path, sizes: Sizes) -> None:
    rounds = sizes.pick(test=3, check=10, soak=20)
    names = [f"project-{number:02}" for number in range(MAX_GRANTS)]
    with AgentWorld(tmp_path, names) as world:
        settings = world.home / ".claude" / "settings.json"
        settings.parent.mkdir()
        settings.write_text("{}\n")
        starts: dict[int, list[float]] = {0: [], MAX_GRANTS: []}
        prompts: dict[int, int] = {}
        world.rootsd("approve", *names, "--tag", "work", "--yes")
        for number in range(2 * rounds):
            count = [0, MAX_GRANTS][(number + number // 2) % 2]
            if count:
                world.rootsd("sync", "add", "claude-code", "--only", "tag:work")
                until(lambda: len(synced_folders(settings)) == MAX_GRANTS)
            time_s, prompts[count] = first_request(world)
            starts[count].append(time_s)
            if count:
                world.rootsd("sync", "rm", "claude-code")
            assert not synced_folders(settings)
    print(f"{'folders':<10} {'start':>10} {'slowest':>10} {'prompt':>12}")
    for count, times in starts.items():
        median = statistics.median(times)
        print(f"{count:<10} {median:>8.2f} s {max(times):>8.2f} s {prompts[count]:>6,} bytes")
    assert prompts[0] < prompts[MAX_GRANTS]


def synced_folders(settings: Path) -> list[str]:
    """Return the folders that Claude Code may access besides its working directory."""
    permissions = json.loads(settings.read_text()).get("permissions", {})
    folders: list[str] = permissions.get("additionalDirectories", [])
    return folders


def first_request(world: AgentWorld) -> tuple[float, int]:
    """Start Claude Code. Return the seconds until its first request, and the size of that."""
    came: list[float] = []
    began = time.monotonic()
    model = world.play(
        CarefulClaude(),
        [Call("Read", {"file_path": "/x"}, before=lambda: came.append(time.monotonic()))],
        {},
        world.parent / "project-00",
    )
    return came[0] - began, len(json.dumps(model.requests[0]))
