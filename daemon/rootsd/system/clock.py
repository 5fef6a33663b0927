"""Read the wall clock and the clock since boot, and set alarms that count sleep.

The wall clock, the clock that counts from the machine's start, and the name of that start.

The second counts sleep, too. Sources: clock_gettime(2) (CLOCK_BOOTTIME), random(4) (boot_id); on
macOS CLOCK_MONOTONIC, which
goes on during sleep as well, and the sysctl `kern.bootsessionuuid`.

An alarm on the clock that counts from the machine's start: it rings on time after sleep, too.

The event loop's own timers stand still while the machine sleeps. Source: timerfd_create(2).
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
    """The wall clock: for display and the history, never for order or timers."""
    return datetime.now(UTC)


def moment() -> ClockReading:
    """Now."""
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
_LONGEST_PAUSE_S = 30.0


class TimerfdAlarm:
    """Linux: the kernel rings. Raises OSError where it has no such timer."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        flags = os.O_NONBLOCK | os.O_CLOEXEC
        self._fd = int(self._libc.timerfd_create(BOOT_CLOCK, flags))
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")

    def set(self, since_boot_ns: int | None) -> None:
        """Ring then, or at once where that is over; never where it is None."""
        # Zero would disarm it.
        first = 0 if since_boot_ns is None else max(1, since_boot_ns)
        spec = _SPEC.pack(0, 0, *divmod(first, _NS))
        if self._libc.timerfd_settime(self._fd, _TFD_TIMER_ABSTIME, spec, None) != 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    async def wait(self) -> None:
        """Wait until it rings."""
        await anyio.wait_readable(self._fd)
        with suppress(BlockingIOError):  # it was set anew meanwhile
            os.read(self._fd, 8)

    def close(self) -> None:
        """Give the timer back; it cannot be used afterwards."""
        os.close(self._fd)


class PollingAlarm:
    """Elsewhere: looks at the clock now and then while there is something to wait for."""

    def __init__(self) -> None:
        self._due: int | None = None
        self._was_set = anyio.Event()

    def set(self, since_boot_ns: int | None) -> None:
        """Ring then, or at once where that is over; never where it is None."""
        self._due = since_boot_ns
        self._was_set.set()
        self._was_set = anyio.Event()

    async def wait(self) -> None:
        """Wait until it rings."""
        while self._due is None or (left := self._due - time.clock_gettime_ns(BOOT_CLOCK)) > 0:
            was_set = self._was_set
            pause = None if self._due is None else min(left / _NS, _LONGEST_PAUSE_S)
            with anyio.move_on_after(pause):
                await was_set.wait()
        self._due = None

    def close(self) -> None:
        """Nothing is held."""


def make_alarm() -> TimerfdAlarm | PollingAlarm:
    """The best alarm that this system has. Make it in the event loop."""
    if sys.platform == "linux":
        with suppress(OSError):
            return TimerfdAlarm()
    return PollingAlarm()
