"""Freed memory goes back to the system, even if a small block behind it stays in use."""

from __future__ import annotations

import pytest

from support.subprocesses import run_python

MEGABYTE = 1 << 20
PROGRAM = """
import ctypes
from pathlib import Path
from rootsd.daemon.malloc import limit_malloc

def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
{first}
libc.free(libc.malloc(16 << 20))
before = resident()
large = [libc.malloc(1 << 20) for _ in range(32)]
for block in large:
    ctypes.memset(block, 1, 1 << 20)
libc.malloc(100 << 10)
for block in large:
    libc.free(block)
print(resident() - before)
"""


def _bytes_kept(first: str) -> int:
    output, errors = run_python((), PROGRAM.format(first=first))
    assert errors == ""
    return int(output)


@pytest.mark.needs("linux")
def test_large_blocks_are_returned_to_the_system() -> None:
    assert _bytes_kept("limit_malloc()") < 4 * MEGABYTE


@pytest.mark.needs("linux")
def test_control_with_default_options_the_c_library_keeps_large_blocks() -> None:
    assert _bytes_kept("") > 28 * MEGABYTE
