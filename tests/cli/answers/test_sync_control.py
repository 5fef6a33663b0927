"""Choosing the clients of `rootsd sync`: of two commands at once, neither loses its choice."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace

import pytest

from rootsd.cli.answers import sync_control
from rootsd.core.errors import Exit
from rootsd.sync.access import ClientOutcome
from rootsd.sync.record import SyncedClient, SyncRecord
from rootsd.sync.targets import TARGETS
from support.fake_daemon import FakeDaemon, a_decision, a_listing, an_item
from support.terminal import Shell

CLIENTS = tuple(TARGETS)


@pytest.fixture
def record(rootsd_dir: Path, monkeypatch: pytest.MonkeyPatch) -> SyncRecord:
    """The record, with a process that needs no restart."""
    monkeypatch.setattr(sync_control, "restart", lambda _: None)
    state = rootsd_dir / "state"
    state.mkdir(0o700, parents=True)
    return SyncRecord(os.fsencode(state))


def test_clients_that_are_added_or_removed_at_once_are_all_kept_or_gone(
    record: SyncRecord, tmp_path: Path
) -> None:
    state = os.fsencode(record.folder.parent)
    invocation: object = SimpleNamespace(places=SimpleNamespace(state=state))
    start = Barrier(len(CLIENTS))

    def add(name: str) -> None:
        start.wait()
        chosen = SyncedClient(name, str(tmp_path / name / "settings"))
        sync_control.start_syncing(invocation, chosen)  # type: ignore[arg-type]

    def remove(name: str) -> None:
        start.wait()
        sync_control.stop_syncing(invocation, record, str(tmp_path / name / "settings"))  # type: ignore[arg-type]

    with ThreadPoolExecutor(len(CLIENTS)) as pool:
        list(pool.map(add, CLIENTS))
        assert sorted(each.client for each in record.clients().values()) == sorted(CLIENTS)
        list(pool.map(remove, CLIENTS))
    assert record.clients() == {}


def test_a_second_home_of_a_client_is_synced_beside_the_first(
    record: SyncRecord, tmp_path: Path
) -> None:
    state = os.fsencode(record.folder.parent)
    invocation: object = SimpleNamespace(places=SimpleNamespace(state=state))
    target, home = TARGETS["claude-code"], str(tmp_path)
    files = [
        target.settings_file(home, variables)
        for variables in ({}, {"CLAUDE_CONFIG_DIR": f"{tmp_path}/second"})
    ]
    for file in files:
        sync_control.start_syncing(invocation, SyncedClient("claude-code", file))  # type: ignore[arg-type]
    assert sorted(record.clients()) == sorted(files)
    made = Path(files[1]).parent
    assert made.is_dir()
    sync_control.start_syncing(invocation, record.clients()[files[1]])  # type: ignore[arg-type]
    sync_control.stop_syncing(invocation, record, files[1])  # type: ignore[arg-type]
    assert list(record.clients()) == files[:1]
    assert (made.exists(), Path(files[0]).parent.is_dir()) == (False, True)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR"), ("codex", "CODEX_HOME"),
        ("copilot", "COPILOT_HOME"), ("opencode", "OPENCODE_CONFIG_DIR"),
    ],
)  # fmt: skip
def test_the_variables_of_a_home_follow_from_its_file(
    name: str, variable: str, tmp_path: Path
) -> None:
    target = TARGETS[name]
    file = target.settings_file("/home/x", {variable: f"{tmp_path}/a b"})
    assert target.home_variables(file) == {variable: f"{tmp_path}/a b"}
    assert target.in_home(file, "rootsd") == f"{variable}='{tmp_path}/a b' rootsd"
    usual = target.settings_file(os.path.expanduser("~"), {variable: "relative"})
    assert target.in_home(usual, "rootsd") == "rootsd"


@pytest.fixture
def command_line(rootsd_dir: Path) -> Iterator[FakeDaemon]:
    with FakeDaemon(rootsd_dir) as daemon:
        odd = an_item("odd", path="/s/what?", verdict="denied")
        daemon.answers["projects"] = a_listing(odd, an_item("x", path="/s/x"))
        daemon.answers["announce"] = {}
        daemon.answers["decide"] = a_decision(odd)
        yield daemon


def test_sync_add_reports_what_it_wrote(
    record: SyncRecord, command_line: FakeDaemon, shell: Shell, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "home"))
    settings = tmp_path / "home" / "settings.json"
    settings.parent.mkdir()
    settings.write_text("{ no JSON")
    refused = shell.run("sync", "add", "claude-code")
    assert refused.status == Exit.FAILED
    assert "nothing was written" in refused.err
    settings.unlink()
    done = shell.run("sync", "add", "claude-code")
    assert (done.status, "claude-code is synced: 1 denial and 0 grants" in done.err) == (0, True)
    assert "/s/what? is not denied there: ? has another meaning" in done.err
    listed = json.loads(shell.run("sync", "add", "claude-code", "--json").out)["items"]
    assert (listed[0]["denied"], len(listed[0]["omitted"])) == (1, 1)


@pytest.mark.parametrize("client", TARGETS)
def test_only_claude_code_has_folders_opened(
    record: SyncRecord, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    done = shell.run("sync", "add", client, "--only", "tag:work")
    added = [each.only for each in record.clients().values()]
    if client == "claude-code":
        assert (done.status, added) == (Exit.OK, ["tag:work"])
    else:
        assert (done.status, added) == (Exit.USAGE, [])
        assert f"opens no folders to {client}; leave out --only" in done.err


def test_sync_add_without_a_daemon_says_that_nothing_is_written_yet(
    record: SyncRecord, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    said = shell.run("sync", "add", "claude-code").err
    assert "nothing is written yet: no daemon runs" in said
    assert [each.client for each in record.clients().values()] == ["claude-code"]


def test_deny_names_each_client_whose_list_cannot_have_the_path(
    record: SyncRecord, command_line: FakeDaemon, shell: Shell, tmp_path: Path
) -> None:
    assert "not denied there" not in shell.run("deny", "odd").err
    record.save_clients([SyncedClient("claude-code", str(tmp_path / "settings.json"))])
    said = shell.run("deny", "odd").err
    assert "claude-code: /s/what? is not denied there: ? has another meaning" in said


def test_deny_names_each_client_whose_list_could_not_be_written(
    record: SyncRecord, command_line: FakeDaemon, shell: Shell, tmp_path: Path
) -> None:
    file = str(tmp_path / "settings.json")
    record.save_clients([SyncedClient("codex", file)])
    record.save_outcomes({file: ClientOutcome(problem="x is read-only")})
    said = shell.run("deny", "x").err
    assert "codex: its list could not be written last time: x is read-only" in said
    record.save_outcomes({file: ClientOutcome()})
    assert "last time" not in shell.run("deny", "x").err, "the control"
