"""Ask the MCP socket which root contains a path, where a sandbox hides the control socket.

Standard library only.
"""

from __future__ import annotations

from rootsd.core.errors import DaemonUnreachable
from rootsd.link import connect
from rootsd.net import root_question
from rootsd.places import runtime_dir

TYPE_CHECKING = False  # to import typing would take a seventh of the time of `rootsd check`
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def resolve_root(asked: Mapping[str, str], timeout_s: float) -> dict[str, Any] | None:
    """Return the root with this `path` in it, or this `name`, or None.

    It is in the form of the tool `resolve_root`, and `asked` has its arguments.

    Waits up to `timeout_s` seconds for each answer. Raises NotRunning, DaemonUnreachable, and what
    `connect` raises.
    """
    for folder in runtime_dir.find_runtime_dirs():
        try:
            channel = connect.connect(folder.mcp_socket)
        except connect.NotRunning:
            continue
        with channel:
            channel.settimeout(timeout_s)
            try:
                return root_question.ask_for_root(channel, asked)
            except OSError as error:
                raise DaemonUnreachable("the daemon does not answer", "") from error
            except (ValueError, KeyError, TypeError) as error:
                message = "the daemon does not answer as expected"
                raise DaemonUnreachable(message, "") from error
    raise connect.NotRunning("the daemon is not running", "rootsd up, outside of the sandbox")
