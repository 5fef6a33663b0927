"""The runtime folder disappears, as at a logout, and clients still find the lingering daemon."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support.bridges import ASKING_FOR_ROOTS, Client, told_roots
from support.polling import until
from support.user_manager import HOME, RUNTIME, UserManager

pytestmark = pytest.mark.needs("systemd-user")

FALLBACK = HOME / ".local/state/rootsd/run"


def daemon(user: UserManager) -> dict[str, object]:
    about: dict[str, object] = json.loads(user.rootsd("status", "--json"))["daemon"]
    return about


def until_listening(user: UserManager, folder: Path) -> None:
    """Wait until the daemon has its sockets in that runtime folder.

    It notices a removal at once, but a command that starts in the same moment may be faster.
    """
    for name in ("ctl/control.sock", "pub/mcp.sock"):
        until(user.path(folder / name).is_socket)


def is_listed(user: UserManager, name: str) -> bool:
    """Return whether a client behind a bridge gets a root with that name."""
    done = user.run("rootsd", "bridge", said=ASKING_FOR_ROOTS.decode())
    return name in [root["name"] for root in told_roots(done.stdout)]


def take_away(user: UserManager, folder: Path) -> None:
    """Remove a folder in one step. In a folder that is emptied name by name, the daemon recreates
    a socket before it is gone.
    """
    user.succeed("mv", str(folder), f"{folder}.gone")
    user.succeed("rm", "-rf", f"{folder}.gone")


def test_the_daemon_moves_its_sockets_and_clients_find_them(user: UserManager) -> None:
    user.succeed("git", "init", "-q", f"{HOME}/src/api")
    user.rootsd("up", f"{HOME}/src")
    user.rootsd("approve", "api")
    user.rootsd("guard", "off")  # this test is not about it
    before = daemon(user)
    assert user.path(RUNTIME / "rootsd/ctl/control.sock").is_socket()
    pipe = subprocess.PIPE
    with subprocess.Popen(user.command("rootsd", "bridge"), stdin=pipe, stdout=pipe) as listening:
        client = Client(listening)
        client.shake_hands()
        assert [root["name"] for root in client.roots()] == ["api"]

        take_away(user, RUNTIME / "rootsd")
        until_listening(user, FALLBACK)
        assert daemon(user) == before, "it is the same one, as confined as it was"
        assert is_listed(user, "api")

        # The session's folder is completely gone, and the session continues.
        gone = user.path(RUNTIME).rename(user.path(RUNTIME.with_name("gone")))
        assert daemon(user) == before
        assert is_listed(user, "api")
        user.rootsd("deny", "api")
        assert "list_changed" in client.hear()["method"]
        client.stdin.close()

    # After another login the folder exists and is empty.
    gone.rename(user.path(RUNTIME))
    assert daemon(user) == before
    # The MCP socket alone disappears, and both are made again.
    take_away(user, FALLBACK / "pub")
    until_listening(user, FALLBACK)
    assert not is_listed(user, "api")
    assert daemon(user) == before
    user.rootsd("down")
    assert not user.path(FALLBACK / "ctl/control.sock").exists()
