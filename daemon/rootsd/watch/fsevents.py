"""Watch whole trees on macOS with FSEvents.

FSEvents is recursive: one stream covers a parent, and every change below it arrives, also inside
repositories. What lies in no watched folder is dropped by name before anything else is done.
watchdog's own handling stats each path and never looks at the flags that say events were lost, so
only its stream is used. Source: FSEventStreamEventFlags in Apple's File System Events reference.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from rootsd.disk.markers import ProjectFiles
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
# kFSEventStreamEventFlagMount, ...Unmount: below the folder that it tells of all is another.
_MOUNTED = 0x40 | 0x80
_LATENCY_S = 0.01

StreamCallback = Callable[[Sequence[bytes], Sequence[int]], None]


class FSEventsStream(Protocol):
    """One FSEvents stream, running from its start to its stop."""

    def start(self) -> None:
        """Begin to call back; from its return on nothing is missed. Raises what says why not."""

    def stop(self) -> None:
        """End; no call comes afterwards."""


class FSEventsWatcher:
    """A `Watcher` on FSEvents. `open_stream(folder, callback)` makes a stream, not yet started.

    A stream is opened for a folder of the frontier that lies below no other stream: in practice
    for each parent. A stream tells of the move of folders above it, too; what no stream covers is
    left to sweeps. The stream's thread only looks names up and hands over.
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
        """Start the streams of what is watched already; later ones start at once."""
        self._started = True
        for stream in self._streams.values():
            stream.start()

    def watch(self, folder: bytes, purpose: WatchPurpose) -> WatchOutcome:
        """Watch a folder; a frontier folder opens a stream unless one above covers it."""
        if not os.path.isdir(folder):
            return WatchOutcome.GONE
        if not self._covered(folder) and (
            purpose is not WatchPurpose.FRONTIER or not self._open(folder)
        ):
            return WatchOutcome.UNSUPPORTED
        self._watched.setdefault(folder, set()).add(purpose)
        return WatchOutcome.YES

    def unwatch(self, folder: bytes, purpose: WatchPurpose) -> None:
        """Stop; a stream goes with the last folder that it is for."""
        purposes = self._watched.get(folder, set())
        purposes.discard(purpose)
        if purposes:
            return
        self._watched.pop(folder, None)
        stream = self._streams.pop(folder, None)
        if stream is not None:
            stream.stop()
            self._cover_again(folder)

    def _cover_again(self, folder: bytes) -> None:
        """Open streams for what is watched below a folder whose stream ended: a parent inside
        another one that was given up."""
        inside = folder.rstrip(b"/") + b"/"
        for path in sorted(self._watched):
            frontier = WatchPurpose.FRONTIER in self._watched[path]
            if frontier and path.startswith(inside) and not self._covered(path):
                self._open(path)

    def _open(self, folder: bytes) -> bool:
        """Whether there is a stream for `folder` now, and what happens from now on is told."""
        stream = self._open_stream(folder, self._happened)
        if self._started:
            try:
                stream.start()
            except (OSError, RuntimeError, SystemError):
                return False  # the system starts no more of them, as watchdog tells it
        self._streams[folder] = stream
        return True

    def heed(self, files: ProjectFiles) -> None:
        """All names are told."""

    def count(self) -> int:
        """How many streams are open."""
        return len(self._streams)

    def stop(self) -> None:
        """Stop all streams."""
        for stream in self._streams.values():
            stream.stop()
        self._streams.clear()

    def _covered(self, folder: bytes) -> bool:
        prefixes = (stream.rstrip(b"/") + b"/" for stream in self._streams)
        return folder in self._streams or any(folder.startswith(prefix) for prefix in prefixes)

    def _happened(self, paths: Sequence[bytes], flags: Sequence[int]) -> None:
        """Called in a stream's thread."""
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
        return tuple(_file_event(folder, name, purpose) for purpose in purposes)


def _file_event(folder: bytes, name: bytes, purpose: WatchPurpose) -> FileEvent:
    """Flags are merged over time and tell no order: every change may be a replacement."""
    match purpose:
        case WatchPurpose.AT_WORK:
            return FileEvent(folder, name, FileEventKind.CAME, purpose, moved=True)
        case WatchPurpose.FRONTIER if name:
            return FileEvent(folder, name, FileEventKind.CAME, purpose)
        case _:
            return FileEvent(folder, b"", FileEventKind.ITSELF, purpose)


if sys.platform == "darwin":
    from watchdog.observers.api import EventQueue, ObservedWatch
    from watchdog.observers.fsevents import FSEventsEmitter

    class _Emitter(FSEventsEmitter):
        """watchdog's stream and thread, with what it hears passed on as it came."""

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
            """Called by FSEvents; paths may be text, depending on the version."""
            self._callback([os.fsencode(path) for path in paths], flags)

    def _watchdog_stream(folder: bytes, callback: StreamCallback) -> FSEventsStream:
        return _Emitter(folder, callback)

else:

    def _watchdog_stream(folder: bytes, callback: StreamCallback) -> FSEventsStream:  # noqa: ARG001
        raise OSError(f"FSEvents is a part of macOS, not of {sys.platform}")
