"""Ask the MCP socket which root contains a path, where a sandbox hides the control socket.

Standard library only.
"""

from __future__ import annotations

from rootsd.core.errors import DaemonUnreachable
from rootsd.link.connect import NotRunning, connect_to_daemon
from rootsd.net import root_question

TYPE_CHECKING = False  # to import typing would take a seventh of the time of `rootsd check`
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def resolve_root(asked: Mapping[str, str], timeout_s: float) -> dict[str, Any] | None:
    """Return the root with this `path` in it, or this `name`, or None.

    It is in the form of the tool `resolve_root`, and `asked` has its arguments.

    Waits up to `timeout_s` seconds for each answer. Raises NotRunning, DaemonUnreachable, and what
    `connect_to_daemon` raises.
    """
    try:
        channel = connect_to_daemon()
    except NotRunning as error:
        remedy = "rootsd up, outside of the sandbox"
        raise NotRunning("the daemon is not running", remedy) from error
    with channel:
        channel.settimeout(timeout_s)
        try:
            return root_question.ask_for_root(channel, asked)
        except OSError as error:
            raise DaemonUnreachable("the daemon does not answer", "") from error
        except (ValueError, KeyError, TypeError) as error:
            raise DaemonUnreachable("the daemon does not answer as expected", "") from error
