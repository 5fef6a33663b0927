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
        chosen = SyncedClient(str(tmp_path / name / "settings"))
        sync_control.start_syncing(invocation, name, chosen)  # type: ignore[arg-type]

    def remove(name: str) -> None:
        start.wait()
        sync_control.stop_syncing(invocation, record, name)  # type: ignore[arg-type]

    with ThreadPoolExecutor(len(CLIENTS)) as pool:
        list(pool.map(add, CLIENTS))
        assert sorted(record.clients()) == sorted(CLIENTS)
        list(pool.map(remove, CLIENTS))
    assert record.clients() == {}
