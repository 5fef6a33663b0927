"""The services for the handlers of control requests.

Each module in `rootsd.control.handlers` has a subclass of `Handlers`, which takes what it needs
from `ControlServices`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from msgspec import Struct

from rootsd.control.confirmation import ConfirmationGate, refuse_unconfirmed
from rootsd.control.daemon_parts import DaemonControl, DiscoveryControl
from rootsd.control.guard import CommandGuard
from rootsd.control.inspector import Inspector
from rootsd.control.items import NoteForPath, project_items
from rootsd.control.project_reader import ProjectReader
from rootsd.control.references import ReferenceResolver, canonical_path
from rootsd.control.routes import Route
from rootsd.control.session_requests import SessionRequests
from rootsd.control.wardens import WallServices
from rootsd.core.affected import NOTHING_FOUND, FoundBelow
from rootsd.core.catalog import Catalog
from rootsd.core.inputs import Order, ProjectObserved
from rootsd.core.model import Project
from rootsd.core.plan import Plan
from rootsd.state.change_signal import ChangeSignal
from rootsd.state.ledger import Ledger
from rootsd.state.store.store import Store
from rootsd.wire.decisions import ConfirmationItem
from rootsd.wire.projects import ProjectItem
from rootsd.wire.request import ApplyMode


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

    def items(self, catalog: Catalog, projects: Iterable[Project]) -> list[ProjectItem]:
        """Return the items of `projects`, in their order."""
        return project_items(catalog, projects, self.discovery.parents())

    def canonical(self, typed: str, cwd: str) -> bytes:
        """Return the path that a person typed. It reads the disk, so call it in a thread."""
        return canonical_path(self.services.real_path, typed, cwd)

    def resolver(self, catalog: Catalog, cwd: str) -> ReferenceResolver:
        """Return what finds the projects that a person in the folder `cwd` means."""
        return ReferenceResolver(catalog, lambda typed: self.canonical(typed, cwd))

    async def carried_out(
        self,
        effect: ApplyMode,
        orders: Sequence[Order | ProjectObserved],
        *,
        confirmed: Collection[str] = (),
        found: FoundBelow = NOTHING_FOUND,
        seen: Iterable[Project] = (),
    ) -> tuple[Plan, ConfirmationItem | None]:
        """Carry out the orders, and return their plan.

        A dry run only plans them. It also returns what a person has to confirm, or None. Raises
        Unconfirmed, and what `Ledger.execute` raises.
        """
        if effect is ApplyMode.DRY_RUN:
            before, made = self.ledger.catalog, self.ledger.dry_run(orders)
            return made, await self.services.gate.confirmation_of(before, made, found)
        check = refuse_unconfirmed(confirmed, found)
        return await self.ledger.execute(orders, seen=seen, check=check), None
