"""A person's repository, and walls of the program `agent` around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rootsd.core.mount_plan import ConfinedRoot
from rootsd.wall.git.left_behind import LeftBehindReport
from rootsd.wall.git.left_behind_reports import read_reports, running_findings
from support.polling import until
from support.repositories import make_repository
from support.walls import Wall, root_at


class WallWorld:
    """A repository in a home folder, which is a root."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self.walls = self.state / "confine"
        self.slot = self.walls / "agent" / "0"
        self.home = folder / "home"
        self.main = make_repository(self.home / "src" / "main")

    def wall(self, *roots: Path | ConfinedRoot, **options: Any) -> Wall:  # noqa: ANN401 - of Wall
        """Start a wall around these roots, or else the repository."""
        found = [
            root_at(each) if isinstance(each, Path) else each for each in roots or [self.main]
        ]
        return Wall(self.slot, self.home, found, **options)

    def end(self, wall: Wall) -> list[LeftBehindReport]:
        """End a wall, wait until its warden has made the report, and return all reports."""
        wall.close()
        until(lambda: not (self.slot / "changes" / "start.json").exists())
        return self.reports()

    def reports(self) -> list[LeftBehindReport]:
        return read_reports(bytes(self.walls))

    def running_findings(self) -> list[str]:
        return [*running_findings(bytes(self.walls))]
