"""With a daemon, git inside makes and removes worktrees beside their checkout, if it may."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from rootsd.core.wall import ProtectionPolicy, RevokePolicy
from rootsd.wall.kernel.warden import Warden
from rootsd.wall.session.built_wall import BuiltWall
from rootsd.wall.session.engines import NamespaceWall
from rootsd.wall.session.options import ConfineOptions
from rootsd.wall.session.push_relay import PushRelay
from rootsd.wall.session.session_view import ComposedView
from rootsd.wall.session.view_feed import WallSubscription
from rootsd.wall.session.worktree_front import GitFront
from support.person import Resident
from support.polling import until

pytestmark = [pytest.mark.needs("wall")]

_HANG_GUARD_S = 60


def test_git_inside_changes_the_published_worktrees_only_with_the_option(tmp_path: Path) -> None:
    person = Resident(tmp_path)
    web = person.clone("web")
    person.rootsd("up", str(person.parent))
    try:
        person.rootsd("approve", "web")
        script = """
            git worktree add -q -b x ../web-x && cd ../web-x && echo 1 > new && git add new
            git commit -q -m inside && git switch -q -c y && git log -1 --format=%s && type git
        """

        def inside(script: str, *options: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "-m", "rootsd", "confine", *options, "--", "sh", "-c", script],
                cwd=web, env=person.environment(), stdin=subprocess.DEVNULL, capture_output=True,
                text=True, check=False, timeout=_HANG_GUARD_S,
            )  # fmt: skip

        done = inside(script, "--worktrees")
        assert done.returncode == 0, done.stderr
        first, second = done.stdout.splitlines()
        assert first == "inside", done.stderr
        assert second.endswith("/rootsd-git/git")
        found = {item["name"]: item["verdict"] for item in person.items("ls")}
        assert found == {"web": "approved", "web-x": "approved"}
        needed = "rootsd: worktrees beside a checkout need rootsd confine --worktrees"
        assert needed in inside("git worktree add ../web-y").stderr
        refused = inside("git worktree remove web-x")
        assert refused.returncode == 128
        tree = web.parent / "web-x"
        assert f"{needed}; outside: git -C {web} worktree remove {tree}" in refused.stderr
        assert (tree / "new").exists()
        done = inside("git worktree remove web-x", "--worktrees")
        assert done.returncode == 0, done.stderr
        assert not tree.exists()
        until(lambda: [item["name"] for item in person.items("ls")] == ["web"])
    finally:
        person.run("down")


@pytest.mark.parametrize(
    ("front", "outside", "rest"),
    [
        (GitFront.ASKS, {"PATH": "/opt/tool/bin:/bin"}, ":/opt/tool/bin:/bin"),
        (GitFront.REFUSES, {"PATH": ""}, f":{os.defpath}"),
        (GitFront.REFUSES, {}, f":{os.defpath}"),
        (GitFront.NONE, {"PATH": "/opt/tool/bin"}, None),
        (GitFront.NONE, {}, None),
    ],
)
def test_a_program_has_the_path_of_its_own_environment(
    front: GitFront, outside: dict[str, str], rest: str | None
) -> None:
    """`rootsd run --env` may set another one than rootsd has."""
    view = ComposedView(
        b"/home/a", (), frozenset(), {}, True, ProtectionPolicy.NONE, RevokePolicy.KILL, (), (),
        git_front=front,
    )  # fmt: skip
    wall = BuiltWall(
        ConfineOptions(name="s"), NamespaceWall(), view, cast("WallSubscription", None),
        cast("Warden", SimpleNamespace(variables={})), cast("PushRelay", None),
    )  # fmt: skip
    own = f"/run/user/{os.geteuid()}/rootsd-git"
    assert wall.environment(outside).get("PATH") == (own + rest if rest else outside.get("PATH"))
