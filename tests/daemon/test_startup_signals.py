"""Signals, sent to the test's own process."""

from __future__ import annotations

import signal

import anyio
import pytest

from rootsd.core.errors import BadConfig
from rootsd.daemon.startup import handle_signals

HANG_GUARD = 30


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_termination_signal_stops_the_daemon(number: signal.Signals) -> None:
    stopped = anyio.Event()

    async def reload() -> None:
        raise AssertionError

    async with anyio.create_task_group() as group:
        await group.start(handle_signals, stopped.set, reload)
        signal.raise_signal(number)
        with anyio.fail_after(HANG_GUARD):
            await stopped.wait()
        group.cancel_scope.cancel()


async def test_sighup_reloads_the_configuration_and_survives_an_error(
    caplog: pytest.LogCaptureFixture,
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
            signal.raise_signal(signal.SIGTERM)
            await stopped.wait()
        group.cancel_scope.cancel()
    assert "config.toml, line 3: no" in caplog.text
