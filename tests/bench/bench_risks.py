"""`rootsd pending` of 200 repositories with their risks, compared with `rootsd ls` without them.

Each repository has 160 files in eight folders. Every fifth has an .mcp.json, and every seventh an
.env. The daemon and its helper are real.

Run: make bench ARGS='-k bench_risks'
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.measuring import interleaved, table
from bench.running import daemon
from support.repositories import fake_repository

REPOSITORIES = 200
ROUNDS = 9
MOST = 6.0


def _populate(parent: Path) -> None:
    for number in range(REPOSITORIES):
        repository = fake_repository(parent / f"owner{number % 9}" / f"p{number}")
        (repository / ".git" / "config").write_text(
            f'[remote "origin"]\n\turl = https://example.org/owner{number % 9}/p{number}.git\n'
        )
        for folder in range(8):
            (repository / f"d{folder}").mkdir()
            for file in range(20):
                (repository / f"d{folder}" / f"{file}.py").touch()
        if not number % 5:
            (repository / ".mcp.json").touch()
        if not number % 7:
            (repository / ".env").touch()


def _run(*words: str) -> Callable[[], object]:
    command = [sys.executable, "-m", "rootsd", *words]
    return lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


@pytest.mark.usefixtures("rootsd_dir")
def test_reading_the_risks_of_two_hundred_projects_takes_less_than_a_few_listings(
    tmp_path: Path,
) -> None:
    _populate(tmp_path / "src")
    with daemon(tmp_path / "src") as running:
        verbs = ("ls", "pending", "pending --risk secrets")
        costs = interleaved({verb: _run(*verb.split()) for verb in verbs}, ROUNDS)
        answer = running.ask("projects", cwd="/", select="waiting", risks="thorough")
    ratios = {verb: cost.wall_ms / costs["ls"].wall_ms for verb, cost in costs.items()}
    rows = [(verb, f"{costs[verb].wall_ms:.0f} ms", f"{ratios[verb]:.1f} x") for verb in verbs]
    table(f"{REPOSITORIES} repositories", ("command", "time", "of ls"), rows)
    risks = [item["risk"] for item in answer["items"]]
    assert (len(risks), sum("secrets: .env" in risk for risk in risks)) == (REPOSITORIES, 29)
    assert ratios["pending"] < MOST
