"""Hide this process from the other programs of its user, so that none can use its connections.

A program that stays, such as the screen, is known to the guard as a person's. With
pidfd_getfd(2) or ptrace(2), another program of the same user could take its connection to the
daemon and decide over it. The kernel refuses both for a process that is not dumpable (prctl(2),
PR_SET_DUMPABLE). But then the guard cannot read the process either. So it introduces itself first,
and the daemon remembers what it saw.

On macOS there is nothing to do: no call takes a descriptor from another process, and task_for_pid
needs root or an entitlement of Apple.
"""

from __future__ import annotations

import ctypes
import sys

from rootsd.link import rpc

_PR_SET_DUMPABLE = 4  # linux/prctl.h
_TIMEOUT_S = 60.0


def hide_process() -> None:
    """Introduce this process to the guard, and hide it until it ends or becomes another program.

    Connections that it makes later are its own. Raises DaemonUnreachable, and DaemonError if the
    daemon refuses.
    """
    with rpc.connect_control() as channel:
        channel.settimeout(_TIMEOUT_S)
        rpc.ask(channel, "introduce", {})
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
