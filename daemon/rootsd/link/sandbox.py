"""Find out whether this process runs in a sandbox, and what the sandbox hides.

The lean programs import this module, so it uses little of the standard library.
"""

from __future__ import annotations

import os

from rootsd.places import runtime_dir

CONFINED_VARIABLE = "ROOTSD_CONFINED"
"""The environment variable that is set, and not empty, inside the wall."""
_ONE_USER = "1"
_BUBBLEWRAP = b"bwrap"


def sandbox_hides_control(folder: runtime_dir.RuntimeDir) -> bool:
    """Return whether a sandbox exposes the MCP socket of the runtime folder but hides `ctl/`.

    A daemon creates both folders and never removes them. The folder `pub/` without a socket proves
    nothing, because a sandbox can leave one behind as a mount point.
    """
    return os.path.exists(folder.mcp_socket) and not os.path.lexists(folder.ctl)


def is_inside_wall() -> bool:
    """Return whether this process is behind the wall, which sets a variable and hides `ctl/`.

    The variable alone proves nothing, because every program can set it.
    """
    return bool(os.environ.get(CONFINED_VARIABLE)) and _is_control_hidden()


def in_foreign_sandbox() -> bool:
    """Return whether a sandbox that is not the wall exposes only the MCP socket."""
    return not os.environ.get(CONFINED_VARIABLE) and _is_control_hidden()


def _is_control_hidden() -> bool:
    return any(sandbox_hides_control(folder) for folder in runtime_dir.find_runtime_dirs())


def in_sandbox() -> bool:
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
