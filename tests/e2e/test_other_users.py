"""Other users, squatted folders, links, and open modes: neither the daemon nor a client trusts
them.

The users are real and live in their own namespaces. ROOTSD_DIR leads both to the same folder,
because by default they would use different ones.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import pipx_install
from support.sizes import Sizes
from support.user_manager import HOME, UserManager

pytestmark = pytest.mark.needs("systemd-user")

STRANGER = 64002
PLACE = Path("/tmp/place")
RUN = PLACE / "run"
WHERE = {"ROOTSD_DIR": str(PLACE)}
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


@pytest.fixture
def served(user: UserManager) -> UserManager:
    """Return a user with a running daemon and one root."""
    user.succeed("git", "init", "-q", f"{HOME}/src/secret-project")
    user.succeed("chmod", "755", str(HOME))  # so that other users find the program
    for words in (("up", f"{HOME}/src"), ("approve", "secret-project")):
        done = user.run("rootsd", *words, environment=WHERE)
        assert done.returncode == 0, done.stderr
    return user


def down(user: UserManager) -> None:
    user.run("rootsd", "down", environment=WHERE)


def python(user: UserManager) -> str:
    """Return an interpreter that other users can run, too."""
    return user.succeed("readlink", "-f", str(pipx_install.ENVIRONMENT / "bin/python")).strip()


def test_another_user_cannot_enter_the_folders(served: UserManager) -> None:
    for words in (("status",), ("ls",), ("approve", "secret-project"), ("check", str(HOME))):
        done = served.run("rootsd", *words, environment=WHERE, uid=STRANGER)
        assert done.returncode not in (0, 3, 4, 5), words
        assert "is closed to you" in done.stderr
        assert f"ls -ld {RUN}" in done.stderr
    asked = served.run("rootsd", "bridge", environment=WHERE, uid=STRANGER, said=PING)
    assert json.loads(asked.stdout)["error"]["data"]["reason"] == "refused"
    assert "secret-project" not in asked.stdout + asked.stderr
    down(served)


def test_another_user_in_an_opened_folder_gets_no_answer_and_does_not_trust_it(
    served: UserManager,
) -> None:
    """The folders were opened to all, so only the check of the peer's user remains on each end."""
    served.succeed("chmod", "-R", "a+rwX", str(PLACE))
    for name in ("pub/mcp.sock", "ctl/control.sock"):
        heard = served.run(python(served), "-c", HEARS, str(RUN / name), uid=STRANGER)
        assert heard.stdout == "heard b''\n", heard.stderr
        ours = served.run(python(served), "-c", HEARS, str(RUN / name))
        assert "jsonrpc" in ours.stdout, "the owner is answered: it is the user that counts"
    for uid in (STRANGER, 0):
        done = served.run("rootsd", "status", environment=WHERE, uid=uid)
        assert done.returncode == 7
        assert f"belongs to user {served.uid}, not to you" in done.stderr
    # The owner gets an error about the open folder.
    for words in (("status",), ("approve", "secret-project")):
        done = served.run("rootsd", *words, environment=WHERE)
        assert done.returncode == 7
        assert "is open to other users" in done.stderr
        assert f"chmod 700 {RUN}" in done.stderr
    served.succeed("chmod", "-R", "go-rwx", str(PLACE))
    down(served)


def test_a_squatted_folder_is_refused_on_both_ends(user: UserManager) -> None:
    user.succeed("chmod", "755", str(HOME))
    stay = f"{SQUATTER}\nprint('ready', flush=True)\nsys.stdin.read()"
    squatting = user.begin(python(user), "-c", stay, str(RUN), uid=STRANGER)
    try:
        for words in (("status",), ("approve", "--all"), ("ls",)):
            done = user.run("rootsd", *words, environment=WHERE)
            assert done.returncode == 7, done.stdout
            assert f"belongs to user {STRANGER}, not to you" in done.stderr
        asked = user.run("rootsd", "bridge", environment=WHERE, said=PING)
        error = json.loads(asked.stdout)["error"]
        assert (error["data"]["reason"], str(STRANGER) in error["message"]) == ("refused", True)
        daemon = user.run("rootsd", "daemon", environment=WHERE)
        assert daemon.returncode == 1
        assert f"belongs to user {STRANGER}, not to you" in daemon.stderr
        assert "set ROOTSD_DIR to your own folder" in daemon.stderr
    finally:
        squatting.communicate(timeout=60)


def refusal(user: UserManager) -> str:
    """Return the error of a daemon that does not start there."""
    daemon = user.run("rootsd", "daemon", environment=WHERE)
    assert daemon.returncode == 1
    return daemon.stderr


def test_links_and_open_modes_are_refused_by_the_daemon(user: UserManager, sizes: Sizes) -> None:
    user.succeed("mkdir", "/tmp/elsewhere")
    linked = ("run/ctl", "run", "run/pub")
    for folder in sizes.pick(test=linked[:1], check=linked, soak=linked):
        place = str(PLACE / folder)
        user.succeed("mkdir", "-m", "700", "-p", str(PLACE), str((PLACE / folder).parent))
        user.succeed("ln", "-s", "/tmp/elsewhere", place)
        told = refusal(user)
        assert f"{place} is not a folder" in told
        assert f"mv {place} {place}.old" in told
        user.succeed("rm", "-r", str(PLACE))
    every = ("755", "770", "701")
    places = ("run", "run/pub", "run/ctl", "state")
    some: list[tuple[str, ...]] = [every[:1], every[1:2], every[2:], every[:1]]
    full: list[tuple[str, ...]] = [every] * len(places)
    tried = sizes.pick(test=some, check=full, soak=full)
    for folder, modes in zip(places, tried, strict=True):
        place = str(PLACE / folder)
        user.succeed("mkdir", "-m", "700", "-p", place)
        for mode in modes:
            user.succeed("chmod", mode, place)
            told = refusal(user)
            assert f"{place} is open to other users" in told
            assert f"chmod 700 {place}" in told
        user.succeed("chmod", "700", place)
