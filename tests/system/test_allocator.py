"""What was freed is given back, also where something small behind it lives on."""

from __future__ import annotations

import pytest

from support.subjects import run_python

MEGABYTE = 1 << 20
HELD = """
import ctypes
from pathlib import Path
from rootsd.system.allocator import hold_little

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


@pytest.mark.needs("linux")
def test_large_blocks_are_given_back_whatever_lies_behind_them() -> None:
    told, complaints = run_python((), HELD.format(first="hold_little()"))
    assert complaints == ""
    assert int(told) < 4 * MEGABYTE


@pytest.mark.needs("linux")
def test_without_that_the_c_library_holds_on_to_them() -> None:
    told, complaints = run_python((), HELD.format(first=""))
    assert complaints == ""
    assert int(told) > 28 * MEGABYTE


SCATTERED = """
import ctypes
from pathlib import Path
from rootsd.system.allocator import give_back

def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
blocks = [libc.malloc(8 << 10) for _ in range(4096)]
for block in blocks:
    ctypes.memset(block, 1, 8 << 10)
before = resident()
for number, block in enumerate(blocks):
    if number % 64 != 63:
        libc.free(block)
{then}
print(before - resident())
"""


@pytest.mark.needs("linux")
def test_what_lies_between_things_in_use_is_given_back() -> None:
    told, complaints = run_python((), SCATTERED.format(then="give_back()"))
    assert complaints == ""
    assert int(told) > 24 * MEGABYTE


@pytest.mark.needs("linux")
def test_without_that_it_stays() -> None:
    told, complaints = run_python((), SCATTERED.format(then=""))
    assert complaints == ""
    assert int(told) < 4 * MEGABYTE
