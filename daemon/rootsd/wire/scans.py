"""Control requests for a scan, and for the projects that nobody has seen yet."""

from __future__ import annotations

from typing import ClassVar, TypedDict

from rootsd.wire.projects import ProjectItem
from rootsd.wire.request import Answer, ControlRequest


class ScanResponse(Answer):
    """The result of a scan."""

    items: list[ProjectItem]
    """The projects that are new."""
    gone: list[ProjectItem]
    """The projects that are gone."""
    changed: list[ProjectItem]
    """The projects that changed."""
    projects: int
    """The number of all projects."""
    folders: int
    """The number of folders that were read."""
    seconds: float
    """How long the scan took."""
    being_made: int
    """The number of repositories that are still being created. rootsd proposes them when they are
    complete.
    """
    left_out: list[str]
    """What a scan leaves out although it may hold projects, one sentence each, with the command
    that includes it.
    """


class ScanRequest(ControlRequest, frozen=True):
    """Scan one parent, or all, now: `progress` notifications, then `ScanResponse`."""

    method: ClassVar[str] = "scan"
    result: ClassVar[type] = ScanResponse
    is_long: ClassVar[bool] = True

    parent: str | None = None


class ScanProgressItem(TypedDict):
    """A `progress` notification during a scan."""

    folders: int
    """The number of folders so far."""
    projects: int
    """The number of projects so far."""
    parent: str
    """The parent that is being scanned."""


class NewProposals(Answer):
    """The proposals that no person has seen."""

    new: int
    """The number of proposals that no client requests."""
    wanted: dict[str, str]
    """Which client requests a folder, and why, by the id of the project."""


class NewProposalsQuery(ControlRequest, frozen=True):
    """Ask for the proposals that no person has seen: `NewProposals`. Then they count as seen."""

    method: ClassVar[str] = "news"
    result: ClassVar[type] = NewProposals
