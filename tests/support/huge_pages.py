"""Cheaper forks of a process that has loaded much.

A fork copies the page tables of the process: one entry for each 4 KiB of memory, or for each 2 MiB
that the kernel keeps as a huge page. For 70 MB, that is most of what a fork costs which does
little. A fork that writes to a huge page copies 4 KiB, as without.
"""

from __future__ import annotations

import ctypes

_MADV_COLLAPSE = 25  # asm-generic/mman-common.h, Linux 6.1; any other system refuses it
_HUGE_PAGE = 1 << 21
_MAPS = "/proc/self/maps"


def gather() -> None:
    """Gather what this process has allocated in huge pages, where the kernel can."""
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    try:
        with open(_MAPS) as file:
            lines = file.read().splitlines()
    except FileNotFoundError:  # macOS
        return
    for line in lines:
        addresses, rights, _, _, inode, *name = line.split(maxsplit=5)
        if rights != "rw-p" or inode != "0" or name == ["[stack]"]:
            continue
        start, end = (int(address, 16) for address in addresses.split("-"))
        for page in range(-(-start // _HUGE_PAGE) * _HUGE_PAGE, end - _HUGE_PAGE + 1, _HUGE_PAGE):
            madvise(page, _HUGE_PAGE, _MADV_COLLAPSE)
