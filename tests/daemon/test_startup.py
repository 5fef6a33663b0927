"""The launcher learns how the start ended, and signals end or reload the daemon."""

from __future__ import annotations

import os
import signal

import anyio
import pytest

from rootsd.core.errors import BadConfig
from rootsd.daemon.startup import handle_signals, notify_launcher
from rootsd.service import start_record

HANG_GUARD = 30


@pytest.mark.parametrize(
    ("stopped", "word", "stops"), [(False, b"ready\n", 0), (True, b"error ", 1)]
)
def test_the_launcher_gets_ready_and_after_a_down_the_reason(
    *, stopped: bool, word: bytes, stops: int
) -> None:
    if stopped:
        start_record.mark_stopped()
    read, write = os.pipe()
    ends: list[None] = []
    notify_launcher(write, lambda: ends.append(None))
    with os.fdopen(read, "rb") as told:
        assert told.read().startswith(word)
    assert len(ends) == stops
    notify_launcher(None, lambda: ends.append(None))
    assert len(ends) == stops, "without a launcher, a down ends nothing"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_sighup_reloads_and_survives_an_error_and_another_signal_stops(
    caplog: pytest.LogCaptureFixture, number: signal.Signals
) -> None:
    stopped, reloaded = anyio.Event(), anyio.Event()

    async def reload() -> None:
        reloaded.set()
        raise BadConfig("config.toml, line 3: no")

    async with anyio.create_task_group() as group:
        await group.start(handle_signals, stopped.set, reload)
        signal.raise_signal(signal.SIGHUP)
        with anyio.fail_after(HANG_GUARD):
            await reloaded.wait()
            assert not stopped.is_set()
            signal.raise_signal(number)
            await stopped.wait()
        group.cancel_scope.cancel()
    assert "config.toml, line 3: no" in caplog.text
