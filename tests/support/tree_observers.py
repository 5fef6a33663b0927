"""An observer of a parent tree that records what it is told."""

from __future__ import annotations

from rootsd.core.model import ProjectKind
from rootsd.discovery.candidate import Arrival


class RecordingObserver:
    """A `TreeObserver` that records its calls, and the paths of the present projects."""

    def __init__(self) -> None:
        self.reported: list[tuple[bytes, ProjectKind | None, Arrival | None]] = []
        self.present: set[bytes] = set()

    def found(self, path: bytes, kind: ProjectKind, arrival: Arrival) -> None:
        self.reported.append((path, kind, arrival))
        self.present.add(path)

    def remembered(self, path: bytes) -> None:
        """Count the projects from a saved tree; `found` follows."""

    def lost(self, path: bytes) -> None:
        self.reported.append((path, None, None))
        self.present.discard(path)
