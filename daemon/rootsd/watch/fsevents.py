"""Watch whole trees on macOS with FSEvents.

FSEvents is recursive: one stream covers a parent and reports every change below it, even inside
repositories. So the watcher first drops events in folders that nobody watches.

rootsd uses watchdog's stream, but not its event handler. That handler stats each path and ignores
the flags for lost events. Source: FSEventStreamEventFlags in Apple's File System Events reference.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from rootsd.disk.markers import ProjectFiles, is_repository_marker
from rootsd.watch.events import (
    FileEvent,
    FileEventKind,
    FileEvents,
    PostResolver,
    WatchOutcome,
    WatchPurpose,
    resolve_overflow,
)

# kFSEventStreamEventFlagMustScanSubDirs, ...UserDropped, ...KernelDropped
_EVENTS_DROPPED = 0x1 | 0x2 | 0x4
_ROOT_CHANGED = 0x20
# kFSEventStreamEventFlagMount, ...Unmount: everything below the reported folder has changed.
_MOUNTED = 0x40 | 0x80
_LATENCY_S = 0.01

StreamCallback = Callable[[Sequence[bytes], Sequence[int]], None]


class FSEventsStream(Protocol):
    """One FSEvents stream, running from its start to its stop."""

    def start(self) -> None:
        """Start the callbacks for all changes from now on. Raises if the stream cannot start."""

    def stop(self) -> None:
        """Stop the stream. It calls no callback after that."""


class FSEventsWatcher:
    """A `Watcher` on FSEvents.

    `open_stream(folder, callback)` creates a stream but does not start it. The watcher opens a
    stream for each frontier folder that no other stream covers; in practice, that is each parent.
    A stream also reports when a folder above it moves. Folders outside of all streams have to be
    polled. The stream's thread only finds the watched folder of each event and posts the event.
    """

    def __init__(
        self,
        post: PostResolver,
        open_stream: Callable[[bytes, StreamCallback], FSEventsStream] | None = None,
    ) -> None:
        self._post = post
        self._open_stream = open_stream or _watchdog_stream
        self._streams: dict[bytes, FSEventsStream] = {}
        self._watched: dict[bytes, set[WatchPurpose]] = {}
        self._started = False

    def start(self) -> None:
        """Start the streams that are open. Streams that are opened later start at once."""
        self._started = True
        for stream in self._streams.values():
            stream.start()

    def watch(self, folder: bytes, purpose: WatchPurpose) -> WatchOutcome:
        """Watch a folder. Open a stream for a frontier folder that no stream covers."""
        if not os.path.isdir(folder):
            return WatchOutcome.GONE
        if not self._is_covered(folder) and (
            purpose is not WatchPurpose.FRONTIER or not self._open(folder)
        ):
            return WatchOutcome.UNSUPPORTED
        self._watched.setdefault(folder, set()).add(purpose)
        return WatchOutcome.WATCHED

    def unwatch(self, folder: bytes, purpose: WatchPurpose) -> None:
        """Stop watching. The stream of a folder ends with the folder's last purpose."""
        purposes = self._watched.get(folder, set())
        purposes.discard(purpose)
        if purposes:
            return
        self._watched.pop(folder, None)
        stream = self._streams.pop(folder, None)
        if stream is not None:
            stream.stop()
            self._reopen_streams_below(folder)

    def _reopen_streams_below(self, folder: bytes) -> None:
        """Open streams for watched folders below a folder whose stream ended.

        This happens when a parent is removed that contains another parent.
        """
        inside = folder.rstrip(b"/") + b"/"
        for path in sorted(self._watched):
            frontier = WatchPurpose.FRONTIER in self._watched[path]
            if frontier and path.startswith(inside) and not self._is_covered(path):
                self._open(path)

    def _open(self, folder: bytes) -> bool:
        """Open a stream for `folder` and return whether it runs."""
        stream = self._open_stream(folder, self._post_events)
        if self._started:
            try:
                stream.start()
            except (OSError, RuntimeError, SystemError):
                return False  # the system has no more streams; watchdog raises one of these
        self._streams[folder] = stream
        return True

    def set_project_files(self, files: ProjectFiles) -> None:
        """Do nothing, because this watcher reports every name."""

    def count(self) -> int:
        """Return the number of open streams."""
        return len(self._streams)

    def stop(self) -> None:
        """Stop all streams."""
        for stream in self._streams.values():
            stream.stop()
        self._streams.clear()

    def _is_covered(self, folder: bytes) -> bool:
        prefixes = (stream.rstrip(b"/") + b"/" for stream in self._streams)
        return folder in self._streams or any(folder.startswith(prefix) for prefix in prefixes)

    def _post_events(self, paths: Sequence[bytes], flags: Sequence[int]) -> None:
        """Post the events of one callback. Runs in a stream's thread."""
        if any(flag & (_EVENTS_DROPPED | _MOUNTED) for flag in flags):
            self._post(resolve_overflow)
            return
        for path, flag in zip(paths, flags, strict=True):
            folder, name = os.path.split(path.rstrip(b"/"))
            if path in self._watched and flag & _ROOT_CHANGED:
                self._post(partial(self._resolve, path, b""))
            if folder in self._watched:
                self._post(partial(self._resolve, folder, name))

    def _resolve(self, folder: bytes, name: bytes) -> FileEvents:
        purposes = self._watched.get(folder, ())
        return tuple(
            _file_event(folder, name, purpose)
            for purpose in purposes
            if purpose is not WatchPurpose.MARKERS or is_repository_marker(name)
            # A watch for `FRONTIER` reports each file that is written.
            if purpose is not WatchPurpose.MEMBERS
        )


def _file_event(folder: bytes, name: bytes, purpose: WatchPurpose) -> FileEvent:
    """Return the event of a change.

    FSEvents merges the flags of several changes and loses their order. So any change may mean that
    the entry was replaced.
    """
    match purpose:
        case WatchPurpose.PROGRESS:
            return FileEvent(folder, name, FileEventKind.ADDED, purpose, moved=True)
        case WatchPurpose.FRONTIER if name:
            return FileEvent(folder, name, FileEventKind.ADDED, purpose)
        case WatchPurpose.MARKERS if name:
            return FileEvent(folder, name, FileEventKind.REMOVED, purpose)
        case _:
            return FileEvent(folder, b"", FileEventKind.SELF, purpose)


if sys.platform == "darwin":
    from watchdog.observers.api import EventQueue, ObservedWatch
    from watchdog.observers.fsevents import FSEventsEmitter

    class _Emitter(FSEventsEmitter):
        """watchdog's stream and thread, with a callback that gets the raw paths and flags."""

        def __init__(self, folder: bytes, callback: StreamCallback) -> None:
            watch = ObservedWatch(os.fsdecode(folder), recursive=True)
            super().__init__(EventQueue(), watch, latency=_LATENCY_S)
            self._callback = callback

        def events_callback(
            self,
            paths: list[bytes],
            inodes: list[int],  # noqa: ARG002
            flags: list[int],
            ids: list[int],  # noqa: ARG002
        ) -> None:
            """Pass on what FSEvents reports. Some versions pass the paths as text."""
            self._callback([os.fsencode(path) for path in paths], flags)

    def _watchdog_stream(folder: bytes, callback: StreamCallback) -> FSEventsStream:
        return _Emitter(folder, callback)

else:

    def _watchdog_stream(folder: bytes, callback: StreamCallback) -> FSEventsStream:  # noqa: ARG001
        raise OSError(f"FSEvents exists only on macOS, not on {sys.platform}")
