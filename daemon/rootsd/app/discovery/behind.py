"""What of a tree is looked at after the rest was told: it is most of the work, and can wait.

That a project came or went shows in the folders that hold projects. The roots of repositories
tell only what became of each, and what is remembered of an earlier life is answered meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable

from rootsd.app.discovery.candidate import Arrival
from rootsd.app.discovery.folders import Folder, changed

# To compare a stamp takes 3 us, to judge a project 100.
_STAMPS_FOR_A_PROJECT = 16


class Behind:
    """Folders whose stamps are still to be compared, and then projects still to be judged."""

    def __init__(self) -> None:
        self.arrival = Arrival.MADE
        self._folders: list[Folder] = []
        self._unjudged: list[bytes] = []

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._folders or self._unjudged)

    def clear(self) -> None:
        """All was looked at."""
        self._folders, self._unjudged = [], []

    def judge(self, path: bytes) -> None:
        """The project at `path` is still to be judged."""
        self._unjudged.append(path)

    def compare(self, folders: Iterable[Folder], arrival: Arrival) -> None:
        """These are still to be compared, and no others; what is new in them is an `arrival`."""
        self._folders, self.arrival = list(folders), arrival

    def take_changed(self, most: int) -> list[Folder]:
        """Of the next folders, as many as cost what `most` projects do, those that changed."""
        end = most * _STAMPS_FOR_A_PROJECT
        todo, self._folders = self._folders[:end], self._folders[end:]
        return changed(todo)

    def take_projects(self, most: int) -> list[bytes]:
        """The next projects, up to `most`; none before all folders were compared."""
        if self._folders:
            return []
        todo, self._unjudged = self._unjudged[:most], self._unjudged[most:]
        return todo
