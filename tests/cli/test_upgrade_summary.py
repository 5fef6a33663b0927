"""The summary of an upgrade: once by itself, and again with `rootsd version`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rootsd.cli import installer
from rootsd.core.errors import ErrorCode
from rootsd.service import detect, unit_files
from rootsd.service.launchd import Launchd
from rootsd.service.manager import ProgramResult
from support.fake_daemon import FakeDaemon, Objection, a_listing, a_status
from support.release_files import COMMAND, copy_home, unit_texts
from support.sample_answers import UPGRADE as SAMPLE
from support.terminal import Shell

UPGRADE: dict[str, Any] = {**SAMPLE, "from_release": "0.1.0"}
FIRST = "upgraded   from 0.1.0"


@pytest.fixture
def upgraded(daemon: FakeDaemon, home: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDaemon:
    """A daemon whose store was upgraded, and the clients of a person who used 0.1.0.

    Their entries do not set ROOTSD_DIR, so this shell must not seem to set it either.
    """
    monkeypatch.setattr("rootsd.cli.upgrade_summary.overriding_folder", lambda: None)
    copy_home(home)
    daemon.answers["status"] = a_status()
    daemon.answers["projects"] = a_listing()
    daemon.answers["news"] = {
        "revision": 7, "new": 0, "wanted": [], "upgraded": True, "warnings": [],
    }  # fmt: skip
    daemon.answers["upgrade"] = {"revision": 7, "upgrade": UPGRADE, "warnings": []}
    return daemon


def clients(shell: Shell) -> dict[tuple[str, str], dict[str, Any]]:
    found = json.loads(shell.run("version", "--json").out)["upgrade"]["clients"]
    return {(item["client"], item["entry"]): item for item in found}


@pytest.mark.parametrize("verb", ["ls", "status"])
def test_the_first_command_on_a_terminal_prints_it(
    upgraded: FakeDaemon, shell: Shell, verb: str
) -> None:
    shown = shell.run_on_terminal(verb).out
    assert FIRST in shown
    assert upgraded.asked("upgrade") == [{"is_look": True}]


@pytest.mark.parametrize("words", [("ls", "-q"), ("ls", "--json")])
def test_quiet_and_json_suppress_it(
    upgraded: FakeDaemon, shell: Shell, words: tuple[str, ...]
) -> None:
    assert FIRST not in shell.run_on_terminal(*words).out
    assert upgraded.asked("upgrade") == []


def test_in_a_pipe_it_is_neither_printed_nor_seen(upgraded: FakeDaemon, shell: Shell) -> None:
    for words in (("ls",), ("version",)):
        done = shell.run(*words)
        assert FIRST not in done.out + done.err
    assert upgraded.asked("upgrade") == []


def test_a_summary_that_was_seen_is_not_printed_by_itself(
    upgraded: FakeDaemon, shell: Shell
) -> None:
    upgraded.answers["news"] = {"revision": 7, "new": 0, "wanted": [], "warnings": []}
    assert FIRST not in shell.run_on_terminal("ls").out
    assert FIRST in shell.run_on_terminal("version").out


def test_without_an_upgrade_version_prints_only_versions(
    upgraded: FakeDaemon, shell: Shell
) -> None:
    upgraded.answers["upgrade"] = {"revision": 7, "upgrade": None, "warnings": []}
    assert len(shell.run_on_terminal("version").out.splitlines()) == 2
    assert json.loads(shell.run("version", "--json").out)["upgrade"] is None


def test_a_daemon_that_lacks_the_query_causes_no_error(upgraded: FakeDaemon, shell: Shell) -> None:
    upgraded.answers["upgrade"] = Objection(ErrorCode.USAGE, "this daemon does not know it")
    done = shell.run("version", "--json")
    assert (done.status, json.loads(done.out)["upgrade"]) == (0, None)


def test_it_counts_the_decisions_and_names_the_backup(upgraded: FakeDaemon, shell: Shell) -> None:
    shown = " ".join(shell.run_on_terminal("version", columns=400).out.split())
    assert "all kept: 12 approved, 1 approved by a rule or with a main checkout, 2 denied" in shown
    assert "1 lapsed, 2 rules, 1 project with tags" in shown
    assert "version 3, is version 7 now" in shown
    assert "backups/before-upgrade-\\u{202e}.db" in shown
    assert "2 worktrees wait" in shown
    assert "fix, a\\u{1b}b" in shown
    assert "café is x~r7k2 now" in shown
    assert "acme/api also has web and 6 more" in shown


def test_decisions_that_lapsed_are_not_called_kept(upgraded: FakeDaemon, shell: Shell) -> None:
    item = UPGRADE | {"lapsed": 6}
    upgraded.answers["upgrade"] = {"revision": 7, "upgrade": item, "warnings": []}
    shown = " ".join(shell.run_on_terminal("version", columns=400).out.split())
    assert "all kept" not in shown
    assert "found: 12 approved" in shown
    assert "6 of them lapsed. To see why: rootsd status" in shown


def test_each_entry_that_gets_other_roots_is_named(upgraded: FakeDaemon, shell: Shell) -> None:
    upgraded.answers["upgrade"] = {
        "revision": 7, "warnings": [],
        "upgrade": UPGRADE | {"renamed": [{"stored": "café", "name": "café~r7k2"}]},
    }  # fmt: skip
    found = clients(shell)
    assert found.keys() == {
        ("claude-code", "files"),
        ("claude-code", "git (in /home/ann/src/api)"),
        ("codex", "memory"),
        ("cursor", "files"),
        ("cursor", "rootsd"),
        ("gemini", "rootsd"),
    }
    assert found["gemini", "rootsd"]["less"] == [
        "no root with the name café: its name is now café~r7k2"
    ]
    assert found["claude-code", "files"]["more"]
    assert found["claude-code", "files"]["less"]
    assert not found["cursor", "files"]["less"]
    assert not found["codex", "memory"]["more"]
    shown = shell.run_on_terminal("version", columns=400).out
    assert all(f"{entry} ({client})" in shown for client, entry in found)


def test_entries_of_another_daemon_are_not_mentioned(
    upgraded: FakeDaemon, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rootsd.cli.upgrade_summary.overriding_folder", lambda: b"/elsewhere")
    assert clients(shell) == {}


def test_a_store_that_no_release_wrote_says_nothing_about_entries(
    upgraded: FakeDaemon, shell: Shell
) -> None:
    item = UPGRADE | {"from_release": None, "from_version": 5}
    upgraded.answers["upgrade"] = {"revision": 7, "upgrade": item, "warnings": []}
    assert clients(shell) == {}
    assert "from a store of version 5" in shell.run_on_terminal("version").out


def test_a_broken_configuration_of_a_client_does_not_stop_the_summary(
    upgraded: FakeDaemon, shell: Shell, home: Path
) -> None:
    (home / ".cursor/mcp.json").write_text("{")
    (home / ".claude.json").write_bytes(b"\xff")
    assert {client for client, _ in clients(shell)} == {"codex", "gemini"}


MISSING = {"systemd": "rootsd-sync.service", "launchd": "org.rootsd.sync.plist"}


def refuse_to_run(command: Sequence[str]) -> ProgramResult:
    """Fail, because a summary runs no service manager."""
    pytest.fail(f"{command} was run")


class FakeManager:
    """systemd with the units of `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def is_installed(self) -> bool:
        return (self.folder / "rootsd.service").exists()


@pytest.mark.parametrize("kind", ["systemd", "launchd"])
def test_the_service_files_of_0_1_0_are_outdated(
    upgraded: FakeDaemon, shell: Shell, home: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("rootsd.cli.installer.stable_command", lambda *_, **__: Path(COMMAND))
    managers: dict[str, FakeManager | Launchd] = {
        "systemd": FakeManager(home / "units"),
        "launchd": Launchd(home, refuse_to_run),
    }
    manager = managers[kind]
    folder = manager.folder
    monkeypatch.setattr(detect, "local_service_manager", lambda _: manager)
    assert json.loads(shell.run("version", "--json").out)["upgrade"]["service"] is None
    names = [name for name in unit_texts() if (name in unit_files.AGENTS) == (kind == "launchd")]
    for name in names:
        text = unit_texts()[name]
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    service = json.loads(shell.run("version", "--json").out)["upgrade"]["service"]
    assert service["remedy"] == "rootsd service install"
    assert service["problem"].startswith(
        f"an older version wrote the service: {MISSING[kind]} missing"
    )
    shown = " ".join(shell.run_on_terminal("version").out.split())
    assert "an older version wrote the service" in shown


def test_units_of_other_folders_are_not_called_older(tmp_path: Path) -> None:
    (tmp_path / "rootsd.service").write_text("other")
    files = installer.ServiceFiles({tmp_path / "rootsd.service": "this"}, [])
    assert files.outdated() == "rootsd.service was written for another version or other folders"
    assert installer.ServiceFiles({tmp_path / "rootsd.service": "other"}, []).outdated() == ""
