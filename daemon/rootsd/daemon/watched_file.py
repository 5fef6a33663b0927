"""Read a file again whenever it changes.

An editor writes a file in several steps, so the file is read once no program has written to it for
a moment. People keep such files elsewhere and link to them, so the folder of each symlink on the
way is watched, too.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Awaitable, Callable, Iterator

import anyio
from anyio import TASK_STATUS_IGNORED, to_thread
from anyio.abc import TaskStatus

from rootsd.disk.links import MAX_LINKS
from rootsd.watch.backend import best_watcher
from rootsd.watch.events import EventResolver, FileEvent, PostResolver, Watcher, WatchPurpose

DEBOUNCE_S = 0.1


class WatchedFile:
    """Follows the changes of `file`, which need not exist. Make it in the event loop."""

    def __init__(
        self,
        file: bytes,
        *,
        watcher: Callable[[PostResolver], Watcher] = best_watcher,
        debounce_s: float = DEBOUNCE_S,
    ) -> None:
        self._file = file
        self._make_watcher = watcher
        self._debounce_s = debounce_s
        self._loop = asyncio.get_running_loop()
        self._names: dict[bytes, set[bytes]] = {}
        self._changed = anyio.Event()

    async def follow(
        self,
        read: Callable[[], Awaitable[None]],
        *,
        retry_s: Callable[[], float] = lambda: math.inf,
        task_status: TaskStatus[None] = TASK_STATUS_IGNORED,
    ) -> None:
        """Call `read` now, and after each change, for as long as the daemon runs.

        Also call it once `retry_s` seconds have passed without a change: a watch does not report
        a new owner or mode.
        It counts as started after the first call. The file may have changed before the watch.
        """
        watcher = self._make_watcher(self._post)
        watcher.start()
        try:
            self._watch(watcher)
            await read()
            task_status.started()
            while True:
                with anyio.move_on_after(retry_s()):
                    await self._changed.wait()
                await self._debounce()
                self._watch(watcher)
                await read()
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(watcher.stop)

    async def _debounce(self) -> None:
        """Wait until no change came for `debounce_s` seconds."""
        while self._changed.is_set():
            self._changed = anyio.Event()
            with anyio.move_on_after(self._debounce_s):
                await self._changed.wait()

    def _post(self, signal: EventResolver) -> None:
        """Pass events to the event loop; called in the watcher's thread."""
        self._loop.call_soon_threadsafe(self._on_events, signal)

    def _on_events(self, signal: EventResolver) -> None:
        for item in signal():
            if not isinstance(item, FileEvent) or item.name in (
                b"",
                *self._names.get(item.folder, ()),
            ):
                self._changed.set()

    def _watch(self, watcher: Watcher) -> None:
        """Watch every folder in which a change may change what the file contains."""
        names: dict[bytes, set[bytes]] = {}
        for each in _link_chain(self._file):
            folder, name = _nearest_folder(each)
            names.setdefault(folder, set()).add(name)
        for folder in self._names.keys() - names.keys():
            watcher.unwatch(folder, WatchPurpose.PROGRESS)
        for folder in names:
            watcher.watch(folder, WatchPurpose.PROGRESS)
        self._names = names


def _link_chain(file: bytes) -> Iterator[bytes]:
    """Yield the file and the target of each symlink: people keep their configuration elsewhere."""
    for _ in range(MAX_LINKS):
        yield file
        try:
            file = os.path.join(os.path.dirname(file), os.readlink(file))
        except OSError:
            return


def _nearest_folder(file: bytes) -> tuple[bytes, bytes]:
    """Return the folder of `file`, without symlinks, and the name of the file in it.

    If that folder is missing, return the nearest folder above it, and the name missing there.
    """
    folder, name = os.path.split(file)
    while not os.path.isdir(folder):
        folder, name = os.path.split(folder)
    return os.path.realpath(folder), name
