"""An alarm fires when due, unless it was canceled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import anyio
import pytest

from rootsd.state import clock
from rootsd.state.clock import BOOT_CLOCK, PollingAlarm, TimerfdAlarm, make_alarm

HANG_GUARD = 60
Made = TimerfdAlarm | PollingAlarm


@pytest.fixture(
    params=[pytest.param(TimerfdAlarm, marks=pytest.mark.needs("linux")), PollingAlarm]
)
async def ringing(request: pytest.FixtureRequest) -> Iterator[Made]:  # type: ignore[misc]
    make: Callable[[], Made] = request.param
    made = make()
    yield made
    made.close()


def now() -> int:
    return time.clock_gettime_ns(BOOT_CLOCK)


@pytest.mark.parametrize("in_ns", [-(10**15), -1, 0, 20_000_000])
async def test_it_fires_when_due_or_overdue(ringing: Made, in_ns: int) -> None:
    due = now() + in_ns
    ringing.set(due)
    with anyio.fail_after(HANG_GUARD):
        await ringing.wait()
    assert now() >= due


async def test_it_fires_once(ringing: Made) -> None:
    ringing.set(now())
    with anyio.fail_after(HANG_GUARD):
        await ringing.wait()
    with anyio.move_on_after(0.05) as waited:
        await ringing.wait()
    assert waited.cancelled_caught


async def test_a_canceled_alarm_does_not_fire(ringing: Made) -> None:
    ringing.set(now() + 10_000_000)
    ringing.set(None)
    with anyio.move_on_after(0.1) as waited:
        await ringing.wait()
    assert waited.cancelled_caught


async def test_it_can_be_set_during_a_wait(ringing: Made) -> None:
    ringing.set(now() + 10**15)
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            group.start_soon(ringing.wait)
            await anyio.wait_all_tasks_blocked()
            ringing.set(now())


async def test_the_fallback_checks_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "_MAX_PAUSE_S", 0.01)
    slept = iter([0, 0, 10**18])  # the machine sleeps, which no timer of the loop counts
    monkeypatch.setattr(time, "clock_gettime_ns", lambda _: next(slept))
    patient = PollingAlarm()
    patient.set(10**17)
    with anyio.fail_after(HANG_GUARD):
        await patient.wait()


async def test_without_a_timer_of_the_kernel_the_fallback_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused() -> TimerfdAlarm:
        raise OSError

    monkeypatch.setattr(clock, "TimerfdAlarm", refused)
    assert isinstance(make_alarm(), PollingAlarm)
