"""Candidates with a clock that the test advances, and a fake list of processes."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from rootsd.core.model import ProjectKind
from rootsd.discovery.candidate import Arrival, CandidateResult
from rootsd.discovery.candidates import Candidates
from rootsd.watch.events import FileEvent, FileEventKind, WatchPurpose
from support.fake_watchers import Clock, RecordingWatcher
from support.repositories import raw


class CandidatesHarness:
    """Candidates with a clock that the test advances, and a fake list of processes."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.watcher = RecordingWatcher()
        self.busy = self.has_tool = False
        self.answers = True
        self.process_lists: list[frozenset[bytes]] = []
        self.candidates = Candidates(
            self.watcher,
            self.find_in_use,
            self.clock,
            lambda _folder: self.answers,
            self.find_tools,
        )

    def find_in_use(self, folders: Collection[bytes]) -> frozenset[bytes]:
        """Return the folders in which processes work: none or all."""
        self.process_lists.append(frozenset(folders))
        return self.process_lists[-1] if self.busy else frozenset()

    def find_tools(self, folders: Collection[bytes]) -> frozenset[bytes]:
        """Return the folders in which tools work: none or all."""
        return frozenset(folders) if self.has_tool else frozenset()

    def consider(self, path: Path, kind: ProjectKind, arrival: Arrival) -> CandidateResult | None:
        return self.candidates.consider(raw(path), kind, arrival)

    def handle(
        self, folder: Path, name: str, change: FileEventKind, moved: bool = False
    ) -> list[CandidateResult]:
        at_work = FileEvent(raw(folder), name.encode(), change, WatchPurpose.PROGRESS, moved)
        return self.candidates.handle(at_work) + self.candidates.due()

    def watches(self) -> int:
        """Remove the watches that are no longer needed, and return the number of others."""
        self.candidates.remove_unused_watches()
        return self.watcher.count()

    def wait(self, seconds: float) -> list[CandidateResult]:
        """Advance the clock, and check the candidates whenever they are due."""
        end, settled = self.clock.now + seconds, []
        while (due := self.candidates.next_due()) is not None and due <= end:
            self.clock.now = max(self.clock.now, due)
            settled += self.candidates.due()
        self.clock.now = end
        return settled
