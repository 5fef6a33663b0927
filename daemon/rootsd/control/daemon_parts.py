"""The parts of the running daemon that request handlers use, as this package sees them.

`rootsd.daemon`, which is above this package, implements them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

from msgspec import Struct

from rootsd.control.routes import ProgressSink
from rootsd.core.catalog import Catalog
from rootsd.core.exclusion import Exclusion
from rootsd.core.inputs import ProjectObserved
from rootsd.core.model import Actor, Parent, Project, PublishedRoot
from rootsd.wall.git.left_behind_reports import LeftBehind
from rootsd.wire.daemon import (
    ConfigStatus,
    DaemonStatus,
    ParentItem,
    PolicyStatus,
    SessionItem,
)


class DaemonControl(Protocol):
    """The methods of the running daemon that request handlers use."""

    def about(self) -> DaemonStatus:
        """Return the version, process id, start time, and confinement."""

    def config_status(self) -> ConfigStatus:
        """Return the state of the configuration."""

    def policy_status(self) -> PolicyStatus | None:
        """Return the state of the machine's policy, or None if there is none."""

    def session_items(self) -> list[SessionItem]:
        """Return the MCP connections, each with the roots that it got last."""

    def session_roots(self, id_: str) -> Sequence[PublishedRoot]:
        """Return the roots that an MCP connection got last. There are none if it has ended."""

    def session_history(self, last: int) -> list[SessionItem]:
        """Return the newest `last` sessions with their roots. Call this in a thread."""

    def closed_connections(self) -> dict[str, int]:
        """Return the number of connections that the daemon closed, for each reason."""

    async def degraded(self) -> list[str]:
        """Return a sentence for each problem."""

    def mark_degraded_seen(self) -> None:
        """Note that a person has seen the problems."""

    def left_behind(self) -> LeftBehind:
        """Return what programs behind the wall left behind. Call it in a thread."""

    def reload(self, actor: Actor | None, /) -> Awaitable[None]:
        """Read the configuration again, by order of `actor`.

        Raises BadConfig. The old configuration then stays.
        """

    def stop(self) -> None:
        """End the daemon."""


class ScanStats(Struct, frozen=True):
    """The cost of one scan, and the projects that were not complete yet.

    A `ScanResponse` counts those of them that are still unknown when the scan has ended.
    """

    folders: int
    seconds: float
    being_made: frozenset[bytes]


class SeenBelow(Struct, frozen=True):
    """The projects that a look below some projects found, and the paths of those projects
    that it could not search whole.
    """

    projects: tuple[ProjectObserved, ...] = ()
    unsearched: frozenset[bytes] = frozenset()


class DiscoveryControl(Protocol):
    """The methods of discovery that request handlers use."""

    def parents(self) -> Sequence[Parent]:
        """Return the configured parents."""

    def parent_status(self, catalog: Catalog) -> list[ParentItem]:
        """Return the status of each parent."""

    def watches(self) -> int:
        """Return the number of kernel watches that discovery uses."""

    def degraded(self) -> list[str]:
        """Return a sentence for each problem of discovery."""

    async def scan(self, parent: bytes | None, progress: ProgressSink | None) -> ScanStats:
        """Scan now, and return when the catalog holds every project that the scan found."""

    async def propose(self, path: bytes) -> None:
        """Read one folder and add it to the catalog. Raises RootsdError if it cannot be read."""

    async def observe_project(self, path: bytes) -> ProjectObserved:
        """Read one folder without adding it to the catalog. Raises what `propose` raises."""

    async def is_at_work(self, seen: ProjectObserved) -> bool:
        """Return whether a program still works on the project `seen`, or it has just changed."""

    async def look_again(self, paths: Sequence[bytes]) -> None:
        """Read these known folders now, and return when the catalog has their states.

        It then also has each project that just appeared.
        """

    async def why_unseen(self, path: bytes) -> Exclusion | None:
        """Return why discovery does not propose a folder, or None if it does."""

    async def left_out(self) -> Sequence[Exclusion]:
        """Return what discovery leaves out although it may hold projects."""

    async def why_unsafe(self, path: bytes) -> str | None:
        """Return why a folder may not be published, as a clause, or None if it may."""

    async def refresh_worktrees(self, mains: Sequence[bytes]) -> None:
        """Update the worktrees of these repositories in the catalog."""

    async def look_below(self, projects: Sequence[Project]) -> SeenBelow:
        """Look for projects below these folders, for a few seconds at most."""
