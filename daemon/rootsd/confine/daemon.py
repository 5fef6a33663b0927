"""Drop the rights that the daemon never needs: to write elsewhere, to start programs, to use TCP.

Whatever a hostile project makes of it afterwards, the kernel refuses. What it needs of other
processes the helper does, which was forked before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from enum import StrEnum

from rootsd.confine.landlock import READ, WRITE, Right, Ruleset, version

_THREADS = "/proc/self/task"
_NOWHERE = b"/dev/null"


class Confinement(StrEnum):
    """What holds the daemon to its duties."""

    LANDLOCK = "landlock"
    NONE = "none"


def confine_daemon(folders: Iterable[bytes]) -> tuple[Confinement, str | None]:
    """Write, and make sockets, below `folders` alone from now on; start nothing, speak no TCP.

    Gives what came of it, and where it should have and did not, why. To be called while there is
    one thread, once the folders are there: a thread that runs already would keep its rights.
    """
    if sys.platform != "linux":
        return Confinement.NONE, None
    if len(os.listdir(_THREADS)) > 1:
        return Confinement.NONE, "the daemon is not confined: it has threads already"
    if not version():
        return Confinement.NONE, "the daemon is not confined: this kernel offers no Landlock"
    # An import would else try, and fail, to leave compiled files beside the modules.
    sys.dont_write_bytecode = True
    try:
        rules = Ruleset()
        rules.allow(b"/", READ)
        rules.allow(_NOWHERE, READ | Right.WRITE_FILE)
        for folder in folders:
            rules.allow(folder, WRITE | Right.MAKE_SOCKET)
        rules.restrict()
    except OSError as error:
        return Confinement.NONE, f"the daemon is not confined: {error.strerror}"
    return Confinement.LANDLOCK, None
