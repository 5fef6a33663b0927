"""Define what a watcher can watch, and the events that it posts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from rootsd.disk.markers import ProjectFiles


class WatchPurpose(Enum):
    """Why a folder is watched. The purpose decides which changes are reported."""

    FRONTIER = 1
    """Entries that are added or removed, and the folder itself."""
    AT_WORK = 2
    """Inside a repository that is being created: every change."""
    ROOT = 3
    """The folder itself: its owner and mode, its removal, and its move."""
    ABOVE = 4
    """The nearest folder above a missing parent: entries that are added or removed."""
    LINKS = 5
    """The folder of a repository's worktree links: entries that are added or removed."""


class WatchOutcome(Enum):
    """The result of a request to watch."""

    YES = "watched"
    UNREADABLE = "no permission to watch"
    GONE = "no folder there"
    LIMIT = "the limit of watches is reached"
    NO_INSTANCE = "the user's inotify instances are used up"
    UNSUPPORTED = "cannot be watched here"
    FAILED = "the system could not watch it"
    SILENT = "the file system does not answer"


class FileEventKind(Enum):
    """What happened to an entry, or to the folder itself.

    `ALTERED` means a change of content, owner, or mode.
    """

    CAME = "came"
    LEFT = "left"
    ALTERED = "altered"
    ITSELF = "itself"


@dataclass(frozen=True, slots=True)
class FileEvent:
    """A change: a hint where to look, never a fact to act on.

    `name` is the entry of `folder` that changed. It is empty for the folder itself, and if the
    entry is unknown. `moved` means that a whole folder arrived by one rename.
    """

    folder: bytes
    name: bytes
    change: FileEventKind
    purpose: WatchPurpose
    moved: bool = False


@dataclass(frozen=True, slots=True)
class EventOverflow:
    """Events were lost, so everything may have changed."""


FileEvents = tuple[FileEvent | EventOverflow, ...]
# Created in the watcher's thread and called in the thread that owns the watcher, which alone knows
# the paths. It returns nothing if the watch is gone by then, and several events if the folder has
# several paths.
EventResolver = Callable[[], FileEvents]
PostResolver = Callable[[EventResolver], None]


def resolve_overflow() -> FileEvents:
    """Return the event that says that events were lost."""
    return (EventOverflow(),)


class Watcher(Protocol):
    """Watches folders one by one. One thread, the owner, calls all methods."""

    def start(self) -> None:
        """Begin to post events."""

    def watch(self, folder: bytes, purpose: WatchPurpose) -> WatchOutcome:
        """Watch the folder at `folder`, but nothing below it. A second call renews the watch."""

    def unwatch(self, folder: bytes, purpose: WatchPurpose) -> None:
        """Stop watching; harmless if the folder was not watched."""

    def set_project_files(self, files: ProjectFiles) -> None:
        """Report these project files, too, when they are added or removed."""

    def count(self) -> int:
        """Return the number of watches that the system holds for this watcher."""

    def stop(self) -> None:
        """Release everything."""
