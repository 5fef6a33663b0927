"""`rootsd sync` and the real Claude Code: its own tools follow decisions while it runs."""

from __future__ import annotations

import json
import shlex
import threading
from pathlib import Path

import pytest

from support.agent_access import REFUSED, Access, CarefulClaude, Reader, decider
from support.agent_world import ROOTSD, AgentWorld
from support.isolated_user import Group
from support.polling import until
from support.scripted_model import Call
from support.sizes import Sizes

pytestmark = pytest.mark.needs("user-namespaces", "npm")
LIMIT_S = 10
FIRST_READ = 2


def synced(world: AgentWorld, text: str) -> Path:
    """Sync Claude Code's settings in this world, starting from `text`, and return them."""
    settings = world.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(text)
    world.rootsd("sync", "add", "claude-code", "--only", "tag:work")
    return settings


def test_its_read_tool_follows_each_decision_in_one_session(tmp_path: Path, sizes: Sizes) -> None:
    rounds = sizes.pick(test=3, check=3, soak=9)
    text = '{\n  "cleanupPeriodDays": 30\n}\n'
    with AgentWorld(tmp_path, ["api", "wanted"]) as world:
        world.rootsd("approve", "api")
        settings = synced(world, text)
        reader = Reader(
            world.parent / "wanted" / "README.md", rounds, decider(world, "wanted", settings)
        )
        reader.play(world, world.parent / "api")
        world.rootsd("sync", "rm", "claude-code")
        assert settings.read_text() == text
    assert [change.access for change in reader.changes] == [
        Access.GIVEN, Access.REFUSED,
    ] * rounds  # fmt: skip
    assert max(change.followed for change in reader.changes) < LIMIT_S, reader.changes


def test_a_folder_that_the_agent_requests_is_opened_in_the_same_session(tmp_path: Path) -> None:
    """The agent asks, a person approves permanently with a tag, and the agent's own tool reads."""
    reason = "needed for the test"
    with AgentWorld(tmp_path, ["api", "wanted"]) as world:
        world.rootsd("approve", "api")
        synced(world, json.dumps({"permissions": {"allow": ["mcp__rootsd"]}}))

        def approve_when_asked() -> None:
            until(lambda: any(reason in str(item) for item in world.items("pending")))
            world.rootsd("approve", "wanted", "--always", "--tag", "work")

        wanted = world.parent / "wanted"
        read = {"file_path": str(wanted / "README.md")}
        asks = Call(
            "request_root",
            {"path": str(wanted), "reason": reason},
            before=threading.Thread(target=approve_when_asked).start,
        )
        model = world.model([Call("Read", read), asks])

        def read_again() -> None:
            last = max(model.results)
            if last < FIRST_READ or REFUSED.search(model.results[last]):
                model.script.append(Call("Read", read, before=read_again))

        model.script.append(Call("Read", read, before=read_again))
        try:
            servers = {"rootsd": world.bridge()}
            world.start(CarefulClaude(), model, servers, world.parent / "api", Group.OWN).wait()
        finally:
            model.close()
    assert REFUSED.search(model.results[0])
    assert '"approved":true' in model.results[1].replace(" ", "")
    assert "the text of wanted" in "".join(
        text for step, text in model.results.items() if step >= FIRST_READ
    )


def test_its_hook_denies_reads_in_denied_folders(tmp_path: Path) -> None:
    """The first session has no hook, so the hook is the reason for the refusals in the second."""
    with AgentWorld(tmp_path, ["api", "secret"]) as world:
        world.rootsd("approve", "api")
        world.rootsd("deny", "secret")
        (world.parent / "api" / "link").symlink_to(world.parent / "secret" / "README.md")
        settings = world.home / ".claude" / "settings.json"
        settings.parent.mkdir()
        paths = ["api/README.md", "secret/README.md", "api/link"]
        script = [Call("Read", {"file_path": str(world.parent / path)}) for path in paths]
        results = []
        for hooked in (False, True):
            command = shlex.join((str(ROOTSD), "hook", "claude-code"))
            hook = {"matcher": "Read", "hooks": [{"type": "command", "command": command}]}
            opened = {"additionalDirectories": [str(world.parent / "secret")]}
            hooks = {"hooks": {"PreToolUse": [hook]}} if hooked else {}
            settings.write_text(json.dumps({"permissions": opened, **hooks}))
            model = world.play(CarefulClaude(), script, {}, world.parent / "api")
            results.append([bool(REFUSED.search(model.results[step])) for step in range(3)])
            reasons = [model.results[step] for step in (1, 2)]
        assert results == [[False, False, False], [False, True, True]]
        assert all("a person denied this folder" in reason for reason in reasons)
