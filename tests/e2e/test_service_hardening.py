"""Each hardening directive of the units has an effect.

systemd silently accepts a directive that is misspelled, misplaced, or useless without another one,
and `systemd-analyze security` counts it. So a probe runs inside units: without directives, with
each directive alone, and with all of each tier.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from support import confinement_report, pipx_install
from support.user_manager import (
    HOME,
    RUNTIME,
    UserManager,
    interpreter_folders,
    user_manager,
)

pytestmark = pytest.mark.needs("systemd-user")

TOP = Path(__file__).parent.parent.parent
UNITS = HOME / ".config/systemd/user"
STATE = HOME / ".local/state/rootsd"
ELSEWHERE = "/tmp/elsewhere"

# Directives that do not confine the service, or cannot be tested here: the control groups of the
# test have no memory and tasks controllers, and every unit of a user manager already has its own
# session keyring.
NO_CONFINEMENT = {
    "Type", "NotifyAccess", "ExecStart", "ExecReload", "Restart", "RestartSec",
    "RestartPreventExitStatus", "TimeoutStartSec", "TimeoutStopSec", "WatchdogSec", "TasksMax",
    "MemoryHigh", "MemoryMax", "KeyringMode",
}  # fmt: skip

# The effect of each directive on the probe, alone (tier 1) or beside PrivateUsers (tier 2).
EFFECTS = {
    "UMask": {"umask": "0077"},
    "LimitCORE": {"core": "0"},
    "LimitNOFILE": {"files": "8192"},
    "NoNewPrivileges": {"no new privileges": "1"},
    "RestrictAddressFamilies": {"inet socket": "EAFNOSUPPORT"},
    "RestrictNamespaces": {"user namespace": "EPERM"},
    "RestrictRealtime": {"real time": "EPERM"},
    "RestrictSUIDSGID": {"set-user-id": "EPERM"},
    "LockPersonality": {"personality": "EPERM"},
    "MemoryDenyWriteExecute": {"writable code": "EPERM"},
    "SystemCallArchitectures": {"filters": "1"},
    "SystemCallFilter": {"priority": "EPERM"},
    "PrivateUsers": {"owner of /etc": "65534"},
    "CapabilityBoundingSet": {"capabilities": "none"},
    "ProtectSystem": {"write elsewhere": "EROFS"},
    "ProtectHome": {"write home": "EROFS", "write state": "EROFS"},
    "ReadWritePaths": {},  # reopens what the two before it close; the whole tier shows it
    "InaccessiblePaths": {"list ~/.ssh": "EACCES"},
    "PrivateNetwork": {"net namespace id": "its own"},
    "PrivateDevices": {"devices": "few"},
    "ProtectKernelTunables": {"/proc/sys": "read-only"},
    "ProtectKernelModules": {"CAP_SYS_MODULE": "no"},
    "ProtectKernelLogs": {"CAP_SYSLOG": "no"},
    "ProtectControlGroups": {"/sys/fs/cgroup": "read-only"},
    "ProtectClock": {"CAP_SYS_TIME": "no"},
    "ProtectHostname": {"uts namespace id": "its own"},
    # Without it, a forbidden call kills the daemon instead of failing.
    "SystemCallErrorNumber": {},
}

OPEN = {
    "no new privileges": "0", "filters": "0", "inet socket": "ok", "unix socket": "ok",
    "user namespace": "ok", "real time": "EINVAL", "set-user-id": "ok", "personality": "ok",
    "writable code": "ok", "priority": "ok", "landlock": "ok", "owner of /etc": "0",
    "list ~/.ssh": "ok", "devices": "all", "/proc/sys": "writable", "/sys/fs/cgroup": "writable",
    "write home": "ok", "write state": "ok", "write elsewhere": "ok",
}  # fmt: skip
TIER_ONE = OPEN | {
    "no new privileges": "1", "umask": "0077", "core": "0", "files": "8192",
    "inet socket": "EAFNOSUPPORT", "user namespace": "EPERM", "real time": "EPERM",
    "set-user-id": "EPERM", "personality": "EPERM", "writable code": "EPERM",
    "priority": "EPERM",
}  # fmt: skip
TIER_TWO = TIER_ONE | {
    "capabilities": "none", "owner of /etc": "65534", "list ~/.ssh": "EACCES",
    "devices": "few", "/proc/sys": "read-only", "/sys/fs/cgroup": "read-only",
    "write home": "EROFS", "write elsewhere": "EROFS",
}  # fmt: skip

Found = Mapping[str, str]


def directives(file: str) -> list[str]:
    """Return the lines of the repository's unit that confine the daemon."""
    text = (TOP / "systemd" / file).read_text().replace("@WRITABLE@", str(STATE))
    _, _, section = text.partition("[Service]\n")
    lines = section.partition("\n[")[0].splitlines()
    return [
        line
        for line in lines
        if line and not line.startswith("#") and line.partition("=")[0] not in NO_CONFINEMENT
    ]


ONE, TWO = directives("rootsd.service"), directives("rootsd.service.d/20-namespaces.conf")


@pytest.fixture(scope="module")
def user() -> Iterator[UserManager]:
    """Yield a user with secret files."""
    with user_manager(interpreter_folders()) as user:
        user.succeed("mkdir", "-p", str(STATE), str(HOME / ".ssh"), str(UNITS), ELSEWHERE)
        program = Path(confinement_report.__file__).read_text()
        user.run("tee", str(HOME / "probe.py"), said=program)
        yield user


def probed(user: UserManager, cases: Mapping[str, list[str]]) -> dict[str, Found | None]:
    """Return the probe's findings in a unit for each case; None if the unit fails."""
    units = {case: f"probe-{number}" for number, case in enumerate(cases)}
    folders = f"home={HOME} state={STATE} elsewhere={ELSEWHERE}"
    for case, unit in units.items():
        lines = [
            "[Service]",
            "Type=oneshot",
            f"ExecStart={pipx_install.interpreter()} -IS {HOME}/probe.py {folders}",
            f"StandardOutput=truncate:{RUNTIME}/{unit}.json",
            "StandardError=null",
            *cases[case],
        ]
        user.path(UNITS / f"{unit}.service").write_text("\n".join(lines) + "\n")
        user.path(RUNTIME / f"{unit}.json").unlink(missing_ok=True)
    user.systemctl("daemon-reload")
    user.run("systemctl", "--user", "start", *(f"{unit}.service" for unit in units.values()))
    texts = {case: user.path(RUNTIME / f"{unit}.json") for case, unit in units.items()}
    return {case: json.loads(file.read_text() or "null") for case, file in texts.items()}


def test_every_directive_is_covered() -> None:
    named = {line.partition("=")[0] for line in (*ONE, *TWO)}
    assert named == set(EFFECTS)


def test_each_directive_has_its_effect(user: UserManager) -> None:
    together = [line for line in ONE if line.startswith("SystemCall")]
    cases = {"nothing": [], "users": ["PrivateUsers=yes"]}
    for line in ONE:
        name = line.partition("=")[0]
        cases[name] = together if name == "SystemCallFilter" else [line]
    for line in TWO:
        cases[line.partition("=")[0]] = ["PrivateUsers=yes", line]
    cases["no error number"] = [line for line in together if "ErrorNumber" not in line]
    found = probed(user, cases)

    bare, users = found["nothing"], found["users"]
    assert bare is not None
    assert users is not None
    assert OPEN.items() <= bare.items()  # the control: without directives everything is possible
    assert found["no error number"] is None
    strict = {line.partition("=")[0] for line in TWO}
    for name, effects in EFFECTS.items():
        seen, before = found[name], users if name in strict - {"PrivateUsers"} else bare
        assert seen is not None, name
        for what, expected in effects.items():
            assert before[what] != seen[what], (name, what)
            assert expected in (seen[what], "its own"), (name, what)


def test_each_tier_removes_its_rights_and_keeps_what_the_daemon_needs(
    user: UserManager,
) -> None:
    found = probed(user, {"one": ONE, "two": [*ONE, *TWO]})
    for tier, expected in (("one", TIER_ONE), ("two", TIER_TWO)):
        seen = found[tier]
        assert seen is not None, tier
        wanted = {what: word for what, word in expected.items() if what != "filters"}
        assert {what: seen[what] for what in wanted} == wanted
