"""Other users, squatted folders, links, and open modes: neither the daemon nor a client trusts
them.

The users are real and live in their own namespaces. ROOTSD_DIR leads both to the same folder,
because by default they would use different ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from support import pipx_install
from support.sizes import Sizes
from support.user_commands import UserCommands
from support.user_manager import (
    ENVIRONMENT,
    HOME,
    LINK,
    UserManager,
    interpreter_folders,
    user_manager,
)

pytestmark = pytest.mark.needs("systemd-user")

STRANGER = 64002
_numbers = count(1)
# It listens in the folder that the real daemon would use, says so, and stays.
SQUATTER = """
import os, socket, sys
os.umask(0)
for folder in ("pub", "ctl"):
    os.makedirs(f"{sys.argv[1]}/{folder}", exist_ok=True)
held = []
for name in ("pub/mcp.sock", "ctl/control.sock"):
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{sys.argv[1]}/{name}")
    listening.listen()
    held.append(listening)
"""
HEARS = """
import socket, sys
made = socket.socket(socket.AF_UNIX)
made.connect(sys.argv[1])
try:
    made.sendall(b'{"jsonrpc":"2.0","id":1,"method":"status"}\\n')
    print("heard", made.recv(4096))
except (BrokenPipeError, ConnectionResetError):
    print("heard", b"")
"""
PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


@pytest.fixture(scope="module")
def owner(installation: Path) -> Iterator[UserManager]:
    """Yield a user with one repository and rootsd, whose program other users find."""
    with user_manager(interpreter_folders()) as user:
        pipx_install.put_back(user, installation)
        user.succeed("git", "init", "-q", f"{HOME}/src/secret-project")
        user.succeed("chmod", "755", str(HOME))
        yield user


def python(user: UserManager) -> str:
    """Return an interpreter that other users can run, too."""
    return user.succeed("readlink", "-f", str(ENVIRONMENT / "bin/python")).strip()


@pytest.fixture
def stranger(owner: UserManager) -> Iterator[UserCommands]:
    """Yield the `rootsd` of the owner as another user runs it."""
    words = owner.command(str(ENVIRONMENT / "bin/python"), uid=STRANGER)
    commands = UserCommands(words, str(LINK))
    yield commands
    commands.close()


@pytest.fixture
def place() -> Path:
    """Return a `ROOTSD_DIR` that does not exist yet, inside the users' namespace."""
    return Path(f"/tmp/place-{next(_numbers)}")


def at(place: Path) -> dict[str, str]:
    return {"ROOTSD_DIR": str(place)}


def test_another_user_gets_nothing_and_is_not_trusted_even_in_an_opened_folder(
    owner: UserManager, stranger: UserCommands, place: Path
) -> None:
    run = place / "run"
    owner.let_any_program_decide(place / "config")
    owner.rootsd("up", f"{HOME}/src", environment=at(place))
    owner.rootsd("approve", "secret-project", environment=at(place))
    for command in ("status", "approve secret-project", f"check {HOME}"):
        done = stranger.run(command.split(), at(place))
        assert done.returncode == 78, command
        assert f"{place} belongs to another user" in done.stderr
    asked = owner.run("rootsd", "bridge", environment=at(place), uid=STRANGER, said=PING)
    assert "belongs to another user" in json.loads(asked.stdout)["error"]["message"]
    assert "secret-project" not in asked.stdout + asked.stderr

    # Opened to all, only the check of the peer's user remains on each end.
    owner.succeed("chmod", "-R", "a+rwX", str(place))
    for name in ("pub/mcp.sock", "ctl/control.sock"):
        heard = owner.run(python(owner), "-c", HEARS, str(run / name), uid=STRANGER)
        assert heard.stdout == "heard b''\n", heard.stderr
        ours = owner.run(python(owner), "-c", HEARS, str(run / name))
        assert "jsonrpc" in ours.stdout, "the owner is answered: it is the user that counts"
    for done in (
        stranger.run(["status"], at(place)),
        owner.run("rootsd", "status", environment=at(place), uid=0),
    ):
        assert done.returncode == 78
        assert f"{place} belongs to another user" in done.stderr
    # The owner gets an error about the open folder.
    for command in ("status", "approve secret-project"):
        done = owner.run_rootsd(*command.split(), environment=at(place))
        assert done.returncode == 78
        assert f"everybody can write to {place}" in done.stderr
    owner.succeed("chmod", "-R", "go-rwx", str(place))
    owner.rootsd("down", environment=at(place))


def test_a_squatted_folder_is_refused_on_both_ends(owner: UserManager, place: Path) -> None:
    stay = f"{SQUATTER}\nprint('ready', flush=True)\nsys.stdin.read()"
    squatting = owner.begin(python(owner), "-c", stay, str(place / "run"), uid=STRANGER)
    try:
        for command in ("status", "approve --all"):
            done = owner.run_rootsd(*command.split(), environment=at(place))
            assert done.returncode == 78, done.stdout
            assert f"{place} belongs to another user" in done.stderr
        asked = owner.run("rootsd", "bridge", environment=at(place), said=PING)
        error = json.loads(asked.stdout)["error"]
        assert "belongs to another user" in error["message"]
        told = owner.run_rootsd("daemon", environment=at(place)).stderr
        assert "belongs to another user" in told
        assert "set it to a folder of yours" in told
    finally:
        squatting.communicate(timeout=60)


def refusal(user: UserManager, place: Path) -> str:
    """Return the error of a daemon that does not start there."""
    daemon = user.run_rootsd("daemon", environment=at(place))
    assert daemon.returncode == 1
    return daemon.stderr


def test_links_and_open_modes_are_refused_by_the_daemon(
    owner: UserManager, place: Path, sizes: Sizes
) -> None:
    owner.succeed("mkdir", "/tmp/elsewhere")
    linked = ("run/ctl", "run", "run/pub")
    for name in sizes.pick(test=linked[:1], check=linked, soak=linked):
        folder = place / name
        owner.succeed("mkdir", "-m", "700", "-p", str(place), str(folder.parent))
        owner.succeed("ln", "-s", "/tmp/elsewhere", str(folder))
        told = refusal(owner, place)
        assert f"{folder} is not a folder" in told
        assert f"mv {folder} {folder}.old" in told
        owner.succeed("rm", "-r", str(place))
    every = ("755", "770", "701")
    few: dict[str, tuple[str, ...]] = {"run": every[:1], "state": every[1:2]}
    full: dict[str, tuple[str, ...]] = dict.fromkeys(("run", "run/pub", "run/ctl", "state"), every)
    for name, modes in sizes.pick(test=few, check=full, soak=full).items():
        folder = place / name
        owner.succeed("mkdir", "-m", "700", "-p", str(folder))
        for mode in modes:
            owner.succeed("chmod", mode, str(folder))
            told = refusal(owner, place)
            assert f"{folder} is open to other users" in told
            assert f"chmod 700 {folder}" in told
        owner.succeed("chmod", "700", str(folder))
