"""Finds and ends the processes that tests left behind, told by a variable in their environment."""

from __future__ import annotations

import os

import psutil

# A daemon that a bridge has just started finds out that it was stopped, and ends.
GRACE_S = 20.0
HANG_GUARD_S = 60.0


def end_left_behind(variable: str, start: str) -> list[str]:
    """End the other processes of this user whose `variable` starts with `start`; their pids and
    command lines. Those that end by themselves in a short time count as ended."""
    _, left = psutil.wait_procs(processes_with(variable, start), GRACE_S)
    told = [f"{process.pid} {' '.join(process.cmdline())}" for process in left]
    for process in left:
        process.kill()
    psutil.wait_procs(left, HANG_GUARD_S)
    return told


def processes_with(variable: str, start: str) -> list[psutil.Process]:
    """The other processes of this user whose `variable` starts with `start`."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            value = process.environ().get(variable, "")
            # Python's own, which ends after the process that used multiprocessing.
            if any("multiprocessing.resource_tracker" in word for word in process.cmdline()):
                continue
        except psutil.Error:
            continue  # ended meanwhile, or another user's
        if process.pid != os.getpid() and value.startswith(start):
            found.append(process)
    return found
