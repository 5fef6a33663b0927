"""`rootsd sync` as a unit of a real `systemd --user`: no grant remains after any end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.polling import until
from support.user_manager import HOME, UserManager

pytestmark = pytest.mark.needs("systemd-user")

UNIT = "rootsd-sync.service"
SETTINGS = HOME / ".claude/settings.json"
DENIED = [f"Read(/{HOME}/src/secret/**)", f"Edit(/{HOME}/src/secret/**)"]
BOTH = {"deny": DENIED, "additionalDirectories": [f"{HOME}/src/api"]}


def permissions(user: UserManager) -> Any:  # noqa: ANN401 - a JSON value
    return json.loads(user.path(SETTINGS).read_text()).get("permissions", {})


@pytest.fixture
def synced(user: UserManager) -> UserManager:
    """Yield a user with the service, one root, one denied project, and Claude Code synced."""
    for name in ("api", "secret"):
        user.succeed("git", "init", "-q", f"{HOME}/src/{name}")
    user.succeed("sh", "-c", f"mkdir {HOME}/.claude && echo '{{}}' >{SETTINGS}")
    user.succeed("rootsd", "service", "install")
    user.succeed("rootsd", "up", f"{HOME}/src")
    user.succeed("rootsd", "approve", f"{HOME}/src/api", "--tag", "work")
    user.succeed("rootsd", "deny", f"{HOME}/src/secret")
    user.succeed("rootsd", "sync", "add", "claude-code", "--only", "tag:work")
    until(lambda: permissions(user) == BOTH)
    return user


def test_its_unit_runs_and_ends_with_the_daemon(synced: UserManager) -> None:
    status = json.loads(synced.succeed("rootsd", "sync", "--json"))
    assert str(status["pid"]) == synced.shown(UNIT, "MainPID")
    assert status["warnings"] == []
    synced.succeed("rootsd", "down")
    until(lambda: permissions(synced) == {"deny": DENIED})
    until(lambda: synced.shown(UNIT, "ActiveState") == "inactive")
    synced.succeed("rootsd", "up")
    until(lambda: permissions(synced) == BOTH)


def test_after_a_kill_of_everything_the_unit_withdraws_the_grants(synced: UserManager) -> None:
    """There is no restart, because it would restore the grants."""
    for unit in (UNIT, "rootsd.service"):
        folder = HOME / f".config/systemd/user/{unit}.d"
        text = "[Service]\\nRestart=no\\n"
        synced.succeed("sh", "-c", f"mkdir -p {folder} && printf '{text}' >{folder}/90-test.conf")
    synced.systemctl("daemon-reload")
    pids = [synced.shown(unit, "MainPID") for unit in (UNIT, "rootsd.service")]
    synced.succeed("kill", "-9", *pids)
    until(lambda: permissions(synced) == {"deny": DENIED})


def test_after_a_kill_it_is_restarted(synced: UserManager) -> None:
    before = synced.shown(UNIT, "MainPID")
    synced.succeed("kill", "-9", before)
    until(lambda: synced.shown(UNIT, "MainPID") not in ("0", before))
    until(lambda: permissions(synced) == BOTH)


def test_uninstalling_removes_its_unit(synced: UserManager) -> None:
    synced.succeed("rootsd", "sync", "rm", "claude-code")
    assert permissions(synced) == {}
    synced.succeed("rootsd", "service", "uninstall")
    assert not synced.path(HOME / f".config/systemd/user/{UNIT}").exists()
