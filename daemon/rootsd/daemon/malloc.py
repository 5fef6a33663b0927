"""Make glibc return freed memory to the system.

By default, glibc keeps a heap for each thread. After a program frees a large block, glibc also
stops mapping blocks of that size separately and puts them on the heap. There, one small block that
stays in use keeps everything below it from being returned. Other C libraries have no such options,
and this module does nothing there.

Measured with 5,000 projects: the daemon takes 56 MB instead of 62 MB without an MCP session, and
84 MB instead of 94 MB with one. The budgets are 60 MB and 110 MB.
Source: mallopt(3).
"""

from __future__ import annotations

import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
# The initial value of both thresholds in glibc. Once a program sets one, glibc does not raise it.
_THRESHOLD_BYTES = 128 << 10


def limit_malloc() -> None:
    """Use one heap and fixed thresholds. Call this before the first thread starts."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, _THRESHOLD_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _THRESHOLD_BYTES)
