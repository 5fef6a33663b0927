"""The settings of guide/sandboxes.md for Claude Code, in the program that creates its sandbox.

A command in it reads roots and cannot decide.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import node_packages, pipx_install
from support.bridges import INITIALIZE, notice, request
from support.guard_settings import NO_GUARD
from support.sizes import Sizes
from support.user_manager import (
    HOME,
    RUNTIME,
    UID,
    Finished,
    UserManager,
    interpreter_folders,
    user_manager,
)

pytestmark = pytest.mark.needs("systemd-user", "bubblewrap", "npm", "ripgrep", "socat")

PAGE = Path(__file__).parent.parent.parent / "docs" / "guide" / "sandboxes.md"
SETTINGS = HOME / "srt.json"


def recipe() -> Any:  # noqa: ANN401
    """Return the settings of docs/guide/sandboxes.md for this user."""
    (block,) = (
        text for part in PAGE.read_text().split("```json\n")[1:]
        if '"sandbox"' in (text := part.partition("```")[0])
    )  # fmt: skip
    settings: dict[str, Any] = json.loads(block.replace("/1000", f"/{UID}"))
    assert settings["sandbox"]["enabled"]
    assert settings["sandbox"]["allowUnsandboxedCommands"] is False
    return settings["sandbox"]


@pytest.fixture(scope="module")
def user(installation: Path) -> Iterator[UserManager]:
    """Yield a user with two repositories, one of which the service publishes."""
    with user_manager([*interpreter_folders(), node_packages.packages()]) as user:
        pipx_install.put_back(user, installation)
        for name in ("api", "secret"):
            user.succeed("git", "init", "-q", f"{HOME}/src/{name}")
        # The sandbox must be the only obstacle.
        user.succeed("mkdir", "-p", f"{HOME}/.config/rootsd")
        user.run("tee", f"{HOME}/.config/rootsd/config.toml", said=NO_GUARD)
        user.rootsd("service", "install")
        user.rootsd("up", f"{HOME}/src")
        user.rootsd("approve", f"{HOME}/src/api")
        yield user


def sandboxed(user: UserManager, command: str, said: str | None = None) -> Finished:
    """Run a command as Claude Code does. The sandbox program needs some settings that Claude Code
    may omit.
    """
    read = recipe()
    settings = {
        "network": {"allowedDomains": [], "deniedDomains": [], **read["network"]},
        "filesystem": {"allowWrite": [f"{HOME}/src"], "denyWrite": [], **read["filesystem"]},
    }
    user.run("tee", str(SETTINGS), said=json.dumps(settings))
    program = node_packages.packages() / "node_modules/@anthropic-ai/sandbox-runtime/dist/cli.js"
    return user.run(
        str(node_packages.node()),
        str(program),
        "--settings",
        str(SETTINGS),
        "-c",
        command,
        said=said,
    )


def test_a_command_in_it_gets_the_roots(user: UserManager) -> None:
    lines = (
        request("hello", "initialize", INITIALIZE),
        notice("notifications/initialized"),
        request("roots", "roots/list"),
    )
    done = sandboxed(user, "rootsd bridge", b"".join(lines).decode())
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers, done.stderr
    (told,) = (answer["result"] for answer in answers if answer.get("id") == "roots")
    assert [root["name"] for root in told["roots"]] == ["api"]


# The first ones need different things: the control socket, the socket of systemd, and files.
ATTEMPTS = (
    f"rootsd approve {HOME}/src/secret",
    "systemctl --user stop rootsd.service",
    f"cat {HOME}/.local/state/rootsd/decisions.db",
    "rootsd down",
    "rootsd service uninstall",
    f"rm {RUNTIME}/rootsd/pub/mcp.sock",
)


def test_it_can_neither_decide_nor_stop_the_daemon(user: UserManager, sizes: Sizes) -> None:
    pid = user.shown("rootsd.service", "MainPID")
    for attempt in sizes.pick(test=ATTEMPTS[:3], check=ATTEMPTS, soak=ATTEMPTS):
        done = sandboxed(user, f"echo it is tried; {attempt}")
        assert done.stdout.startswith("it is tried\n"), (attempt, done.stderr)
        assert done.returncode != 0, attempt
        assert "Traceback" not in done.stderr, attempt
        assert user.shown("rootsd.service", "MainPID") == pid, attempt
        assert user.path(RUNTIME / "rootsd/pub/mcp.sock").is_socket(), attempt
    assert user.published() == ["api"]
    # The control: the same commands work outside.
    user.rootsd("approve", f"{HOME}/src/secret")
    assert user.published() == ["api", "secret"]
    user.rootsd("forget", f"{HOME}/src/secret")  # as the other test expects
