"""Find and end the processes that tests left behind, by a variable in their environment."""

from __future__ import annotations

import os
from contextlib import suppress

import psutil

# A daemon that a bridge just started notices that it was stopped, and ends.
GRACE_S = 20.0
HANG_GUARD_S = 60.0


def end_left_behind(variable: str, start: str) -> list[str]:
    """End the user's other processes whose `variable` starts with `start`.

    Return their pids and command lines. A process that ends by itself soon counts as ended.
    """
    _, left = psutil.wait_procs(processes_with(variable, start), GRACE_S)
    told = [f"{process.pid} {_command_line(process)}" for process in left]
    for process in left:
        with suppress(psutil.NoSuchProcess):  # it just ended
            process.kill()
    psutil.wait_procs(left, HANG_GUARD_S)
    return told


def _command_line(process: psutil.Process) -> str:
    """Return the command line of a process, or nothing if it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def processes_with(variable: str, start: str) -> list[psutil.Process]:
    """Yield the user's other processes whose `variable` starts with `start`."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            value = process.environ().get(variable, "")
            # Python's resource tracker ends after the process that used multiprocessing.
            if any("multiprocessing.resource_tracker" in word for word in process.cmdline()):
                continue
        except psutil.Error:
            continue  # it ended meanwhile, or belongs to another user
        if process.pid != os.getpid() and value.startswith(start):
            found.append(process)
    return found
