"""Upgrades: a new version installed over a running service, and data of a newer one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import rootsd
from support import pipx_install
from support.bridges import Client
from support.user_manager import (
    ENVIRONMENT,
    HOME,
    UserManager,
    interpreter_folders,
    user_manager,
)

pytestmark = pytest.mark.needs("systemd-user")

NEXT = "99.0.0"
STORE = HOME / ".local/state/rootsd/decisions.db"
USER_VERSION = 60  # its offset in the header of an SQLite file: sqlite.org/fileformat2.html
UNITS = HOME / ".config/systemd/user"
DROP_INS = UNITS / "rootsd.service.d"


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory, installation: Path) -> Path:
    """Return the files of the home of a user who has a newer version."""
    home = tmp_path_factory.mktemp("newer") / "home"
    subprocess.run(["cp", "-a", installation, home], check=True)
    pipx_install.set_version(home, NEXT)
    return home


def change_to(user: UserManager, installation: Path) -> None:
    """Put another installation in the place of the present one, as an upgrade does."""
    user.succeed("rm", "-rf", str(ENVIRONMENT))
    settings = user.path(HOME / ".config/rootsd/config.toml")
    own = settings.read_bytes()
    pipx_install.put_back(user, installation)
    settings.write_bytes(own)  # those of the user, who has added a parent
    user.commands.close()  # the next command is of the new installation


@pytest.fixture(scope="module")
def installed(installation: Path) -> Iterator[UserManager]:
    """Yield a user with a repository that this version's service publishes.

    Each test leaves that behind. The daemon may be a newer one.
    """
    with user_manager(interpreter_folders()) as user:
        pipx_install.put_back(user, installation)
        user.succeed("git", "init", "-q", f"{HOME}/src/api")
        user.rootsd("service", "install")
        user.rootsd("up", f"{HOME}/src")
        user.rootsd("approve", f"{HOME}/src/api")
        user.rootsd("guard", "off")  # bridges and commands share one control group here
        yield user


@contextmanager
def bridge(user: UserManager) -> Iterator[Client]:
    pipe = subprocess.PIPE
    command = user.command("rootsd", "bridge")
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        client = Client(process)
        client.shake_hands()
        try:
            yield client
        finally:
            process.kill()


def roots(client: Client) -> list[str]:
    return [root["name"] for root in client.roots()]


def daemon(user: UserManager) -> dict[str, object]:
    status: dict[str, object] = json.loads(user.rootsd("status", "--json"))["daemon"]
    return status


def test_a_newer_command_replaces_the_daemon_under_a_session_and_an_older_one_does_not(
    installed: UserManager, installation: Path, newer: Path
) -> None:
    user = installed
    with bridge(user) as client:
        assert roots(client) == ["api"]
        first = daemon(user)
        change_to(user, newer)
        assert roots(client) == ["api"]
        with bridge(user) as of_the_next:
            assert roots(of_the_next) == ["api"]
        assert "rootsd up" in user.run_rootsd("version").stderr
        user.rootsd("tag", "api", "newer")
        assert daemon(user) == first  # nothing is restarted without being asked

        said = user.run("rootsd", "up")
        assert said.returncode == 0, said.stderr
        assert f"is version {rootsd.__version__}; starting {NEXT} instead" in said.stderr
        second = daemon(user)
        assert (second["version"], user.shown("rootsd.service", "ActiveState")) == (NEXT, "active")
        assert int(user.shown("rootsd.service", "MainPID")) == second["pid"]
        assert roots(client) == ["api"]
        assert "version" not in user.rootsd("service", "status")

        change_to(user, installation)
        said = user.run_rootsd("up")
        assert said.returncode == 0, said.stderr
        assert "newer than this command" in said.stderr
        assert daemon(user) == second
        assert roots(client) == ["api"]
        with bridge(user) as older:
            assert roots(older) == ["api"]
        user.rootsd("tag", "api", "older")
        assert user.rootsd("tag").split() == ["newer", "1", "older", "1"]


def test_a_newer_store_is_refused_unchanged(installed: UserManager) -> None:
    user = installed
    user.rootsd("down")
    store = user.path(STORE)
    ours = store.read_bytes()
    with store.open("r+b") as stream:
        stream.seek(USER_VERSION)
        stream.write((4711).to_bytes(4, "big"))
    before = {file.name: file.read_bytes() for file in store.parent.glob("decisions*")}
    done = user.run_rootsd("service", "start")
    assert done.returncode != 0
    assert "newer" in done.stderr
    assert "Traceback" not in done.stderr
    assert user.shown("rootsd.service", "NRestarts") == "0"
    assert {file.name: file.read_bytes() for file in store.parent.glob("decisions*")} == before

    store.write_bytes(ours)
    user.rootsd("service", "start")
    assert user.published() == ["api"]


def test_a_strict_service_keeps_the_decisions(installed: UserManager) -> None:
    user = installed
    user.rootsd("service", "install", "--strict")
    assert user.shown("rootsd.service", "PrivateUsers") == "yes"
    assert user.published() == ["api"]
    user.succeed("git", "init", "-q", f"{HOME}/src/other")
    user.rootsd("approve", f"{HOME}/src/other")
    user.rootsd("service", "install", "--no-strict")
    assert user.shown("rootsd.service", "PrivateUsers") == "no"
    assert user.published() == ["api", "other"]
    user.rootsd("deny", f"{HOME}/src/other")


def test_strict_is_removed_if_this_system_cannot_provide_it(installed: UserManager) -> None:
    user = installed
    # Without namespaces systemd ignores the option; with them it fails with 226/NAMESPACE.
    impossible = "[Service]\nReadWritePaths=/nowhere/at/all\n"
    override = DROP_INS / "90-test.conf"
    user.run("tee", str(override), said=impossible)
    done = user.run_rootsd("service", "install", "--strict")
    assert done.returncode == 0, done.stderr
    assert "cannot start with --strict; it runs without it" in done.stderr
    assert "Traceback" not in done.stderr
    assert user.shown("rootsd.service", "ActiveState") == "active"
    assert sorted(path.name for path in user.path(DROP_INS).iterdir()) == [
        "10-sockets.conf", "15-places.conf", "90-test.conf",
    ]  # fmt: skip
    user.succeed("rm", str(override))
    user.systemctl("daemon-reload")
