"""Send desktop notifications over the session bus.

This module starts no program: without a socket of the bus, it gives up. Source: the Desktop
Notifications Specification, version 1.3.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

from rootsd.core.labels import safe_label

TIMEOUT_S = 5.0
_NAME = "org.freedesktop.Notifications"
_BUS_VARIABLE = "DBUS_SESSION_BUS_ADDRESS"
_NEW, _DEFAULT_TIMEOUT = 0, -1


class DesktopUnavailable(Exception):
    """The notification cannot be shown. The message is the reason."""


def is_available() -> bool:
    """Return whether the optional dependency, jeepney, is installed."""
    return find_spec("jeepney") is not None


def send_notification(summary: str, body: str) -> None:
    """Show a notification. Call this in a thread: it can take seconds. Raises DesktopUnavailable.

    Both texts are escaped, because a desktop reads the body as markup.
    """
    from html import escape  # noqa: PLC0415 - its table of entities takes 450 kB

    from jeepney import DBusAddress, DBusErrorResponse, new_method_call  # noqa: PLC0415 - an extra
    from jeepney.io.blocking import open_dbus_connection  # noqa: PLC0415
    from jeepney.wrappers import unwrap_msg  # noqa: PLC0415

    desktop = DBusAddress("/org/freedesktop/Notifications", bus_name=_NAME, interface=_NAME)
    content: tuple[object, ...] = (
        "rootsd",
        _NEW,
        "folder",
        safe_label(summary, limit=None),
        escape(safe_label(body, limit=None), quote=False),
        [],
        {"urgency": ("y", 1), "category": ("s", "device")},
        _DEFAULT_TIMEOUT,
    )
    try:
        with open_dbus_connection(_bus()) as connection:
            message = new_method_call(desktop, "Notify", "susssasa{sv}i", content)
            unwrap_msg(connection.send_and_get_reply(message, timeout=TIMEOUT_S))
    except (OSError, EOFError, DBusErrorResponse, ValueError, RuntimeError) as error:
        raise DesktopUnavailable(str(error) or type(error).__name__) from error


def _bus() -> str:
    """Return the address of the session bus.

    The variable is missing in a daemon that an MCP client started.
    """
    return os.environ.get(_BUS_VARIABLE) or f"unix:path=/run/user/{os.getuid()}/bus"
