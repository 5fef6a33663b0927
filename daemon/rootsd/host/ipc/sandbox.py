"""Recognizes that this program runs in a sandbox, where no daemon can be reached.

Standard library only. Used after a connection failed, to say why; it decides nothing.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # importing typing would cost a seventh of a run of `rootsd check`
if TYPE_CHECKING:
    from rootsd.host.folders import RunFolder

_ONE_USER = "1"
_BUBBLEWRAP = b"bwrap"


def hides_control(folder: RunFolder) -> bool:
    """Return whether a sandbox shows the MCP socket of the runtime folder and not `ctl/`.

    A daemon makes both folders and leaves them at its end. A folder `pub/` without a socket says
    nothing: a sandbox can leave one behind as the place of a mount.
    """
    return os.path.exists(folder.mcp_socket) and not os.path.lexists(folder.ctl)


def is_around() -> bool:
    """Return whether this process runs in bubblewrap, or in a user namespace with one user.

    Containers have more than one. Source: user_namespaces(7), "uid_map".
    """
    try:
        with open("/proc/self/uid_map", "rb") as lines:
            if lines.read().decode("ascii").split()[2:] == [_ONE_USER]:
                return True
        with open("/proc/1/comm", "rb") as first:
            return first.read().strip() == _BUBBLEWRAP
    except (OSError, ValueError):
        return False
