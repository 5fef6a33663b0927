"""`rootsd sync` as a unit of a real `systemd --user`: no grant remains after any end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import pipx_install
from support.polling import until
from support.user_manager import HOME, UserManager, interpreter_folders, user_manager

pytestmark = pytest.mark.needs("systemd-user")

UNIT = "rootsd-sync.service"
SETTINGS = HOME / ".claude/settings.json"
DENIED = [f"Read(/{HOME}/src/secret/**)", f"Edit(/{HOME}/src/secret/**)"]
BOTH = {"deny": DENIED, "additionalDirectories": [f"{HOME}/src/api"]}


def permissions(user: UserManager) -> Any:  # noqa: ANN401 - a JSON value
    return json.loads(user.path(SETTINGS).read_text()).get("permissions", {})


@pytest.fixture(scope="module")
def synced(installation: Path) -> Iterator[UserManager]:
    """Yield a user with the service, one root, one denied project, and Claude Code synced.

    Each test leaves that behind, except the last one.
    """
    with user_manager(interpreter_folders()) as user:
        pipx_install.put_back(user, installation)
        for name in ("api", "secret"):
            user.succeed("git", "init", "-q", f"{HOME}/src/{name}")
        user.succeed("sh", "-c", f"mkdir {HOME}/.claude && echo '{{}}' >{SETTINGS}")
        user.rootsd("service", "install")
        user.rootsd("up", f"{HOME}/src")
        user.rootsd("approve", f"{HOME}/src/api", "--tag", "work")
        user.rootsd("deny", f"{HOME}/src/secret")
        user.rootsd("sync", "add", "claude-code", "--only", "tag:work")
        until(lambda: permissions(user) == BOTH)
        yield user


def test_its_unit_runs(synced: UserManager) -> None:
    def status() -> Any:  # noqa: ANN401 - a JSON value
        return json.loads(synced.rootsd("sync", "--json"))

    # `sync add` writes the list itself, so the process may start after that.
    until(lambda: str(status()["pid"]) == synced.shown(UNIT, "MainPID"))
    assert status()["warnings"] == []


def test_after_a_kill_of_everything_the_unit_withdraws_the_grants(synced: UserManager) -> None:
    """There is no restart, because it would restore the grants."""
    units = (UNIT, "rootsd.service")
    extras = [str(HOME / f".config/systemd/user/{unit}.d" / "90-test.conf") for unit in units]
    for extra in extras:
        text = "[Service]\\nRestart=no\\n"
        synced.succeed("sh", "-c", f"mkdir -p {Path(extra).parent} && printf '{text}' >{extra}")
    synced.systemctl("daemon-reload")
    pids = [synced.shown(unit, "MainPID") for unit in units]
    synced.succeed("kill", "-9", *pids)
    until(lambda: permissions(synced) == {"deny": DENIED})
    synced.succeed("rm", *extras)
    synced.systemctl("daemon-reload")
    synced.rootsd("up")
    until(lambda: permissions(synced) == BOTH)


def test_after_a_kill_it_is_restarted(synced: UserManager) -> None:
    before = synced.shown(UNIT, "MainPID")
    written = synced.path(SETTINGS).stat().st_mtime_ns
    synced.succeed("kill", "-9", before)
    until(lambda: synced.path(SETTINGS).stat().st_mtime_ns != written)  # it was withdrawn
    until(lambda: permissions(synced) == BOTH)
    assert synced.shown(UNIT, "MainPID") not in ("0", before)


def test_it_ends_with_the_daemon_and_uninstalling_removes_its_unit(synced: UserManager) -> None:
    synced.rootsd("down")
    until(lambda: permissions(synced) == {"deny": DENIED})
    until(lambda: synced.shown(UNIT, "ActiveState") == "inactive")
    synced.rootsd("sync", "rm", "claude-code")
    assert permissions(synced) == {}
    synced.rootsd("service", "uninstall")
    assert not synced.path(HOME / f".config/systemd/user/{UNIT}").exists()
