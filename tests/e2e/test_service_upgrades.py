"""Upgrades: a new version installed over a running service, and data of other versions."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

import rootsd
from rootsd.state.store.schema import BINDING_SINCE, MIGRATIONS
from support import pipx_install
from support.bridges import INITIALIZE, Client, notice
from support.release_files import unit_texts
from support.user_manager import (
    HANG_GUARD_S,
    HOME,
    UserManager,
    interpreter_folders,
    user_manager,
)

pytestmark = pytest.mark.needs("systemd-user")

NEXT = "99.0.0"
STORE = HOME / ".local/state/rootsd/decisions.db"
NEWEST = len(MIGRATIONS)
USER_VERSION = 60  # its offset in the header of an SQLite file: sqlite.org/fileformat2.html
AS_0_1_0 = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("DROP TABLE binding")
db.execute(f"PRAGMA user_version = {int(sys.argv[2])}")
db.close()
"""
OLDER_UNITS = "an older version wrote the service: rootsd-sync.service missing"
UNDETECTED = "A restored state folder would not be detected"
DROP_INS = HOME / ".config/systemd/user/rootsd.service.d"


@pytest.fixture(scope="module")
def next_installation(tmp_path_factory: pytest.TempPathFactory, installation: Path) -> Path:
    """Return the files of the home after an upgrade from this version to the next one."""
    folder = tmp_path_factory.mktemp("next")
    wheel = pipx_install.built_wheel(folder, NEXT)
    with user_manager(interpreter_folders()) as user:
        pipx_install.put_back(user, installation)
        pipx_install.install(user, wheel)
        pipx_install.keep(user, folder / "home")
    return folder / "home"


def change_to(user: UserManager, installation: Path) -> None:
    """Put another installation in the place of the present one, as an upgrade does."""
    user.succeed("rm", "-rf", str(pipx_install.ENVIRONMENT))
    pipx_install.put_back(user, installation)


@pytest.fixture
def prepared(user: UserManager) -> UserManager:
    """Return a user with a repository that this version's service publishes."""
    user.succeed("git", "init", "-q", f"{HOME}/src/api")
    user.succeed("rootsd", "service", "install")
    user.succeed("rootsd", "up", f"{HOME}/src")
    user.succeed("rootsd", "approve", f"{HOME}/src/api")
    return user


@contextmanager
def bridge(user: UserManager) -> Iterator[Client]:
    pipe = subprocess.PIPE
    command = user.command("rootsd", "bridge")
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        client = Client(process)
        assert "result" in client.ask("hello", "initialize", INITIALIZE)
        client.say(notice("notifications/initialized"))
        try:
            yield client
        finally:
            process.kill()


def roots(client: Client, id_: str) -> list[str]:
    """Return the names of the roots that the session gets. Notifications before them are
    ignored.
    """
    answer = client.ask(id_, "roots/list")
    while answer.get("id") != id_:
        answer = client.hear()
    return [root["name"] for root in answer["result"]["roots"]]


def up_on_a_terminal(user: UserManager, answer: str) -> None:
    """Type an answer to the question of `rootsd up` about the version."""
    words = user.command("rootsd", "up")
    with pexpect.spawn(words[0], words[1:], encoding="utf-8", timeout=HANG_GUARD_S) as terminal:
        terminal.expect(r"The daemon is version[^?]*\?")
        terminal.sendline(answer)
        terminal.expect(pexpect.EOF)
        terminal.close()
        assert terminal.exitstatus == 0


def version_of(store: Path) -> int:
    """Return the schema version of a database, from its header."""
    return int.from_bytes(store.read_bytes()[USER_VERSION:][:4], "big")


def daemon(user: UserManager) -> dict[str, object]:
    status: dict[str, object] = json.loads(user.succeed("rootsd", "status", "--json"))["daemon"]
    return status


def test_a_newer_command_replaces_the_daemon_under_a_session_and_an_older_one_does_not(
    prepared: UserManager, installation: Path, next_installation: Path
) -> None:
    user = prepared
    user.succeed("rootsd", "guard", "off")  # bridges and commands share one control group here
    with bridge(user) as client:
        assert roots(client, "before") == ["api"]
        first = daemon(user)
        change_to(user, next_installation)
        assert roots(client, "meanwhile") == ["api"]
        with bridge(user) as newer:
            assert roots(newer, "of the daemon before") == ["api"]
        assert "rootsd up" in user.run("rootsd", "version").stderr
        user.succeed("rootsd", "tag", "api", "newer")
        assert daemon(user) == first  # nothing is restarted without being asked

        up_on_a_terminal(user, "n")
        assert daemon(user) == first  # the person declined
        said = user.run("rootsd", "up")
        assert said.returncode == 0, said.stderr
        assert f"is version {rootsd.__version__}; starting {NEXT} instead" in said.stderr
        second = daemon(user)
        assert (second["version"], user.shown("rootsd.service", "ActiveState")) == (NEXT, "active")
        assert int(user.shown("rootsd.service", "MainPID")) == second["pid"]
        assert roots(client, "after") == ["api"]
        assert "version" not in user.succeed("rootsd", "service", "status")

        change_to(user, installation)
        said = user.run("rootsd", "up")
        assert said.returncode == 0, said.stderr
        assert "newer than this command" in said.stderr
        assert daemon(user) == second
        assert roots(client, "at last") == ["api"]
        with bridge(user) as older:
            assert roots(older, "of the newer daemon") == ["api"]
        user.succeed("rootsd", "tag", "api", "older")
        assert user.succeed("rootsd", "tag").split() == ["newer", "1", "older", "1"]


def test_on_a_terminal_a_newer_command_asks_first_and_enter_means_yes(
    prepared: UserManager, next_installation: Path
) -> None:
    user = prepared
    change_to(user, next_installation)
    up_on_a_terminal(user, "")
    assert daemon(user)["version"] == NEXT


def test_the_store_of_an_older_version_is_migrated_after_a_backup(
    prepared: UserManager,
) -> None:
    user = prepared
    user.succeed("rootsd", "down")
    store = user.path(STORE)
    backups = store.parent / "backups"
    # As version 0.1.0 leaves it: without a binding, and without a second anchor.
    user.succeed("python3", "-c", AS_0_1_0, str(STORE), str(BINDING_SINCE - 1))
    (anchor,) = user.path(HOME / ".local/share/rootsd").iterdir()
    anchor.unlink()
    before = set(backups.glob("*"))
    user.succeed("rootsd", "service", "start")
    assert version_of(store) == NEWEST
    assert anchor.exists()
    made = set(backups.glob("*")) - before
    assert BINDING_SINCE - 1 in map(version_of, made)
    with bridge(user) as client:
        assert roots(client, "1") == ["api"]


@pytest.mark.parametrize("tier", ["plain", "strict"])
def test_the_units_of_0_1_0_run_the_new_daemon_until_an_install_updates_them(
    user: UserManager, tier: str
) -> None:
    user.succeed("git", "init", "-q", f"{HOME}/src/api")
    units = HOME / ".config/systemd/user"
    user.succeed("mkdir", "-p", str(units / "rootsd.service.d"))
    for name, text in unit_texts().items():
        if name.endswith(".plist") or ("namespaces" in name and tier == "plain"):
            continue
        user.run("tee", str(units / name), said=text.replace("/home/ann", str(HOME)))
    user.systemctl("daemon-reload")
    user.systemctl("enable", "--now", "rootsd.socket", "rootsd-control.socket")
    user.succeed("rootsd", "up", f"{HOME}/src")
    user.succeed("rootsd", "approve", f"{HOME}/src/api")
    assert user.shown("rootsd.service", "ActiveState") == "active"
    with bridge(user) as client:
        assert roots(client, "old units") == ["api"]
        assert OLDER_UNITS in user.run("rootsd", "doctor").stdout
        degraded = json.loads(user.succeed("rootsd", "status", "--json"))["degraded"]
        assert any(UNDETECTED in line for line in degraded) == (tier == "strict")
        user.succeed("rootsd", "service", "install")
        assert roots(client, "new units") == ["api"]
    assert OLDER_UNITS not in user.run("rootsd", "doctor").stdout
    degraded = json.loads(user.succeed("rootsd", "status", "--json"))["degraded"]
    assert not any(UNDETECTED in line for line in degraded)
    assert user.path(units / "rootsd-sync.service").exists()


def test_a_store_of_a_newer_version_is_refused_unchanged_and_reported_once(
    prepared: UserManager,
) -> None:
    user = prepared
    user.succeed("rootsd", "down")
    store = user.path(STORE)
    with store.open("r+b") as stream:
        stream.seek(USER_VERSION)
        stream.write((4711).to_bytes(4, "big"))
    before = {file.name: file.read_bytes() for file in store.parent.glob("decisions*")}
    done = user.run("rootsd", "service", "start")
    assert done.returncode != 0
    assert "newer" in done.stderr
    assert "Traceback" not in done.stderr
    assert user.shown("rootsd.service", "NRestarts") == "0"
    assert {file.name: file.read_bytes() for file in store.parent.glob("decisions*")} == before


def test_a_strict_service_keeps_the_decisions_of_a_background_daemon(
    prepared: UserManager,
) -> None:
    user = prepared
    user.succeed("rootsd", "service", "install", "--strict")
    assert user.shown("rootsd.service", "PrivateUsers") == "yes"
    names = user.succeed("rootsd", "ls", "--published").split("\t")
    assert "api" in names
    user.succeed("git", "init", "-q", f"{HOME}/src/other")
    user.succeed("rootsd", "approve", f"{HOME}/src/other")
    user.succeed("rootsd", "service", "install", "--no-strict")
    assert user.shown("rootsd.service", "PrivateUsers") == "no"
    with bridge(user) as client:
        assert sorted(roots(client, "1")) == ["api", "other"]


def test_strict_is_removed_if_this_system_cannot_provide_it(
    prepared: UserManager,
) -> None:
    user = prepared
    # Without namespaces systemd ignores the option; with them it fails with 226/NAMESPACE.
    impossible = "[Service]\nReadWritePaths=/nowhere/at/all\n"
    user.run("tee", str(DROP_INS / "90-test.conf"), said=impossible)
    done = user.run("rootsd", "service", "install", "--strict")
    assert done.returncode == 0, done.stderr
    assert "cannot start with --strict; it runs without it" in done.stderr
    assert "Traceback" not in done.stderr
    assert user.shown("rootsd.service", "ActiveState") == "active"
    assert sorted(path.name for path in user.path(DROP_INS).iterdir()) == [
        "10-sockets.conf", "15-places.conf", "90-test.conf",
    ]  # fmt: skip
