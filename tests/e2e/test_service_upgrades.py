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
from support.sizes import Sizes
from support.user_manager import (
    ENVIRONMENT,
    HANG_GUARD_S,
    HOME,
    UserManager,
    interpreter_folders,
    user_manager,
)

pytestmark = pytest.mark.needs("systemd-user")

NEXT, LAST = "99.0.0", "99.1.0"
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
UNITS = HOME / ".config/systemd/user"
DROP_INS = UNITS / "rootsd.service.d"


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory, installation: Path) -> dict[str, Path]:
    """Return the files of the homes of users who have newer versions."""
    homes = {version: tmp_path_factory.mktemp("newer") / "home" for version in (NEXT, LAST)}
    for version, home in homes.items():
        subprocess.run(["cp", "-a", installation, home], check=True)
        pipx_install.set_version(home, version)
    return homes


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


def published(user: UserManager) -> list[str]:
    """Return the names of all roots, without an MCP client. For the first such client, a daemon
    loads the MCP SDK, which takes longer than its start.
    """
    items = json.loads(user.rootsd("ls", "--published", "--json"))["items"]
    return [item["name"] for item in items]


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
    status: dict[str, object] = json.loads(user.rootsd("status", "--json"))["daemon"]
    return status


def test_a_newer_command_replaces_the_daemon_under_a_session_and_an_older_one_does_not(
    installed: UserManager, installation: Path, newer: dict[str, Path]
) -> None:
    user = installed
    with bridge(user) as client:
        assert roots(client, "before") == ["api"]
        first = daemon(user)
        change_to(user, newer[NEXT])
        assert roots(client, "meanwhile") == ["api"]
        with bridge(user) as of_the_next:
            assert roots(of_the_next, "of the daemon before") == ["api"]
        assert "rootsd up" in user.run_rootsd("version").stderr
        user.rootsd("tag", "api", "newer")
        assert daemon(user) == first  # nothing is restarted without being asked

        said = user.run("rootsd", "up")
        assert said.returncode == 0, said.stderr
        assert f"is version {rootsd.__version__}; starting {NEXT} instead" in said.stderr
        second = daemon(user)
        assert (second["version"], user.shown("rootsd.service", "ActiveState")) == (NEXT, "active")
        assert int(user.shown("rootsd.service", "MainPID")) == second["pid"]
        assert roots(client, "after") == ["api"]
        assert "version" not in user.rootsd("service", "status")

        change_to(user, installation)
        said = user.run_rootsd("up")
        assert said.returncode == 0, said.stderr
        assert "newer than this command" in said.stderr
        assert daemon(user) == second
        assert roots(client, "at last") == ["api"]
        with bridge(user) as older:
            assert roots(older, "of the newer daemon") == ["api"]
        user.rootsd("tag", "api", "older")
        assert user.rootsd("tag").split() == ["newer", "1", "older", "1"]

    change_to(user, newer[LAST])
    up_on_a_terminal(user, "")  # on a terminal it asks first, and Enter means yes
    assert daemon(user)["version"] == LAST
    change_to(user, installation)


def test_an_older_store_is_migrated_after_a_backup_and_a_newer_one_is_refused_unchanged(
    installed: UserManager,
) -> None:
    user = installed
    user.rootsd("down")
    store = user.path(STORE)
    # As version 0.1.0 leaves it: without a binding, and without a second anchor.
    user.succeed("python3", "-c", AS_0_1_0, str(STORE), str(BINDING_SINCE - 1))
    (anchor,) = user.path(HOME / ".local/share/rootsd").iterdir()
    anchor.unlink()
    older = store.read_bytes()

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

    store.write_bytes(older)
    backups = store.parent / "backups"
    kept = set(backups.glob("*"))
    user.rootsd("service", "start")
    assert version_of(store) == NEWEST
    assert anchor.exists()
    made = set(backups.glob("*")) - kept
    assert BINDING_SINCE - 1 in map(version_of, made)
    assert published(user) == ["api"]


def test_the_units_of_0_1_0_run_the_new_daemon_until_an_install_updates_them(
    installation: Path, sizes: Sizes
) -> None:
    strict = {name: text for name, text in unit_texts().items() if not name.endswith(".plist")}
    plain = {name: text for name, text in strict.items() if "namespaces" not in name}
    for old in sizes.pick(test=(strict,), check=(strict, plain), soak=(strict, plain)):
        with user_manager(interpreter_folders()) as user:
            pipx_install.put_back(user, installation)
            user.succeed("git", "init", "-q", f"{HOME}/src/api")
            user.succeed("mkdir", "-p", str(DROP_INS))
            for name, text in old.items():
                user.run("tee", str(UNITS / name), said=text.replace("/home/ann", str(HOME)))
            user.systemctl("daemon-reload")
            user.systemctl("enable", "--now", "rootsd.socket", "rootsd-control.socket")
            user.rootsd("up", f"{HOME}/src")
            user.rootsd("approve", f"{HOME}/src/api")
            assert user.shown("rootsd.service", "ActiveState") == "active"
            with bridge(user) as client:
                assert roots(client, "1") == ["api"]
            assert OLDER_UNITS in user.run_rootsd("doctor").stdout
            assert is_restored_state_undetected(user) == (old is strict)
            user.rootsd("service", "install")
            assert published(user) == ["api"]
            assert OLDER_UNITS not in user.run_rootsd("doctor").stdout
            assert not is_restored_state_undetected(user)
            assert user.path(UNITS / "rootsd-sync.service").exists()


def is_restored_state_undetected(user: UserManager) -> bool:
    degraded = json.loads(user.rootsd("status", "--json"))["degraded"]
    return any("A restored state folder would not be detected" in line for line in degraded)


def test_a_strict_service_keeps_the_decisions(installed: UserManager) -> None:
    user = installed
    user.rootsd("service", "install", "--strict")
    assert user.shown("rootsd.service", "PrivateUsers") == "yes"
    assert published(user) == ["api"]
    user.succeed("git", "init", "-q", f"{HOME}/src/other")
    user.rootsd("approve", f"{HOME}/src/other")
    user.rootsd("service", "install", "--no-strict")
    assert user.shown("rootsd.service", "PrivateUsers") == "no"
    assert published(user) == ["api", "other"]
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
