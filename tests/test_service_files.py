"""The service files: known sections and keys, values of the right type, and our command."""

from __future__ import annotations

import os
import plistlib
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rootsd.service.start_record import StartPlan
from rootsd.service.unit_files import UnitSettings, systemd_units

TOP = Path(__file__).parent.parent
SYSTEMD = TOP / "systemd"
PLIST = TOP / "launchd" / "org.rootsd.daemon.plist"
PLISTS = (PLIST, TOP / "launchd" / "org.rootsd.sync.plist")
UNITS = sorted(path for path in SYSTEMD.rglob("*") if path.is_file())

# systemd.unit(5), systemd.service(5), systemd.socket(5), systemd.exec(5), systemd.kill(5) and
# systemd.resource-control(5) of systemd 252: the keys that we use. PrivateTmp, RuntimeDirectory,
# and StateDirectory stay off: each hides parents, removes our sockets, or names a folder that
# differs between versions of systemd.
KEYS = {
    "Unit": {
        "After", "ConditionPathExists", "Description", "PartOf", "Requires",
        "StartLimitBurst", "StartLimitIntervalSec", "Wants",
    },
    "Install": {"WantedBy"},
    "Socket": {
        "Backlog", "DirectoryMode", "FileDescriptorName", "ListenStream", "RemoveOnStop",
        "Service", "SocketMode",
    },
    "Service": {
        "CapabilityBoundingSet", "Environment", "ExecReload", "ExecStart", "ExecStopPost",
        "InaccessiblePaths",
        "KeyringMode", "LimitCORE", "LimitNOFILE", "LockPersonality", "MemoryDenyWriteExecute",
        "MemoryHigh", "MemoryMax",
        "NoNewPrivileges", "NotifyAccess", "PrivateDevices", "PrivateNetwork", "PrivateUsers",
        "ProtectClock", "ProtectControlGroups", "ProtectHome", "ProtectHostname",
        "ProtectKernelLogs", "ProtectKernelModules", "ProtectKernelTunables", "ProtectSystem",
        "ReadWritePaths", "Restart", "RestartPreventExitStatus", "RestartSec",
        "RestrictAddressFamilies",
        "RestrictNamespaces", "RestrictRealtime", "RestrictSUIDSGID", "Sockets",
        "SystemCallArchitectures", "SystemCallErrorNumber", "SystemCallFilter", "TasksMax",
        "TimeoutStartSec", "TimeoutStopSec", "Type", "UMask", "UnsetEnvironment", "WatchdogSec",
    },
}  # fmt: skip


# launchd.plist(5): the keys that we use.
LAUNCHD_TYPES: dict[str, type] = {
    "Label": str,
    "ProgramArguments": list,
    "EnvironmentVariables": dict,
    "RunAtLoad": bool,
    "KeepAlive": dict,
    "ProcessType": str,
    "ThrottleInterval": int,
    "ExitTimeOut": int,
    "Umask": int,
    "SoftResourceLimits": dict,
    "StandardOutPath": str,
    "StandardErrorPath": str,
}

Entries = list[tuple[str, str, str]]


def _parsed(text: str) -> Entries:
    """Section, key and value of each line of a unit; raises `ValueError` on any other line."""
    entries: Entries = []
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line or line.startswith(("#", ";")):
            continue
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
            continue
        key, equals, value = line.partition("=")
        if not (section and equals and key.isalnum()):
            message = f"line {number} is neither a section nor a setting: {line!r}"
            raise ValueError(message)
        entries.append((section, key, value))
    return entries


def _values(unit: Path, key: str) -> list[str]:
    return [value for _, name, value in _parsed(unit.read_text()) if name == key]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_unit_holds_only_known_settings(unit: Path) -> None:
    entries = _parsed(unit.read_text())
    unknown = [(section, key) for section, key, _ in entries if key not in KEYS.get(section, ())]
    assert entries
    assert unknown == []


def test_the_installer_expects_exactly_these_units() -> None:
    assert [str(unit.relative_to(SYSTEMD)) for unit in UNITS] == [
        "rootsd-control.socket",
        "rootsd-sync.service",
        "rootsd.service",
        "rootsd.service.d/10-sockets.conf",
        "rootsd.service.d/15-places.conf",
        "rootsd.service.d/20-namespaces.conf",
        "rootsd.socket",
    ]


def test_the_service_runs_the_daemon_of_the_installation() -> None:
    assert _values(SYSTEMD / "rootsd.service", "ExecStart") == ["@ROOTSD@ daemon"]


def test_the_service_works_without_its_sockets() -> None:
    keys = {key for _, key, _ in _parsed((SYSTEMD / "rootsd.service").read_text())}
    assert keys.isdisjoint({"Requires", "BindsTo", "Sockets"})


@pytest.mark.parametrize(
    ("unit", "socket"),
    [
        ("rootsd.socket", "%t/rootsd/pub/mcp.sock"),
        ("rootsd-control.socket", "%t/rootsd/ctl/control.sock"),
    ],
)
def test_sockets_are_private_and_start_the_one_service(unit: str, socket: str) -> None:
    path = SYSTEMD / unit
    assert _values(path, "ListenStream") == [socket]
    assert _values(path, "SocketMode") == ["0600"]
    assert _values(path, "DirectoryMode") == ["0700"]
    assert _values(path, "Service") == ["rootsd.service"]


@pytest.mark.parametrize(
    "text", ["ExecStart=/bin/true", "[Service]\nExecStart /bin/true", "[Service\nType=simple"]
)
def test_a_broken_unit_is_found(text: str) -> None:
    with pytest.raises(ValueError, match="neither a section nor a setting"):
        _parsed(text)


@pytest.mark.parametrize("plist", PLISTS, ids=lambda plist: plist.stem)
def test_plist_holds_known_keys_of_the_right_type(plist: Path) -> None:
    agent = plistlib.loads(plist.read_bytes())
    types = {key: type(value) for key, value in agent.items()}
    assert types.items() <= LAUNCHD_TYPES.items()
    assert LAUNCHD_TYPES.keys() - types.keys() <= {"SoftResourceLimits"}


def test_the_agent_runs_the_daemon_of_the_installation() -> None:
    agent = plistlib.loads(PLIST.read_bytes())
    assert agent["ProgramArguments"] == ["@ROOTSD@", "daemon"]


@pytest.mark.parametrize("plist", PLISTS, ids=lambda plist: plist.stem)
def test_agent_is_restarted_until_it_exits_successfully(plist: Path) -> None:
    agent = plistlib.loads(plist.read_bytes())
    assert agent["Label"] == plist.stem
    assert agent["RunAtLoad"] is True
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    assert agent["ProcessType"] == "Background"
    assert agent["Umask"] == 0o077


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that exists, in an awkward place."""
    program = tmp_path / "my tools, 100% é" / "rootsd"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def _install(folder: Path, program: Path, *, strict: bool = False) -> Path:
    """The units as `rootsd service install` leaves them."""
    settings = UnitSettings(
        StartPlan((), (), {"XDG_STATE_HOME": "/a state"}, folder, folder),
        command=program,
        writable=(Path("/var/tmp"),),
        synced=Path("/home/ann/state/sync/clients.json"),
        strict=strict,
    )
    for name, text in systemd_units(settings).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def installed(tmp_path: Path, program: Path) -> Path:
    return _install(tmp_path / "units", program, strict=True)


def _verified(units: Path) -> str:
    """What systemd itself finds wrong with the three units together."""
    names = ("rootsd.service", "rootsd.socket", "rootsd-control.socket")
    # systemd also loads the units of other programs, such as gpg-agent.socket. The paths of their
    # sockets are below the runtime folder, and must fit.
    with TemporaryDirectory() as short:
        run = subprocess.run(
            ["systemd-analyze", "verify", "--user", "--man=no", "--recursive-errors=one"]
            + [str(units / name) for name in names],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "HOME": str(units), "XDG_RUNTIME_DIR": short},
        )
    ours = [line for line in run.stderr.splitlines() if str(units) in line or "rootsd" in line]
    return "\n".join(ours) if ours or run.returncode == 0 else run.stderr


@pytest.mark.needs("systemd-analyze")
def test_systemd_finds_nothing_wrong(installed: Path) -> None:
    assert _verified(installed) == ""


@pytest.mark.needs("systemd-analyze")
def test_systemd_finds_a_planted_fault(installed: Path) -> None:
    service = installed / "rootsd.service"
    service.write_text(service.read_text().replace("Type=notify", "Type=announce"))
    assert "announce" in _verified(installed)


def _exposure(units: Path) -> float:
    """How exposed systemd finds the service: 0 is best, 10 worst."""
    run = subprocess.run(
        ["systemd-analyze", "security", "--user", "--offline=true", "--no-pager",
         str(units / "rootsd.service")],
        capture_output=True, text=True, check=False,
        env={**os.environ, "HOME": str(units), "XDG_RUNTIME_DIR": str(units)},
    )  # fmt: skip
    found = re.search(r"Overall exposure level for rootsd.service: ([0-9.]+)", run.stdout)
    assert found, run.stdout + run.stderr
    return float(found[1])


@pytest.mark.needs("systemd-analyze")
def test_each_tier_reaches_its_score(tmp_path: Path, program: Path) -> None:
    """The score proves no effect; tests/e2e/test_service_hardening.py tests the effects."""
    plain = _install(tmp_path / "plain", program)
    strict = _install(tmp_path / "strict", program, strict=True)
    bare = _install(tmp_path / "bare", program)
    (bare / "rootsd.service").write_text("[Service]\nExecStart=/bin/true\n")
    assert _exposure(plain) <= 6.0
    assert _exposure(strict) <= 1.5
    assert _exposure(bare) > 9
