"""Drop the rights that the daemon never needs: writing elsewhere, starting programs, using TCP.

If a hostile project takes over the daemon, the kernel refuses these. The helper does what the
daemon needs of other processes; it was forked before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from enum import StrEnum

from rootsd.wall.kernel.landlock import READ, WRITE, Right, Ruleset, version

_THREADS = "/proc/self/task"
_DEV_NULL = b"/dev/null"


class Confinement(StrEnum):
    """The mechanism that restricts the daemon."""

    LANDLOCK = "landlock"
    NONE = "none"


def confine_daemon(folders: Iterable[bytes]) -> tuple[Confinement, str | None]:
    """Allow writes and new sockets only below `folders`, no programs, and no TCP.

    Returns the mechanism in force, and a reason if the daemon should be confined but is not. Call
    this after the folders exist and while the process has one thread: a second thread would keep
    its rights.
    """
    if sys.platform != "linux":
        return Confinement.NONE, None
    if len(os.listdir(_THREADS)) > 1:
        return Confinement.NONE, "the daemon is not confined: it has threads already"
    if not version():
        return Confinement.NONE, "the daemon is not confined: this kernel offers no Landlock"
    # Otherwise each import would try in vain to write compiled files beside the modules.
    sys.dont_write_bytecode = True
    try:
        rules = Ruleset()
        rules.allow(b"/", READ)
        rules.allow(_DEV_NULL, READ | Right.WRITE_FILE)
        for folder in folders:
            rules.allow(folder, WRITE | Right.MAKE_SOCKET)
        rules.restrict()
    except OSError as error:
        return Confinement.NONE, f"the daemon is not confined: {error.strerror}"
    return Confinement.LANDLOCK, None
