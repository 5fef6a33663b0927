"""The wall clock, the clock that counts from the machine's start, and the name of that start.

The second counts sleep, too. Sources: clock_gettime(2) (CLOCK_BOOTTIME), random(4) (boot_id); on
macOS CLOCK_MONOTONIC, which
goes on during sleep as well, and the sysctl `kern.bootsessionuuid`.
"""

from __future__ import annotations

import ctypes
import sys
import time
from datetime import UTC, datetime
from functools import cache

from rootsd.core.expiry import Moment

BOOT_CLOCK = time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC
_BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"
_BOOT_ID_NAME = b"kern.bootsessionuuid"
_BOOT_ID_CAP = 64


def utc_now() -> datetime:
    """The wall clock: for display and the history, never for order or timers."""
    return datetime.now(UTC)


def moment() -> Moment:
    """Now."""
    return Moment(utc_now(), _boot(), time.clock_gettime_ns(BOOT_CLOCK))


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
