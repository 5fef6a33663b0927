"""A session bus with a notification server, in place of a desktop."""

from __future__ import annotations

import queue
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jeepney import DBusAddress, HeaderFields, MessageType, new_method_call, new_method_return
from jeepney.io.blocking import DBusConnection, open_dbus_connection

HANG_GUARD = 30
_NAME = "org.freedesktop.Notifications"
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
    """Shows notifications. `notices` are the arguments of `Notify`, in order of arrival."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.notices: queue.Queue[tuple[Any, ...]] = queue.Queue()
        self._connection: DBusConnection = open_dbus_connection(address)
        self._connection.send_and_get_reply(
            new_method_call(_BUS, "RequestName", "su", (_NAME, 0)), timeout=HANG_GUARD
        )
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def next(self) -> tuple[str, str]:
        """Return the summary and the body of the next notification."""
        _, _, _, summary, body, *_ = self.notices.get(timeout=HANG_GUARD)
        return summary, body

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
            is_end = message.header.fields[HeaderFields.member] == "End"
            if not is_end:
                self.notices.put(message.body)
            reply = new_method_return(message, *(() if is_end else ("u", (1,))))
            self._connection.send(reply)
            if is_end:
                return


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
def desktop(folder: Path) -> Iterator[NotificationServer]:
    """Run a session bus with a notification server."""
    with session_bus(folder) as address:
        shown = NotificationServer(address)
        try:
            yield shown
        finally:
            shown.close()
