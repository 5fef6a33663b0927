"""Find the system calls that the kernel refused to processes that had confined themselves.

It reads a trace of strace and includes their threads and children. As a program, `call_trace.py
FILE` reads the trace on its standard input and writes the findings to FILE, as JSON.
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


class RefusedCalls(NamedTuple):
    """The number of confined threads, and the lines of the trace with a refusal."""

    confined: int
    refused: list[str]


def parse_trace(trace: Iterable[str]) -> RefusedCalls:
    """Return the refused calls in the lines of a trace of `strace -f`."""
    confined, ever = set[str](), 0
    refused: list[str] = []
    for line in trace:
        if not confined and "landlock_restrict_self" not in line:
            continue  # such as the start of Python, which is most of a trace
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
    return RefusedCalls(ever, refused)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(parse_trace(sys.stdin)._asdict()))
