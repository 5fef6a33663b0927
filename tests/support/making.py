"""Candidates with a clock that is moved by hand and processes as told."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from rootsd.core.model import ProjectKind
from rootsd.discovery.candidates import Arrival, CandidateResult, Candidates
from rootsd.watch.events import FileEvent, FileEventKind, WatchPurpose
from support.repos import raw
from support.watching import Clock, RememberingWatcher


class Making:
    """Candidates with a clock that is moved by hand and processes as told."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.watcher = RememberingWatcher()
        self.busy = False
        self.answers = True
        self.looks: list[frozenset[bytes]] = []
        self.candidates = Candidates(
            self.watcher, self.look, self.clock, lambda _folder: self.answers
        )

    def look(self, folders: Collection[bytes]) -> frozenset[bytes]:
        """Who is at work: nobody, or somebody on each folder."""
        self.looks.append(frozenset(folders))
        return self.looks[-1] if self.busy else frozenset()

    def consider(self, path: Path, kind: ProjectKind, arrival: Arrival) -> CandidateResult | None:
        return self.candidates.consider(raw(path), kind, arrival)

    def happen(
        self, folder: Path, name: str, change: FileEventKind, moved: bool = False
    ) -> list[CandidateResult]:
        at_work = FileEvent(raw(folder), name.encode(), change, WatchPurpose.AT_WORK, moved)
        return self.candidates.handle(at_work) + self.candidates.due()

    def watches(self) -> int:
        """How many folders are watched once those are given up that nobody needs."""
        self.candidates.tidy()
        return self.watcher.count()

    def wait(self, seconds: float) -> list[CandidateResult]:
        """Let time pass, looking whenever the candidates want to."""
        end, settled = self.clock.now + seconds, []
        while (due := self.candidates.next_due()) is not None and due <= end:
            self.clock.now = max(self.clock.now, due)
            settled += self.candidates.due()
        self.clock.now = end
        return settled
