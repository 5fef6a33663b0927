"""In the sandboxes of the docs, an agent can read roots but decide nothing.

They are two recipes with bubblewrap, and the settings for Claude Code in the program that creates
its sandbox.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support import node_packages, pipx_install
from support.bridges import ASKING_FOR_ROOTS, told_roots
from support.needs import unmet
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

pytestmark = pytest.mark.needs("systemd-user", "bubblewrap")

DOCS = Path(__file__).parent.parent.parent / "docs"
LINUX, WSL = DOCS / "guide" / "sandboxes.md", DOCS / "WSL.md"
AGENT = "-- claude"
SETTINGS = HOME / "srt.json"
Sandboxed = Callable[..., Finished]


def recipe(page: Path) -> str:
    """Return the commands of a page that start an agent."""
    blocks = page.read_text().split("```console\n")[1:]
    (block,) = (text.partition("```")[0] for text in blocks if "bwrap" in text)
    assert block.rstrip().endswith(AGENT)
    return "\n".join(line.removeprefix("$ ") for line in block.splitlines())


def by_recipe(page: Path, user: UserManager, command: str, said: str | None = None) -> Finished:
    script = recipe(page).replace(AGENT, f"-- {command}")
    assert AGENT not in script
    return user.run("bash", "-euc", script, said=said)


def claude_settings() -> Any:  # noqa: ANN401
    """Return the settings of docs/guide/sandboxes.md for this user."""
    (block,) = (
        text for part in LINUX.read_text().split("```json\n")[1:]
        if '"sandbox"' in (text := part.partition("```")[0])
    )  # fmt: skip
    settings: dict[str, Any] = json.loads(block.replace("/1000", f"/{UID}"))
    assert settings["sandbox"]["enabled"]
    assert settings["sandbox"]["allowUnsandboxedCommands"] is False
    return settings["sandbox"]


def by_claude_code(user: UserManager, command: str, said: str | None = None) -> Finished:
    """Run a command as Claude Code does. The sandbox program needs some settings that Claude Code
    may omit.
    """
    read = claude_settings()
    settings = {
        "network": {"allowedDomains": [], "deniedDomains": [], **read["network"]},
        "filesystem": {"allowWrite": [f"{HOME}/src"], "denyWrite": [], **read["filesystem"]},
    }
    user.run("tee", str(SETTINGS), said=json.dumps(settings))
    program = node_packages.packages() / "node_modules/@anthropic-ai/sandbox-runtime/dist/cli.js"
    words = [str(node_packages.node()), str(program), "--settings", str(SETTINGS), "-c", command]
    return user.run(*words, said=said)


by_linux, by_wsl = partial(by_recipe, LINUX), partial(by_recipe, WSL)
each_sandbox = pytest.mark.parametrize(
    "sandboxed",
    [
        pytest.param(by_linux, id="linux"),
        pytest.param(by_wsl, id="wsl"),
        pytest.param(
            by_claude_code, id="claude code", marks=pytest.mark.needs("npm", "ripgrep", "socat")
        ),
    ],
)


@pytest.fixture(scope="module")
def user(installation: Path) -> Iterator[UserManager]:
    """Yield a user with two repositories, one of which the service publishes."""
    packages = [] if unmet("npm") else [node_packages.packages()]
    with user_manager([*interpreter_folders(), *packages]) as user:
        pipx_install.put_back(user, installation)
        for name in ("api", "secret"):
            user.succeed("git", "init", "-q", f"{HOME}/src/{name}")
        user.rootsd("service", "install")
        user.rootsd("up", f"{HOME}/src")
        user.rootsd("approve", f"{HOME}/src/api")
        # The sandbox must be the only obstacle.
        assert user.rootsd("guard") == "off\n"
        # Windows is in these folders.
        for folder in ("/run/WSL", "/mnt/c"):
            inside = user.path(Path(folder))
            inside.mkdir()
            (inside / "windows").touch()
        yield user


@each_sandbox
def test_an_agent_in_it_gets_the_roots(user: UserManager, sandboxed: Sandboxed) -> None:
    done = sandboxed(user, "rootsd bridge", ASKING_FOR_ROOTS.decode())
    assert [root["name"] for root in told_roots(done.stdout)] == ["api"], done.stderr


# The first ones need different things: the control socket, the socket of systemd, and files.
ATTEMPTS = (
    f"rootsd approve {HOME}/src/secret",
    "systemctl --user stop rootsd.service",
    f"cat {HOME}/.local/state/rootsd/decisions.db",
    "rootsd service uninstall",
    f"rootsd up {HOME}/src",
    "rootsd down",
    f"rm {RUNTIME}/rootsd/pub/mcp.sock",
)


@each_sandbox
def test_it_can_neither_decide_nor_stop_the_daemon(
    user: UserManager, sandboxed: Sandboxed, sizes: Sizes
) -> None:
    pid = user.shown("rootsd.service", "MainPID")
    sockets = user.path(RUNTIME / "rootsd/pub")
    before = [(entry.name, entry.inode()) for entry in os.scandir(sockets)]
    for attempt in sizes.pick(test=ATTEMPTS[:4], check=ATTEMPTS, soak=ATTEMPTS):
        script = f"echo it is tried; {attempt}"
        command = script if sandboxed is by_claude_code else f"bash -c '{script}'"
        done = sandboxed(user, command)
        assert done.stdout.startswith("it is tried\n"), (attempt, done.stderr)
        assert done.returncode != 0, attempt
        assert "Traceback" not in done.stderr, attempt
        assert user.shown("rootsd.service", "MainPID") == pid, attempt
        # An agent's own daemon in place of ours could send others any roots.
        assert [(entry.name, entry.inode()) for entry in os.scandir(sockets)] == before, attempt
    assert user.published() == ["api"]
    # The control: without the sandbox, the same commands work.
    user.rootsd("approve", f"{HOME}/src/secret")
    assert user.published() == ["api", "secret"]
    user.rootsd("forget", f"{HOME}/src/secret")  # as the other tests expect


def test_the_one_for_wsl_hides_windows(user: UserManager) -> None:
    folders = "ls -A /run/WSL /mnt; echo ${WSL_INTEROP-unset}"
    linux, wsl = (
        sandboxed(user, f"bash -c '{folders}'").stdout.split() for sandboxed in (by_linux, by_wsl)
    )
    assert wsl == ["/mnt:", "/run/WSL:", "unset"]
    assert "windows" in linux, "the control: the other page does not"
