"""Show notifications over the session bus, and show their folders after a click.

The daemon has given up the right to start programs. So a click does not open a terminal: the bus
asks the file manager, and starts it if necessary. The file manager selects the folder inside the
one above it. It does not enter the folder, because some file managers run git in a folder that
they show, and the configuration of an unapproved repository can make git run any program.

Sources: Desktop Notifications Specification 1.3; File Manager D-Bus Interface
(https://www.freedesktop.org/wiki/Specifications/file-manager-interface).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import anyio

from rootsd.core.paths import to_uri
from rootsd.notify.notification import DesktopNotification, DesktopUnavailable

log = logging.getLogger(__name__)

TIMEOUT_S = 5.0
CLICK_S = 900.0
"""How long a click on a notification has an effect."""
_FILE_MANAGER_S = 30.0  # it may have to start
_NOTIFICATIONS = "org.freedesktop.Notifications"
_FILE_MANAGER = "org.freedesktop.FileManager1"
_BUS = "org.freedesktop.DBus"
_BUS_VARIABLE = "DBUS_SESSION_BUS_ADDRESS"
_NEW, _DEFAULT_TIMEOUT = 0, -1
_NORMAL_URGENCY = {"urgency": ("y", 1)}
# A click on the notification itself is "default". Desktops without such a click show the other.
_OPEN = ["default", "Open", "open", "Open"]
_MAX_SIGNALS = 64
_MAX_ANSWER = 1024


class SessionBusDesktop:
    """A Linux desktop. It starts no program.

    `address` is that of the session bus. A click has an effect for `click_s` seconds.
    """

    def __init__(self, address: str | None = None, click_s: float = CLICK_S) -> None:
        self._address = address
        self._click_s = click_s

    async def show(self, notification: DesktopNotification) -> None:
        """Show a notification, and then its folders after a click.

        Return after the click, or once the notification is closed or the time for a click is over.
        Raises DesktopUnavailable.
        """
        async with AsyncExitStack() as stack:
            with _Unavailable(), anyio.fail_after(TIMEOUT_S):
                bus = await stack.enter_async_context(_connected(self._address or _bus()))
                clicks, number = await _notify(bus, stack, notification)
            if clicks is None:
                return
            with anyio.move_on_after(self._click_s):
                token = await _clicked(clicks, number)
                if token is not None:
                    await _show_folders(bus, notification.folders, token)

    async def describe(self) -> str:
        """Return the name of the program that shows notifications. Raises DesktopUnavailable."""
        with _Unavailable(), anyio.fail_after(TIMEOUT_S):
            async with _connected(self._address or _bus()) as bus:
                name, *_ = await bus.call(_NOTIFICATIONS, "GetServerInformation")
                return str(name)


class _Unavailable:
    """Raises DesktopUnavailable in place of the errors of the bus."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        from jeepney import DBusErrorResponse  # noqa: PLC0415
        from jeepney.io.common import RouterClosed  # noqa: PLC0415

        unavailable = (
            OSError,
            EOFError,
            DBusErrorResponse,
            RouterClosed,
            ValueError,
            RuntimeError,
        )
        if isinstance(error, unavailable):
            said = error.strerror if isinstance(error, OSError) else str(error)
            raise DesktopUnavailable(said or type(error).__name__) from error


class _SessionBus:
    """A connection to the session bus, through a router of jeepney."""

    def __init__(self, router: Any) -> None:  # noqa: ANN401 - jeepney has no types
        self.router = router

    async def call(
        self, name: str, method: str, *arguments: tuple[str, object]
    ) -> tuple[Any, ...]:
        """Call a method of the object that stands for the service `name`, with typed arguments."""
        from jeepney import DBusAddress, new_method_call  # noqa: PLC0415
        from jeepney.wrappers import unwrap_msg  # noqa: PLC0415

        path = "/" + name.replace(".", "/")
        address = DBusAddress(path, bus_name=name, interface=name)
        signature = "".join(kind for kind, _ in arguments) or None
        body = tuple(value for _, value in arguments)
        reply = await self.router.send_and_get_reply(
            new_method_call(address, method, signature, body)
        )
        result: tuple[Any, ...] = unwrap_msg(reply)
        return result


@asynccontextmanager
async def _connected(address: str) -> AsyncIterator[_SessionBus]:
    """Connect to the bus at `address`.

    jeepney's own function for this leaves the connection open if it is cancelled.
    """
    from jeepney.bus import get_bus  # noqa: PLC0415 - 320 kB, rarely needed
    from jeepney.bus_messages import message_bus  # noqa: PLC0415
    from jeepney.io.asyncio import DBusConnection, DBusRouter, Proxy  # noqa: PLC0415

    reader, writer = await asyncio.open_unix_connection(get_bus(address))
    try:
        await _authenticate(reader, writer)
        router = DBusRouter(DBusConnection(reader, writer))
        try:
            await Proxy(message_bus, router).Hello()
            yield _SessionBus(router)
        finally:
            # If the bus is gone, the router raises the error of its reader again.
            with suppress(OSError, EOFError):
                await router.__aexit__(None, None, None)
    finally:
        writer.close()


async def _authenticate(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    from jeepney.auth import BEGIN, Authenticator  # noqa: PLC0415

    authenticator = Authenticator()
    for request in authenticator:
        writer.write(request)
        await writer.drain()
        answer = await reader.read(_MAX_ANSWER)
        if not answer:
            raise EOFError("the bus closed the connection")
        authenticator.feed(answer)
    writer.write(BEGIN)


async def _notify(
    bus: _SessionBus, stack: AsyncExitStack, notification: DesktopNotification
) -> tuple[asyncio.Queue[Any] | None, int]:
    """Show the notification. Return the signals about it, and its number.

    There are no signals if the person cannot click.
    """
    (capabilities,) = await bus.call(_NOTIFICATIONS, "GetCapabilities")
    body, clicks = notification.safe_body, None
    if "body-markup" in capabilities:
        body = _as_markup(body)
    if notification.folders and "actions" in capabilities and await _has_file_manager(bus):
        clicks = await _subscribe(bus, stack)
    (number,) = await bus.call(
        _NOTIFICATIONS,
        "Notify",
        ("s", "rootsd"),
        ("u", _NEW),
        ("s", "folder"),
        ("s", notification.safe_summary),
        ("s", body),
        ("as", [] if clicks is None else _OPEN),
        ("a{sv}", _NORMAL_URGENCY),
        ("i", _DEFAULT_TIMEOUT),
    )
    return clicks, number


def _as_markup(text: str) -> str:
    """Return markup that shows `text`. The module `html` would take 450 kB for its entities."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


async def _has_file_manager(bus: _SessionBus) -> bool:
    (running,) = await bus.call(_BUS, "ListNames")
    (startable,) = await bus.call(_BUS, "ListActivatableNames")
    return _FILE_MANAGER in running or _FILE_MANAGER in startable


async def _subscribe(bus: _SessionBus, stack: AsyncExitStack) -> asyncio.Queue[Any]:
    """Return the signals of the notification server. No other program can send them."""
    from jeepney import MatchRule  # noqa: PLC0415

    (owner,) = await bus.call(_BUS, "GetNameOwner", ("s", _NOTIFICATIONS))
    rule = MatchRule(type="signal", sender=owner, interface=_NOTIFICATIONS)
    await bus.call(_BUS, "AddMatch", ("s", rule.serialise()))
    queue: asyncio.Queue[Any] = stack.enter_context(bus.router.filter(rule, bufsize=_MAX_SIGNALS))
    return queue


async def _clicked(signals: asyncio.Queue[Any], number: int) -> str | None:
    """Wait until the person clicks on notification `number` or closes it.

    Return the token that lets the file manager come to the front, or "" without one, or None if
    the notification was closed.
    """
    from jeepney import HeaderFields  # noqa: PLC0415

    token = ""
    while True:
        message = await signals.get()
        match message.header.fields.get(HeaderFields.member), message.body:
            case "ActivationToken", (int(about), str(given)) if about == number:
                token = given
            case "ActionInvoked", (int(about), _) if about == number:
                return token
            case "NotificationClosed", (int(about), _) if about == number:
                return None


async def _show_folders(bus: _SessionBus, folders: Sequence[bytes], token: str) -> None:
    uris = [to_uri(folder) for folder in folders]
    try:
        with _Unavailable(), anyio.fail_after(_FILE_MANAGER_S):
            await bus.call(_FILE_MANAGER, "ShowItems", ("as", uris), ("s", token))
    except DesktopUnavailable as reason:
        log.info("the file manager shows nothing: %s", reason)


def _bus() -> str:
    """Return the address of the session bus.

    The variable is missing in a daemon that an MCP client started.
    """
    return os.environ.get(_BUS_VARIABLE) or f"unix:path=/run/user/{os.getuid()}/bus"
