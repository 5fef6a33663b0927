"""The services for the handlers of control requests.

Each module in `rootsd.control.handlers` has a subclass of `Handlers`, which takes what it needs
from `ControlServices`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from rootsd.control.confirmation import ConfirmationGate
from rootsd.control.daemon_parts import DaemonControl, DiscoveryControl
from rootsd.control.guard import CommandGuard
from rootsd.control.inspector import Inspector
from rootsd.control.items import NoteForPath
from rootsd.control.project_reader import ProjectReader
from rootsd.control.routes import Route
from rootsd.control.session_requests import SessionRequests
from rootsd.control.wardens import WallServices
from rootsd.state.change_signal import ChangeSignal
from rootsd.state.ledger import Ledger
from rootsd.state.store.store import Store


class ControlServices(Struct, frozen=True, kw_only=True):
    """The services that request handlers use.

    `archive` is the audit log in the store, and `state` is the folder of the store. `more_routes`
    returns the routes of code outside this package. `note_on`
    returns a note about the session that requested a folder, and `requests` finds that session.
    `real_path(typed, cwd)` reads the disk, so it is called in a thread. `is_canonical` finds paths
    that need no such call. `changes` is notified of changes outside the ledger: of sessions,
    confined programs, and requests for folders.
    """

    ledger: Ledger
    discovery: DiscoveryControl
    daemon: DaemonControl
    command_guard: CommandGuard
    archive: Store
    more_routes: Callable[[], Iterable[Route[Any]]]
    wall: WallServices
    note_on: NoteForPath
    requests: SessionRequests
    reader: ProjectReader
    inspector: Inspector
    real_path: Callable[[str, str], bytes]
    is_canonical: Callable[[bytes], bool]
    state: bytes
    changes: ChangeSignal

    @property
    def gate(self) -> ConfirmationGate:
        """The gate in front of orders about several projects."""
        return ConfirmationGate(self.discovery, self.reader)


class Handlers:
    """The base of the handlers of requests."""

    def __init__(self, services: ControlServices) -> None:
        self.services = services
        self.ledger = services.ledger
        self.discovery = services.discovery
