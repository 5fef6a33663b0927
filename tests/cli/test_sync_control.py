"""Choosing the clients of `rootsd sync`: of two commands at once, neither loses its choice."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace

import pytest

from rootsd.cli import sync_control
from rootsd.sync.record import SyncedClient, SyncRecord
from rootsd.sync.targets import TARGETS

CLIENTS = ("claude-code", "codex", "copilot", "cursor", "gemini", "opencode", "qwen")


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
    sync_control.stop_syncing(invocation, record, files[1])  # type: ignore[arg-type]
    assert list(record.clients()) == files[:1]


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR"), ("codex", "CODEX_HOME"),
        ("copilot", "COPILOT_HOME"), ("opencode", "XDG_CONFIG_HOME"),
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
