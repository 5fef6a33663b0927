"""With a daemon, a worktree that git makes inside beside its checkout is a root at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.person import Resident

pytestmark = [pytest.mark.needs("wall")]

_HANG_GUARD_S = 60


def test_a_new_worktree_is_published_and_work_in_it_goes_on(tmp_path: Path) -> None:
    person = Resident(tmp_path)
    web = person.clone("web")
    person.rootsd("up", str(person.parent))
    try:
        person.rootsd("approve", "web")
        script = """
            git worktree add -q -b x ../web-x && cd ../web-x && echo 1 > new && git add new
            git commit -q -m inside && git switch -q -c y && git log -1 --format=%s && type git
        """
        done = subprocess.run(
            [sys.executable, "-m", "rootsd", "confine", "--worktrees", "--", "sh", "-c", script],
            cwd=web, env=person.environment(), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False, timeout=_HANG_GUARD_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        first, second = done.stdout.splitlines()
        assert first == "inside", done.stderr
        assert second.endswith("/rootsd-git/git")
        found = {item["name"]: item["verdict"] for item in person.items("ls")}
        assert found == {"web": "approved", "web-x": "approved"}
    finally:
        person.run("down")
