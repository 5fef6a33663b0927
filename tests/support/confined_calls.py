"""Follows a trace of strace, and tells which calls the kernel refused to processes that have
confined themselves, and to the threads and processes that these started.

A program, too: `confined_calls.py FILE` reads the trace and writes what it found to FILE, as JSON.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

TRACED = "%file,%network,landlock_restrict_self,clone,clone3,fork,vfork,kill,tgkill,pidfd_open"

_LINE = re.compile(r"(\d+) +(?:<\.\.\. )?(\w+)")
_END = re.compile(r"(\d+) +\+\+\+ (?:exited|killed)")
_RESULT = re.compile(r" = (-?\d+)(?: (E\w+))?")
_REFUSALS = ("EACCES", "EPERM")
_STARTS = ("clone", "clone3", "fork", "vfork")


class Told(NamedTuple):
    """How many threads were confined, and the lines that tell of a refusal."""

    confined: int
    refused: list[str]


def followed(trace: Iterable[str]) -> Told:
    """What the lines of a trace of `strace -f` come to."""
    confined, ever = set[str](), 0
    refused: list[str] = []
    for line in trace:
        if ended := _END.match(line):
            confined.discard(ended[1])  # the number may be another one's later
        matched, results = _LINE.match(line), _RESULT.findall(line)
        if matched is None or not results:
            continue  # a signal, or a call that has only begun
        thread, call = matched.groups()
        result, error = results[-1]
        if call == "landlock_restrict_self" and result == "0":
            confined.add(thread)
            ever += 1
        elif thread in confined and call in _STARTS and int(result) > 0:
            confined.add(result)
            ever += 1
        elif thread in confined and error in _REFUSALS:
            refused.append(line.strip())
    return Told(ever, refused)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(followed(sys.stdin)._asdict()))
