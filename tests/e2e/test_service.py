"""The service under a real `systemd --user`, using only the documented commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import pipx_install
from support.polling import until
from support.user_manager import (
    HOME,
    LINK,
    RUNTIME,
    UserManager,
    interpreter_folders,
    user_manager,
)

pytestmark = pytest.mark.needs("systemd-user")

UNITS = HOME / ".config/systemd/user"
SERVICE = UNITS / "rootsd.service"


@pytest.fixture(scope="module")
def anybody(installation: Path) -> Iterator[UserManager]:
    """Yield the user of all tests."""
    with user_manager(interpreter_folders()) as user:
        pipx_install.put_back(user, installation)
        yield user


@pytest.fixture
def user(anybody: UserManager) -> UserManager:
    """Return a user without a service, a daemon, and projects."""
    anybody.rootsd("service", "uninstall", "--purge")
    anybody.succeed("rm", "-rf", f"{HOME}/src", f"{HOME}/work", f"{HOME}/.config")
    anybody.let_any_program_decide()
    return anybody


@pytest.fixture
def installed(anybody: UserManager) -> UserManager:
    """Return a user with a service that publishes the repository `api`."""
    if not anybody.path(SERVICE).exists():
        anybody.let_any_program_decide()
        anybody.rootsd("service", "install")
        approve(anybody, "api")
    return anybody


def approve(user: UserManager, name: str) -> None:
    """Create a repository with that name below ~/src, and publish it."""
    user.succeed("git", "init", "-q", f"{HOME}/src/{name}")
    user.rootsd("up", f"{HOME}/src")
    user.rootsd("approve", f"{HOME}/src/{name}")


def files(user: UserManager) -> set[str]:
    """Return all files in the home except the sources."""
    found = user.succeed("find", str(HOME), "-path", f"{HOME}/src", "-prune", "-o", "-print")
    return set(found.splitlines())


def is_socket(user: UserManager, name: str) -> bool:
    return user.path(RUNTIME / "rootsd" / name).is_socket()


def test_the_service_from_installation_to_removal(user: UserManager) -> None:
    before = files(user)
    approve(user, "api")
    background = json.loads(user.rootsd("status", "--json"))["daemon"]["pid"]

    said = user.run("rootsd", "service", "install")
    assert said.returncode == 0, said.stderr
    assert "The service is installed" in said.stderr
    pid = int(user.shown("rootsd.service", "MainPID"))
    assert pid not in (0, background)
    assert user.published() == ["api"]
    text = user.path(SERVICE).read_text()
    assert f"ExecStart={LINK} daemon\n" in text
    assert user.shown("rootsd.service", "StatusText") == "1 published, 0 pending, 0 connected"
    assert user.shown("rootsd.service", "UnitFileState") == "enabled"
    units = sorted(path for path in user.path(UNITS).rglob("*.s*") if not path.is_symlink())
    verified = user.run("systemd-analyze", "--user", "verify", "--man=no", *(
        str(UNITS / path.name) for path in units if path.is_file()
    ))  # fmt: skip
    assert (verified.returncode, "rootsd" in verified.stderr) == (0, False), verified.stderr

    user.rootsd("service", "install")
    assert int(user.shown("rootsd.service", "MainPID")) == pid

    state = json.loads(user.rootsd("service", "status", "--json"))
    assert (state["active"], state["sockets"], state["warnings"]) == ("active", True, [])

    user.rootsd("service", "uninstall")
    assert user.run("systemctl", "--user", "is-active", "rootsd.service").stdout == "inactive\n"
    assert not is_socket(user, "pub/mcp.sock")
    places = (f"{HOME}/.local/state", f"{HOME}/.local/share/rootsd", f"{HOME}/.config/rootsd")
    left = {path for path in files(user) - before if not path.startswith(places)}
    assert left <= {f"{HOME}/.config"}
    user.rootsd("up")
    assert user.published() == ["api"]  # the decisions are still there
    user.succeed("rootsd", "service", "uninstall", "--purge")
    assert files(user) - before <= {f"{HOME}/.config", f"{HOME}/.local/state"}
    assert not user.path(RUNTIME / "rootsd").exists()


def test_a_client_starts_it_and_after_a_down_it_stays_down(installed: UserManager) -> None:
    user = installed
    user.systemctl("stop", "rootsd.service")
    assert user.published() == ["api"]  # the socket started it
    assert user.shown("rootsd.service", "Result") == "success"

    user.rootsd("down")
    for _ in range(2):
        assert user.run_rootsd("status").returncode == 69
        user.systemctl("start", "rootsd.service", "rootsd.socket")  # as a login does
        assert user.shown("rootsd.service", "ActiveState") == "inactive"
        assert not is_socket(user, "pub/mcp.sock")
    bridge = user.run("rootsd", "bridge", said='{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert "rootsd up" in bridge.stdout

    user.rootsd("up")
    assert user.shown("rootsd.service", "ActiveState") == "active"
    user.rootsd("service", "stop")
    assert user.run_rootsd("service", "status").returncode == 69
    user.rootsd("service", "start")
    assert user.published() == ["api"]


def test_a_reload_reads_the_configuration_without_a_restart(installed: UserManager) -> None:
    user = installed
    pid = user.shown("rootsd.service", "MainPID")
    user.succeed("mkdir", f"{HOME}/work")
    config = user.path(HOME / ".config/rootsd/config.toml")
    config.write_text(config.read_text() + f'\n[[parent]]\npath = "{HOME}/work"\n')
    user.systemctl("reload", "rootsd.service")

    def paths() -> list[str]:
        status = json.loads(user.rootsd("status", "--json"))
        return [parent["path"] for parent in status["parents"]]

    assert until(lambda: len(paths()) == 2)
    assert paths() == [f"{HOME}/src", f"{HOME}/work"]
    assert user.shown("rootsd.service", "MainPID") == pid
    assert user.shown("rootsd.service", "ActiveState") == "active"


def test_with_an_invalid_configuration_it_is_given_up_and_everybody_gets_the_reason(
    installed: UserManager,
) -> None:
    user = installed
    config = user.path(HOME / ".config/rootsd/config.toml")
    whole = config.read_text()
    override = UNITS / "rootsd.service.d/90-test.conf"
    few = "[Unit]\nStartLimitBurst=2\n"  # as in the unit, but sooner
    user.run("tee", str(override), said=few)
    user.systemctl("daemon-reload")
    user.systemctl("reset-failed", "rootsd.service")  # forget the starts of other tests
    config.write_text("[[parent]\n")
    user.run("kill", "-KILL", user.shown("rootsd.service", "MainPID"))
    bridge = user.run("rootsd", "bridge", said='{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert "config.toml" in bridge.stdout
    assert user.shown("rootsd.service", "ActiveState") == "failed"
    assert user.shown("rootsd.socket", "Result") == "service-start-limit-hit"
    for words in (("up",), ("service", "install")):
        done = user.run_rootsd(*words)
        assert done.returncode != 0
        assert "config.toml" in done.stderr
        assert "Traceback" not in done.stderr

    user.succeed("rm", str(override))
    config.write_text(whole)
    user.rootsd("service", "install")
    assert user.published() == ["api"]


def test_shells_that_differ_in_xdg_variables_have_one_daemon_and_one_store(
    user: UserManager,
) -> None:
    """The manager does not know the variables of the shell's startup file; neither do cron and
    ssh.
    """
    before = files(user)
    set_up = {"XDG_CONFIG_HOME": f"{HOME}/my conf", "XDG_STATE_HOME": f"{HOME}/state"}
    user.succeed("git", "init", "-q", f"{HOME}/src/api")
    user.succeed("mkdir", f"{HOME}/work")
    for words in ("service install", f"up {HOME}/src", f"approve {HOME}/src/api"):
        # This configuration has the guard on, and it knows the program.
        done = user.run(str(LINK), *words.split(), environment=set_up)
        assert done.returncode == 0, done.stderr
    assert user.path(SERVICE).exists()  # where the manager looks
    assert user.path(HOME / "state/rootsd/decisions.db").exists()

    user.rootsd("parent", "add", f"{HOME}/work")
    parents = json.loads(user.rootsd("status", "--json"))["parents"]
    assert [parent["path"] for parent in parents] == [f"{HOME}/src", f"{HOME}/work"]
    assert user.run_rootsd("service", "status").stderr == ""
    assert user.published() == ["api"]

    other = {"XDG_CONFIG_HOME": f"{HOME}/other"}
    for words in (f"parent rm {HOME}/work", "up"):
        done = user.run_rootsd(*words.split(), environment=other)
        assert done.returncode == 78
        assert f"started with {HOME}/my conf" in done.stderr
    assert not user.path(HOME / "other").exists()
    user.rootsd("service", "uninstall", "--purge")
    left = {f"{HOME}/{name}" for name in ("my conf", "state", "work", ".config", ".local/state")}
    assert files(user) - before <= left


def test_a_manager_with_its_own_xdg_variable_gets_the_units_where_it_looks(
    installation: Path,
) -> None:
    with user_manager(interpreter_folders(), f"XDG_CONFIG_HOME={HOME}/conf") as user:
        pipx_install.put_back(user, installation)
        config = user.path(HOME / ".config/rootsd/config.toml")
        user.succeed("mkdir", "-p", f"{HOME}/.config/rootsd", f"{HOME}/src")
        config.write_text(f'[[parent]]\npath = "{HOME}/src"\n')
        user.rootsd("service", "install")
        assert user.path(HOME / "conf/systemd/user/rootsd.service").exists()
        assert user.shown("rootsd.service", "ActiveState") == "active"
        status = json.loads(user.rootsd("status", "--json"))
        assert [parent["path"] for parent in status["parents"]] == [f"{HOME}/src"]  # as before
        user.rootsd("service", "uninstall")
        assert not user.path(HOME / "conf/systemd").exists()


def test_without_a_bus_it_says_what_to_do(user: UserManager) -> None:
    bus = user.path(RUNTIME / "systemd").rename(user.path(RUNTIME / "gone"))
    done = user.run_rootsd("service", "install")
    assert (done.returncode, done.stdout) == (1, "")
    assert "enable-linger" in done.stderr
    assert "Traceback" not in done.stderr
    assert "ExecStart=" in user.rootsd("service", "print")
    assert not user.path(UNITS).exists()
    user.succeed("git", "init", "-q", f"{HOME}/src/api")
    user.rootsd("up", f"{HOME}/src")  # works without a service
    user.rootsd("down")
    bus.rename(user.path(RUNTIME / "systemd"))
