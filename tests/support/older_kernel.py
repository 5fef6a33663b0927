"""Answer system calls as an older or stricter kernel does, and start a program.

It is a program: `python older_kernel.py CALL:ERRNO[,...] PROGRAM ARGUMENT...`, where CALL is a
number, or `prctl=OPTION` for one option of prctl(2). A filter of seccomp gives the answers, to the
program and everything that it starts.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

UNSHARE = {"x86_64": 272, "aarch64": 97}
MOUNT = {"x86_64": 165, "aarch64": 40}
PRCTL = {"x86_64": 157, "aarch64": 167}
OPEN_TREE, MOVE_MOUNT, OPENAT2, MOUNT_SETATTR, LANDLOCK_CREATE = 428, 429, 437, 442, 444
SET_SECCOMP = 22
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000


def words_for(answers: dict[str, int], words: Iterable[str]) -> list[str]:
    """Return the command that starts `words` on a kernel with these answers."""
    spec = ",".join(f"{call}:{number}" for call, number in answers.items())
    return [sys.executable, str(Path(__file__)), spec, *words]


def _step(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)


def _filter(spec: str) -> bytes:
    program = _step(0x20, 0)
    for rule in spec.split(","):
        call, _, number = rule.partition(":")
        fail = _step(0x06, _FAIL | int(number))
        if call.startswith("prctl="):
            program += _step(0x15, PRCTL[platform.machine()], 0, 4) + _step(0x20, 16)
            program += _step(0x15, int(call.removeprefix("prctl=")), 0, 1) + fail
            program += _step(0x20, 0)
        else:
            program += _step(0x15, int(call), 0, 1) + fail
    return program + _step(0x06, _ALLOW)


def main() -> None:
    """Install the filter, and become the program."""
    program = _filter(sys.argv[1])
    buffer = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges = 38
    assert libc.prctl(no_new_privileges, 1, 0, 0, 0) == 0
    assert libc.prctl(SET_SECCOMP, ctypes.c_ulong(2), described, 0, 0) == 0
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 - the test's command


if __name__ == "__main__":
    main()
