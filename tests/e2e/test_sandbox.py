"""In the sandboxes of the docs, an agent can read roots but decide nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import pipx_install
from support.bridges import INITIALIZE, notice, request
from support.guard_settings import NO_GUARD
from support.sizes import Sizes
from support.user_manager import (
    HOME,
    RUNTIME,
    Finished,
    UserManager,
    interpreter_folders,
    user_manager,
)

pytestmark = pytest.mark.needs("systemd-user", "bubblewrap")

DOCS = Path(__file__).parent.parent.parent / "docs"
LINUX, WSL = DOCS / "guide" / "sandboxes.md", DOCS / "WSL.md"
PAGES = (LINUX, WSL)
AGENT = "-- claude"


def recipe(page: Path) -> str:
    """Return the commands of a page that start an agent."""
    blocks = page.read_text().split("```console\n")[1:]
    (block,) = (text.partition("```")[0] for text in blocks if "bwrap" in text)
    assert block.rstrip().endswith(AGENT)
    return "\n".join(line.removeprefix("$ ") for line in block.splitlines())


@pytest.fixture(scope="module")
def prepared(installation: Path) -> Iterator[UserManager]:
    """Yield a user with two repositories, one of which the service publishes."""
    with user_manager(interpreter_folders()) as user:
        pipx_install.put_back(user, installation)
        for name in ("api", "secret"):
            user.succeed("git", "init", "-q", f"{HOME}/src/{name}")
        # The sandbox must be the only obstacle.
        user.succeed("mkdir", "-p", f"{HOME}/.config/rootsd")
        user.run("tee", f"{HOME}/.config/rootsd/config.toml", said=NO_GUARD)
        user.rootsd("service", "install")
        user.rootsd("up", f"{HOME}/src")
        user.rootsd("approve", f"{HOME}/src/api")
        # Windows is in these folders.
        for folder in ("/run/WSL", "/mnt/c"):
            inside = user.path(Path(folder))
            inside.mkdir()
            (inside / "windows").touch()
        yield user


def sandboxed(user: UserManager, page: Path, command: str, said: str | None = None) -> Finished:
    script = recipe(page).replace(AGENT, f"-- {command}")
    assert AGENT not in script
    return user.run("bash", "-euc", script, said=said)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_an_agent_in_it_gets_the_roots(prepared: UserManager, page: Path) -> None:
    lines = (
        request("hello", "initialize", INITIALIZE),
        notice("notifications/initialized"),
        request("roots", "roots/list"),
    )
    done = sandboxed(prepared, page, "rootsd bridge", b"".join(lines).decode())
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    (told,) = (answer["result"] for answer in answers if answer.get("id") == "roots")
    assert [root["name"] for root in told["roots"]] == ["api"]


# The first ones need different things: the control socket, the socket of systemd, and files.
ATTEMPTS = (
    f"rootsd approve {HOME}/src/secret",
    "systemctl --user stop rootsd.service",
    "rootsd service uninstall",
    f"rootsd up {HOME}/src",
    "rootsd down",
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_it_can_neither_decide_nor_stop_the_daemon(
    prepared: UserManager, page: Path, sizes: Sizes
) -> None:
    pid = prepared.shown("rootsd.service", "MainPID")
    sockets = prepared.path(RUNTIME / "rootsd/pub")
    before = [(entry.name, entry.inode()) for entry in os.scandir(sockets)]
    for attempt in sizes.pick(test=ATTEMPTS[:3], check=ATTEMPTS, soak=ATTEMPTS):
        done = sandboxed(prepared, page, attempt)
        assert "bwrap:" not in done.stderr
        assert prepared.shown("rootsd.service", "MainPID") == pid, attempt
        # An agent's own daemon in place of ours could send others any roots.
        assert [(entry.name, entry.inode()) for entry in os.scandir(sockets)] == before, attempt
    assert prepared.published() == ["api"]
    # The control: without the sandbox, the same commands work.
    prepared.rootsd("approve", f"{HOME}/src/secret")
    assert prepared.published() == ["api", "secret"]
    prepared.rootsd("forget", f"{HOME}/src/secret")  # as the other tests expect


def test_the_one_for_wsl_hides_windows(prepared: UserManager) -> None:
    folders = "ls -A /run/WSL /mnt; echo ${WSL_INTEROP-unset}"
    inside = {
        page: sandboxed(prepared, page, f"bash -c '{folders}'").stdout.split() for page in PAGES
    }
    assert inside[WSL] == ["/mnt:", "/run/WSL:", "unset"]
    assert "windows" in inside[LINUX], "the control: the other page does not"
