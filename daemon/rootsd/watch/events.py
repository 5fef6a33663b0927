"""Define what a watcher can watch, and the events that it posts."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol

from msgspec import Struct

from rootsd.disk.markers import ProjectFiles


class WatchPurpose(Enum):
    """Why a folder is watched. The purpose decides which changes are reported."""

    FRONTIER = 1
    """A folder outside of projects: added and removed entries, and the folder itself."""
    PROGRESS = 2
    """A progress folder of a project that is being created: every change."""
    ROOT = 3
    """A root: changes to its owner and mode, its removal, its move, added and removed markers of
    repositories, and all changes of entries whose names begin with a dot: tools may run them.
    """
    ABOVE = 4
    """The nearest folder above a missing parent: added and removed entries."""
    LINKS = 5
    """The folder with a repository's links to worktrees, or the `.git` folder in which git will
    create it: added and removed entries, and a link that is written again.
    """
    PARENT = 6
    """A parent, or a folder above one: only changes to its owner and mode, its removal, and its
    move.
    """
    MARKERS = 7
    """The top folder of a repository: added and removed markers of repositories. Such a watch is
    the first to end when watches run out, because the sweep finds the same changes.
    """

    MEMBERS = 8
    """The top folder of a project whose members are proposed: a file that may list them is written
    again.
    """

    # `Enum.__hash__` is written in Python, and each watch needs the hash several times.
    __hash__ = object.__hash__


class WatchOutcome(Enum):
    """The result of a request to watch."""

    WATCHED = "watched"
    UNREADABLE = "no permission to watch"
    GONE = "no folder there"
    LIMIT = "the limit of watches is reached"
    NO_INSTANCE = "the user's inotify instances are used up"
    UNSUPPORTED = "cannot be watched here"
    FAILED = "the system could not watch it"
    UNRESPONSIVE = "the file system does not answer"


class FileEventKind(Enum):
    """What happened to an entry, or to the folder itself.

    `MODIFIED` means a change of content, owner, or mode.
    """

    ADDED = "added"
    REMOVED = "removed"
    MODIFIED = "modified"
    SELF = "self"


class FileEvent(Struct, frozen=True):
    """A report that something changed in `folder`. It may be late: the receiver checks the disk.

    `name` is the entry that changed. It is empty if the folder itself changed, or if the entry is
    unknown. `moved` means that an existing file or folder was renamed to `name`.
    """

    folder: bytes
    name: bytes
    kind: FileEventKind
    purpose: WatchPurpose
    moved: bool = False


class EventOverflow(Struct, frozen=True):
    """Events were lost, so everything may have changed."""


FileEvents = tuple[FileEvent | EventOverflow, ...]
# The watcher's thread creates a resolver, and the owner of the watcher calls it, because only the
# owner may look up paths. A resolver returns no event if the watch has ended, and several events
# if the folder has several paths.
EventResolver = Callable[[], FileEvents]
PostResolver = Callable[[EventResolver], None]


def resolve_overflow() -> FileEvents:
    """Return the event for an overflow."""
    return (EventOverflow(),)


class Watcher(Protocol):
    """Watches folders one by one. One thread, the owner, calls all methods."""

    def start(self) -> None:
        """Start to post events."""

    def watch(self, folder: bytes, purpose: WatchPurpose) -> WatchOutcome:
        """Watch a folder, but nothing below it. A second call renews the watch."""

    def unwatch(self, folder: bytes, purpose: WatchPurpose) -> None:
        """Stop watching a folder for this purpose. Do nothing if it was not watched."""

    def set_project_files(self, files: ProjectFiles) -> None:
        """Also report when files with these names are added or removed."""

    def count(self) -> int:
        """Return the number of watches that the system holds for this watcher."""

    def stop(self) -> None:
        """End all watches and threads."""
