"""`rootsd exposure` of 500 repositories and eight agents, compared with a `find` of the secrets.

Each repository has 40 files in eight folders. Every seventh has an .env, and every fifth has
settings of Claude Code.

Run: make bench ARGS='-k bench_exposure'
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.bench_sweep import drop_caches
from bench.measuring import table
from support.exposed_home import ExposedHome

REPOSITORIES = 500
MOST_S = 2.0
MOST_RATIO = 5.0
ROUNDS = 3
SERVER = {"command": "npx", "args": ["-y", "a@1.2.3"]}
SETTINGS = {
    ".claude.json": json.dumps({"mcpServers": {"x": SERVER}}),
    ".claude/settings.json": json.dumps({"permissions": {"deny": ["Read(~/.ssh/**)"]}}),
    ".codex/config.toml": 'sandbox_mode = "workspace-write"\n',
    ".codex/rootsd.config.toml": '[permissions.rootsd.filesystem]\n"/srv" = "deny"\n',
    ".gemini/settings.json": "{}",
    ".qwen/settings.json": "{}",
    ".copilot/settings.json": "{}",
    ".config/opencode/opencode.json": '{"permission": {"external_directory": {"/a/**": "deny"}}}',
    ".cursor/mcp.json": json.dumps({"mcpServers": {"x": SERVER}}),
    ".pi/agent/settings.json": "{}",
}


def _populate(top: Path) -> ExposedHome:
    home = ExposedHome(top)
    for number in range(REPOSITORIES):
        repository = home.repository(f"owner{number % 9}/p{number}")
        for folder in range(8):
            (repository / f"d{folder}").mkdir()
            for file in range(5):
                (repository / f"d{folder}" / f"{file}.py").touch()
        if not number % 7:
            (repository / ".env").touch()
        if not number % 5:
            (repository / ".claude").mkdir()
            (repository / ".claude" / "settings.json").write_text("{}")
    for name, text in SETTINGS.items():
        home.write(name, text)
    return home


def _cost(words: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Return the seconds on the clock, and those of a processor."""
    before, started = os.times(), time.monotonic()
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True, env=environment)
    wall, after = time.monotonic() - started, os.times()
    used = after.children_user + after.children_system
    return wall, used - before.children_user - before.children_system


@pytest.mark.needs("linux", "root")
def test_the_exposure_of_five_hundred_repositories_takes_no_two_seconds(tmp_path: Path) -> None:
    """On a busy machine, the clock tells nothing, so the time of a processor counts."""
    home = _populate(tmp_path)
    environment = {
        "HOME": str(home.path), "PATH": os.environ["PATH"], "ROOTSD_DIR": str(tmp_path / "rootsd"),
    }  # fmt: skip
    exposure = [sys.executable, "-m", "rootsd", "exposure", "--json"]
    find = ["find", str(home.path), "-name", ".env"]
    done = subprocess.run(exposure, capture_output=True, check=True, env=environment)
    found = json.loads(done.stdout)
    agents = [item["name"] for item in found["items"] if item["agent"]]
    assert (found["repositories"], len(found["secrets"]), len(agents)) == (REPOSITORIES, 72, 8)
    costs: dict[str, list[tuple[float, float]]] = {"exposure": [], "find": []}
    for _ in range(ROUNDS):
        for name, words in (("exposure", exposure), ("find", find)):
            drop_caches()
            costs[name].append(_cost(words, environment))
    best = {name: tuple(map(min, zip(*each, strict=True))) for name, each in costs.items()}
    rows = [(name, f"{wall:.2f} s", f"{used:.2f} s") for name, (wall, used) in best.items()]
    title = f"{REPOSITORIES} repositories, {len(agents)} agents, cold caches"
    table(title, ("command", "time", "processor"), rows)
    assert best["exposure"][1] < MOST_S
    assert best["exposure"][0] / best["find"][0] < MOST_RATIO
