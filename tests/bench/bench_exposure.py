"""`rootsd exposure` of 500 repositories and eight agents, compared with a `find` of the secrets.

Each repository has 40 files in eight folders. Every seventh has an .env, and every fifth has
settings of Claude Code. As root, the caches are cold.

Run: make bench ARGS='-k bench_exposure'
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from bench.measuring import table
from support.exposed_home import ExposedHome

REPOSITORIES = 500
MOST_S = 2.0
MOST_RATIO = 8.0
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


def _drop_caches() -> bool:
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError:
        return False
    return True


def _seconds(words: list[str], environment: dict[str, str]) -> float:
    started = time.monotonic()
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True, env=environment)
    return time.monotonic() - started


def test_the_exposure_of_five_hundred_repositories_is_there_in_two_seconds(tmp_path: Path) -> None:
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
    is_cold = _drop_caches()
    cold = _seconds(exposure, environment)
    _drop_caches()
    names = _seconds(find, environment)
    warm = _seconds(exposure, environment)
    rows = [
        ("exposure, cold caches" if is_cold else "exposure", f"{cold:.2f} s"),
        ("find, the same", f"{names:.2f} s"),
        ("exposure, warm caches", f"{warm:.2f} s"),
    ]
    table(f"{REPOSITORIES} repositories, 8 agents", ("command", "time"), rows)
    assert cold < MOST_S
    assert cold / names < MOST_RATIO
