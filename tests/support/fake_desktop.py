"""A session bus with a notification server, in place of a desktop."""

from __future__ import annotations

import queue
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jeepney import (
    DBusAddress,
    HeaderFields,
    MessageType,
    new_method_call,
    new_method_return,
    new_signal,
)
from jeepney.io.blocking import DBusConnection, open_dbus_connection

HANG_GUARD = 30
_NAME = "org.freedesktop.Notifications"
_FILE_MANAGER = "org.freedesktop.FileManager1"
CAPABILITIES = ("body", "body-markup", "actions")
_DESKTOP = DBusAddress("/org/freedesktop/Notifications", interface=_NAME)
_BUS = DBusAddress(
    "/org/freedesktop/DBus", bus_name="org.freedesktop.DBus", interface="org.freedesktop.DBus"
)
_CONFIG = """\
<busconfig>
  <type>session</type>
  <listen>{address}</listen>
  <policy context="default">
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""


class NotificationServer:
    """Shows notifications, and is the file manager, too.

    `notices` are the arguments of `Notify`, in order of arrival; the number of the first is 1.
    `opened` are the arguments of `ShowItems`.
    """

    def __init__(self, address: str, capabilities: Sequence[str] = CAPABILITIES) -> None:
        self.address = address
        self.notices: queue.Queue[tuple[Any, ...]] = queue.Queue()
        self.opened: queue.Queue[tuple[list[str], str]] = queue.Queue()
        self._capabilities = list(capabilities)
        self._count = 0
        self._connection: DBusConnection = open_dbus_connection(address)
        for name in (_NAME, _FILE_MANAGER):
            self._connection.send_and_get_reply(
                new_method_call(_BUS, "RequestName", "su", (name, 0)), timeout=HANG_GUARD
            )
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def next(self) -> tuple[str, str]:
        """Return the summary and the body of the next notification."""
        _, _, _, summary, body, *_ = self.notices.get(timeout=HANG_GUARD)
        return summary, body

    def emit(self, signal: str, signature: str, *body: object) -> None:
        """Send a signal, such as that the person clicked."""
        self._connection.send(new_signal(_DESKTOP, signal, signature, body))

    def close(self) -> None:
        """Call the serving thread by name, so that it ends."""
        with open_dbus_connection(self.address) as caller:
            end = DBusAddress("/", bus_name=_NAME, interface=_NAME)
            caller.send_and_get_reply(new_method_call(end, "End"), timeout=HANG_GUARD)
        self._thread.join(HANG_GUARD)
        self._connection.close()

    def _serve(self) -> None:
        while True:
            message = self._connection.receive(timeout=HANG_GUARD * 10)
            if message.header.message_type is not MessageType.method_call:
                continue
            member = message.header.fields[HeaderFields.member]
            self._connection.send(new_method_return(message, *self._answer(member, message.body)))
            if member == "Notify":  # after the answer, so that a signal comes after it, too
                self.notices.put(message.body)
            if member == "End":
                return

    def _answer(self, member: str, body: tuple[Any, ...]) -> tuple[Any, ...]:
        match member:
            case "GetCapabilities":
                return ("as", (self._capabilities,))
            case "GetServerInformation":
                return ("ssss", ("Fake Shell", "rootsd", "1", "1.2"))
            case "Notify":
                self._count += 1
                return ("u", (self._count,))
            case "ShowItems":
                self.opened.put(body)
                return ()
            case _:
                return ()


def spoof(address: str, signal: str, signature: str, *body: object) -> None:
    """Send a signal of the notification server as another program."""
    with open_dbus_connection(address) as other:
        other.send(new_signal(_DESKTOP, signal, signature, body))
        # The bus has delivered the signal once it answers.
        other.send_and_get_reply(new_method_call(_BUS, "GetId"), timeout=HANG_GUARD)


@contextmanager
def session_bus(folder: Path) -> Iterator[str]:
    """Run a private dbus-daemon, and yield its address."""
    address = f"unix:path={folder}/bus"
    config = folder / "bus.conf"
    config.write_text(_CONFIG.format(address=address))
    bus = subprocess.Popen(
        ["dbus-daemon", f"--config-file={config}", "--nofork", "--print-address"],
        stdout=subprocess.PIPE,
    )
    assert bus.stdout is not None
    with bus, bus.stdout:
        bus.stdout.readline()
        try:
            yield address
        finally:
            bus.terminate()


@contextmanager
def desktop(
    folder: Path, capabilities: Sequence[str] = CAPABILITIES
) -> Iterator[NotificationServer]:
    """Run a session bus with a notification server."""
    with session_bus(folder) as address:
        shown = NotificationServer(address, capabilities)
        try:
            yield shown
        finally:
            shown.close()
