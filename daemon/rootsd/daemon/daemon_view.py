"""Show control requests the state of the daemon, and let them reload and stop it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from msgspec import Struct

from rootsd import __version__
from rootsd.core.model import Actor, PublishedRoot
from rootsd.core.timestamps import rfc3339
from rootsd.daemon.admission import AdmissionControl
from rootsd.daemon.configuration import ReloadableConfig
from rootsd.daemon.health import HelperProbe
from rootsd.daemon.policy import ReloadablePolicy
from rootsd.mcp.sessions.history import read_history
from rootsd.mcp.sessions.registry import SessionRegistry
from rootsd.state.backups import BackupScheduler
from rootsd.state.recovery_notice import RecoveryNotice
from rootsd.state.store.session_history import SessionHistoryStore
from rootsd.sync.record import SyncRecord
from rootsd.wall.git.left_behind_reports import LeftBehind, left_behind
from rootsd.wall.kernel.daemon_rights import Confinement
from rootsd.wire.daemon import (
    ConfigStatus,
    DaemonStatus,
    PolicyStatus,
    SessionItem,
)


class DaemonView(Struct, kw_only=True):
    """What control requests see of the daemon, as `DaemonControl` says.

    `walls` is the folder of reports of programs behind the wall. `warnings` are the problems of
    the start. `admission` limits the connections once the sockets are open. `reload` reads the
    configuration again, by order of an actor, or of a signal if it is None.
    """

    since: datetime
    confinement: Confinement
    walls: bytes
    warnings: Sequence[str]
    configuration: ReloadableConfig
    policy: ReloadablePolicy
    registry: SessionRegistry
    session_store: SessionHistoryStore
    recovery_notice: RecoveryNotice
    helper_probe: HelperProbe
    backups: BackupScheduler
    synced: SyncRecord
    reload: Callable[[Actor | None], Awaitable[None]]
    stop: Callable[[], None]
    admission: AdmissionControl | None = None

    def about(self) -> DaemonStatus:
        """Return the version, process id, start time, and confinement."""
        since, confined = rfc3339(self.since), self.confinement.value
        return DaemonStatus(version=__version__, pid=os.getpid(), since=since, confined=confined)

    def config_status(self) -> ConfigStatus:
        """Return the state of the configuration."""
        return self.configuration.status()

    def policy_status(self) -> PolicyStatus | None:
        """Return the state of the machine's policy, or None if there is none."""
        return self.policy.status()

    def session_items(self) -> list[SessionItem]:
        """Return the MCP connections, with the roots that each got last."""
        return self.registry.items()

    def session_roots(self, id_: str) -> Sequence[PublishedRoot]:
        """Return the roots that an MCP connection got last; none if it has ended."""
        return self.registry.roots_of(id_)

    def session_history(self, last: int) -> list[SessionItem]:
        """Return the `last` sessions that began, with their roots; call it in a thread."""
        return read_history(self.session_store, last)

    def closed_connections(self) -> dict[str, int]:
        """Return the number of connections that the daemon closed, by reason."""
        return self.admission.closed() if self.admission else {}

    async def degraded(self) -> list[str]:
        """Return a sentence for each problem."""
        problems = [*self.recovery_notice.report(), *self.warnings]
        problems += [*await self.helper_probe.problems(), *self.configuration.degraded()]
        problems += self.admission.degraded() if self.admission else []
        return [*problems, *self.backups.degraded(), *self.synced.problems()]

    def mark_degraded_seen(self) -> None:
        """Note that a person has seen the problems."""
        self.recovery_notice.mark_seen()

    def left_behind(self) -> LeftBehind:
        """Return what programs behind the wall left behind; call it in a thread."""
        return left_behind(self.walls)
