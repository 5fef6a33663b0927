"""Read the wall clock and the clock since boot, and set alarms that count sleep.

The clock since boot also counts the time that the machine sleeps. It is CLOCK_BOOTTIME on Linux
and CLOCK_MONOTONIC on macOS. The boot id changes with each boot. It is boot_id on Linux
(random(4)) and the sysctl `kern.bootsessionuuid` on macOS. An alarm uses this clock, because the
timers of the event loop stop while the machine sleeps. Sources: clock_gettime(2),
timerfd_create(2).
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache

import anyio

from rootsd.core.expiry import ClockReading

BOOT_CLOCK = time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC
_BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"
_BOOT_ID_NAME = b"kern.bootsessionuuid"
_BOOT_ID_CAP = 64


def utc_now() -> datetime:
    """Return the wall clock time. Use it for display and history, but not for order or timers."""
    return datetime.now(UTC)


def read_clocks() -> ClockReading:
    """Return the current time of both clocks, and the boot id."""
    return ClockReading(utc_now(), _boot(), time.clock_gettime_ns(BOOT_CLOCK))


@cache
def _boot() -> str:
    return _boot_from_file() if sys.platform == "linux" else _boot_from_sysctl()


def _boot_from_file() -> str:
    try:
        with open(_BOOT_ID_FILE, encoding="ascii") as file:
            return file.read(_BOOT_ID_CAP).strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _boot_from_sysctl() -> str:
    value = ctypes.create_string_buffer(_BOOT_ID_CAP)
    size = ctypes.c_size_t(len(value))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.sysctlbyname(_BOOT_ID_NAME, value, ctypes.byref(size), None, ctypes.c_size_t(0)) != 0:
        return ""
    return value.value.decode("ascii", "replace")


_TFD_TIMER_ABSTIME = 1
_SPEC = struct.Struct("qqqq")  # itimerspec: the interval, then the first time
_NS = 10**9
_MAX_PAUSE_S = 30.0


class TimerfdAlarm:
    """An alarm that uses a kernel timer (Linux). Raises OSError if the kernel has none."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        flags = os.O_NONBLOCK | os.O_CLOEXEC
        self._fd = int(self._libc.timerfd_create(BOOT_CLOCK, flags))
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")

    def set(self, since_boot_ns: int | None) -> None:
        """Ring at that time, or at once if it has passed. With None, never ring."""
        # Zero would disarm the timer.
        first = 0 if since_boot_ns is None else max(1, since_boot_ns)
        spec = _SPEC.pack(0, 0, *divmod(first, _NS))
        if self._libc.timerfd_settime(self._fd, _TFD_TIMER_ABSTIME, spec, None) != 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    async def wait(self) -> None:
        """Wait until the alarm rings."""
        await anyio.wait_readable(self._fd)
        with suppress(BlockingIOError):  # it was set again in the meantime
            os.read(self._fd, 8)

    def close(self) -> None:
        """Release the timer."""
        os.close(self._fd)


class PollingAlarm:
    """An alarm that polls the clock while it is set (other systems)."""

    def __init__(self) -> None:
        self._due: int | None = None
        self._was_set = anyio.Event()

    def set(self, since_boot_ns: int | None) -> None:
        """Ring at that time, or at once if it has passed. With None, never ring."""
        self._due = since_boot_ns
        self._was_set.set()
        self._was_set = anyio.Event()

    async def wait(self) -> None:
        """Wait until the alarm rings."""
        while self._due is None or (left := self._due - time.clock_gettime_ns(BOOT_CLOCK)) > 0:
            was_set = self._was_set
            pause = None if self._due is None else min(left / _NS, _MAX_PAUSE_S)
            with anyio.move_on_after(pause):
                await was_set.wait()
        self._due = None

    def close(self) -> None:
        """Do nothing, because this alarm holds no resource."""


def make_alarm() -> TimerfdAlarm | PollingAlarm:
    """Return the best alarm on this system. Call this in the event loop."""
    if sys.platform == "linux":
        with suppress(OSError):
            return TimerfdAlarm()
    return PollingAlarm()
