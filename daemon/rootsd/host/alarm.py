"""An alarm on the clock that counts from the machine's start: it rings on time after sleep, too.

The event loop's own timers stand still while the machine sleeps. Source: timerfd_create(2).
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import time
from contextlib import suppress

import anyio

from rootsd.host.clock import BOOT_CLOCK

_TFD_TIMER_ABSTIME = 1
_SPEC = struct.Struct("qqqq")  # itimerspec: the interval, then the first time
_NS = 10**9
_LONGEST_PAUSE_S = 30.0


class KernelAlarm:
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


class PatientAlarm:
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


def make_alarm() -> KernelAlarm | PatientAlarm:
    """The best alarm that this system has. Make it in the event loop."""
    if sys.platform == "linux":
        with suppress(OSError):
            return KernelAlarm()
    return PatientAlarm()
