"""The service files with all values filled in."""

from __future__ import annotations

import plistlib
from pathlib import Path

import pytest
from msgspec.structs import replace

from rootsd.service import unit_files
from rootsd.service.shell_scripts import shipped_folder
from rootsd.service.start_record import StartPlan
from rootsd.service.unit_files import InvalidUnitValue, UnitSettings

TOP = Path(__file__).parent.parent.parent
STATE = Path("/home/ann/.local/state/rootsd")
PLAN = StartPlan((), (), {}, STATE, Path("/home/ann/Library/Logs/rootsd"))
SETTINGS = UnitSettings(
    PLAN,
    command=Path("/home/ann/.local/bin/rootsd"),
    writable=(STATE,),
    synced=Path("/home/ann/state/sync/clients.json"),
)


def with_variables(**environment: str) -> UnitSettings:
    return replace(SETTINGS, plan=PLAN._replace(environment=environment))


EVERYTHING = replace(with_variables(XDG_STATE_HOME="/state", LANG="C"), strict=True)
AWKWARD = Path('/home/ann/my "tools" 100% \\o/é')


def test_a_checkout_uses_its_own_files() -> None:
    assert Path(shipped_folder()) == TOP


def test_the_installed_files_equal_those_of_the_repository() -> None:
    """Compare line by line. Only lines with a placeholder differ; they are listed here."""
    texts = {
        f"systemd/{name}": text for name, text in unit_files.systemd_units(EVERYTHING).items()
    }
    agents = unit_files.launchd_agents(SETTINGS)
    texts |= {f"launchd/{name}": text for name, text in agents.items()}
    held = {
        str(path.relative_to(TOP))
        for folder in ("systemd", "launchd")
        for path in (TOP / folder).rglob("*")
        if path.is_file()
    }
    assert set(texts) == held
    filled = []
    for name, text in texts.items():
        lines = (TOP / name).read_text().splitlines()
        for ours, theirs in zip(text.splitlines(), lines, strict=True):
            if "@" in theirs and "@system-service" not in theirs and "@privileged" not in theirs:
                filled.append(ours.strip())
            else:
                assert ours == theirs
    assert sorted(set(filled)) == [
        "<dict></dict>",
        "<string>/home/ann/.local/bin/rootsd</string>",
        "<string>/home/ann/Library/Logs/rootsd/daemon.log</string>",
        "<string>/home/ann/Library/Logs/rootsd/sync.log</string>",
        "ConditionPathExists=!/home/ann/.local/state/rootsd/stopped",
        "ConditionPathExists=/home/ann/state/sync/clients.json",
        "Environment=XDG_STATE_HOME=/state",
        "ExecStart=/home/ann/.local/bin/rootsd daemon",
        "ExecStart=/home/ann/.local/bin/rootsd sync run",
        "ExecStopPost=/home/ann/.local/bin/rootsd sync withdraw",
        "ReadWritePaths=/home/ann/.local/state/rootsd -%t/rootsd",
        "UnsetEnvironment=XDG_CONFIG_HOME",
    ]


def test_unrequested_parts_are_omitted_and_folders_that_only_the_manager_knows_ignored() -> None:
    units = unit_files.systemd_units(SETTINGS)
    assert list(units) == list(unit_files.BASE_UNITS)
    text = units[unit_files.PLACES_DROP_IN]
    assert text.endswith("Environment=\nUnsetEnvironment=XDG_CONFIG_HOME XDG_STATE_HOME\n")


def test_folders_of_the_shell_are_passed_on() -> None:
    places = {"XDG_CONFIG_HOME": "/my config", "XDG_STATE_HOME": "/s%1"}
    settings = with_variables(**places)
    text = unit_files.systemd_units(settings)[unit_files.PLACES_DROP_IN]
    assert 'Environment="XDG_CONFIG_HOME=/my config" "XDG_STATE_HOME=/s%%1"\n' in text
    assert text.endswith("UnsetEnvironment=\n")
    for agent in unit_files.launchd_agents(settings).values():
        assert plistlib.loads(agent.encode())["EnvironmentVariables"] == places


def test_awkward_paths_are_quoted() -> None:
    command = Path("/home/ann/my tools, 100%/é/rootsd")
    plan = PLAN._replace(folder=AWKWARD)
    awkward = replace(EVERYTHING, plan=plan, command=command, writable=(AWKWARD, Path("/b")))
    texts = unit_files.systemd_units(awkward)
    assert 'ExecStart="/home/ann/my tools, 100%%/é/rootsd" daemon\n' in texts["rootsd.service"]
    quoted = '"/home/ann/my \\"tools\\" 100%% \\\\o/é"'
    assert f"ReadWritePaths={quoted} /b -%t/rootsd\n" in texts[unit_files.STRICT_DROP_IN]
    unquoted = 'ConditionPathExists=!/home/ann/my "tools" 100%% \\o/é/stopped\n'
    assert all(unquoted in texts[name] for name in unit_files.BASE_UNITS[:3])


@pytest.mark.parametrize("character", ['"', "'", "\\"])
def test_a_program_path_that_systemd_would_reject_is_refused(character: str) -> None:
    with pytest.raises(InvalidUnitValue, match="quote or a backslash"):
        unit_files.systemd_units(replace(SETTINGS, command=Path(f"/a{character}b/rootsd")))


def test_awkward_paths_are_encoded_in_a_plist() -> None:
    awkward = Path("/Users/<ann> & co/]]>/rootsd")
    agents = unit_files.launchd_agents(replace(SETTINGS, command=awkward))
    daemon, sync = (plistlib.loads(agents[name].encode()) for name in unit_files.AGENTS)
    assert daemon["ProgramArguments"] == [str(awkward), "daemon"]
    assert sync["ProgramArguments"][-1] == str(awkward), "no part of the script of the shell"


@pytest.mark.parametrize("bad", ["/a\nExecStartPost=/bin/evil", "/a\x1b[2J", "/a\udcff"])
def test_a_path_with_a_line_break_is_refused(bad: str) -> None:
    for settings in (
        replace(SETTINGS, command=Path(bad)),
        replace(SETTINGS, plan=PLAN._replace(folder=Path(bad))),
    ):
        with pytest.raises(InvalidUnitValue):
            unit_files.systemd_units(settings)
    with pytest.raises(InvalidUnitValue):
        unit_files.launchd_agents(replace(SETTINGS, command=Path(bad)))


def test_only_files_written_by_rootsd_are_recognized(tmp_path: Path) -> None:
    file = tmp_path / "rootsd.service"
    assert not unit_files.is_generated(file)
    file.write_text("[Service]\nExecStart=/my/own\n")
    assert not unit_files.is_generated(file)
    for text in (
        *unit_files.systemd_units(EVERYTHING).values(),
        *unit_files.launchd_agents(SETTINGS).values(),
    ):
        file.write_text(text)
        assert unit_files.is_generated(file)
