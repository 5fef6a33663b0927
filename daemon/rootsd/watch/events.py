"""Define what a watcher can watch, and the events that it posts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from rootsd.disk.markers import ProjectFiles


class WatchPurpose(Enum):
    """Why a folder is watched; it settles which changes are told."""

    FRONTIER = 1
    """Entries that come and go, and the folder itself."""
    AT_WORK = 2
    """Inside a repository that is being made: every change."""
    ROOT = 3
    """The folder itself: its owner and mode, its removal, its move."""
    ABOVE = 4
    """The nearest folder above a parent that is missing: what comes and goes in it."""
    LINKS = 5
    """Where a repository keeps its links to worktrees: what comes and goes in it."""


class WatchOutcome(Enum):
    """How a request to watch ended."""

    YES = "watched"
    UNREADABLE = "no permission to watch"
    GONE = "no folder there"
    LIMIT = "the limit of watches is reached"
    NO_INSTANCE = "the user's inotify instances are used up"
    UNSUPPORTED = "cannot be watched here"
    FAILED = "the system could not watch it"
    SILENT = "the file system does not answer"


class FileEventKind(Enum):
    """What happened: to an entry (`ALTERED`: content, owner or mode), or to the folder itself."""

    CAME = "came"
    LEFT = "left"
    ALTERED = "altered"
    ITSELF = "itself"


@dataclass(frozen=True, slots=True)
class FileEvent:
    """Something changed: a hint where to look, never a fact to act on.

    `name` is the entry of `folder` concerned, empty for the folder itself or if it is not known
    which. `moved` means that a whole folder came by one rename.
    """

    folder: bytes
    name: bytes
    change: FileEventKind
    purpose: WatchPurpose
    moved: bool = False


@dataclass(frozen=True, slots=True)
class EventOverflow:
    """Events were lost: everything may have changed."""


FileEvents = tuple[FileEvent | EventOverflow, ...]
# Made in the watcher's thread, called in the thread that owns the watcher: only there are paths
# known. Nothing if the watch is gone by then; more than one where a folder has several paths.
EventResolver = Callable[[], FileEvents]
PostResolver = Callable[[EventResolver], None]


def resolve_overflow() -> FileEvents:
    """The signal that events were lost."""
    return (EventOverflow(),)


class Watcher(Protocol):
    """Watches folders one by one. All methods are called from one thread, its owner."""

    def start(self) -> None:
        """Begin to post what happens."""

    def watch(self, folder: bytes, purpose: WatchPurpose) -> WatchOutcome:
        """Watch what is at `folder` now, not what is below it; again renews the watch."""

    def unwatch(self, folder: bytes, purpose: WatchPurpose) -> None:
        """Stop; harmless if it was not watched."""

    def heed(self, files: ProjectFiles) -> None:
        """Tell of these project files where they come and go, too."""

    def count(self) -> int:
        """How many watches the system keeps for this."""

    def stop(self) -> None:
        """Give everything back."""
