"""Load the configuration at startup, and reload it on request and when its file changes.

What cannot be used changes nothing: what was read last stays in force, and `status` says so. An
editor writes a file in several steps, so it is read once it has been left alone for a moment.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime

import anyio
from anyio import TASK_STATUS_IGNORED, to_thread
from anyio.abc import TaskStatus

from rootsd.core.changes import ChangeVerb, ParentChange
from rootsd.core.errors import BadConfig
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor, Parent
from rootsd.core.timestamps import rfc3339
from rootsd.system.config import Config, read_config
from rootsd.watch.backend import best_watcher
from rootsd.watch.events import EventResolver, FileEvent, PostResolver, Watcher, WatchPurpose
from rootsd.wire.daemon import ConfigStatus

log = logging.getLogger(__name__)

DEBOUNCE_S = 0.1
_MAX_LINKS = 40  # as many as the kernel follows, see path_resolution(7)

ApplyConfig = Callable[[Config, Sequence[ParentChange]], Awaitable[None]]


class ReloadableConfig:
    """What `file` said when it was read last; first, `config`. Make it in the event loop.

    Whoever asks hands in what makes a configuration the one in force. `settled` is for how long,
    in seconds, the file has to be left alone before it is read.
    """

    def __init__(
        self,
        file: bytes,
        config: Config,
        now: Callable[[], datetime],
        *,
        watcher: Callable[[PostResolver], Watcher] = best_watcher,
        settled: float = DEBOUNCE_S,
    ) -> None:
        self._file = file
        self._config = config
        self._now = now
        self._make_watcher = watcher
        self._settled = settled
        self._read_at = now()
        self._changes: list[str] = []
        self._error: str | None = None
        self._loop = asyncio.get_running_loop()
        self._names: dict[bytes, set[bytes]] = {}
        self._stirred = anyio.Event()
        self._one_at_a_time = anyio.Lock()

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self._config

    def status(self) -> ConfigStatus:
        """Which file is in force since when, what that changed, and what is wrong with it now."""
        return ConfigStatus(
            file=os.fsdecode(self._file),
            read_at=rfc3339(self._read_at),
            checksum=self._config.checksum,
            changes=list(self._changes),
            error=self._error,
        )

    def degraded(self) -> list[str]:
        """A sentence where the file cannot be used."""
        if self._error is None:
            return []
        return [f"{self._error}; what was read before stays in force (rootsd config check)"]

    async def reload(self, take_over: ApplyConfig, actor: Actor | None = None) -> None:
        """Read the file again, on the command of `actor`; None where the file itself changed.

        Raises BadConfig, and then all stays as it is.
        """
        async with self._one_at_a_time:
            try:
                config = await to_thread.run_sync(read_config, self._file)
            except BadConfig as error:
                self._error = error.message
                raise
            self._error = None
            if config.checksum == self._config.checksum:
                return
            changes = describe_changes(self._config, config)
            await take_over(config, parent_changes(self._config, config, actor))
            self._config, self._read_at, self._changes = config, self._now(), changes
            log.info("configuration read: %s", "; ".join(changes) or "it means what it meant")

    async def keep_following(
        self, take_over: ApplyConfig, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED
    ) -> None:
        """Read the file whenever it changes, for as long as the daemon runs.

        Started once what changed meanwhile is in force: a command that comes after that is the
        one whose change is read, so it counts as the command's.
        """
        watcher = self._make_watcher(self._post)
        watcher.start()
        try:
            # Also at first: it may have changed between being read and being watched.
            await self._read_and_watch(watcher, take_over)
            task_status.started()
            while True:
                await self._stirred.wait()
                await self._let_settle()
                await self._read_and_watch(watcher, take_over)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(watcher.stop)

    async def _read_and_watch(self, watcher: Watcher, take_over: ApplyConfig) -> None:
        self._watch(watcher)
        try:
            await self.reload(take_over)
        except BadConfig as error:
            log.error("%s; what was read before stays in force", error)  # noqa: TRY400 - an expected error needs no traceback

    async def _let_settle(self) -> None:
        """Return when nothing has happened for a moment."""
        while self._stirred.is_set():
            self._stirred = anyio.Event()
            with anyio.move_on_after(self._settled):
                await self._stirred.wait()

    def _post(self, signal: EventResolver) -> None:
        """Called in the watcher's thread."""
        self._loop.call_soon_threadsafe(self._heed, signal)

    def _heed(self, signal: EventResolver) -> None:
        for item in signal():
            if not isinstance(item, FileEvent) or item.name in (
                b"",
                *self._names.get(item.folder, ()),
            ):
                self._stirred.set()

    def _watch(self, watcher: Watcher) -> None:
        """Watch all folders in which a change may give the file another content."""
        names: dict[bytes, set[bytes]] = {}
        for each in _link_chain(self._file):
            folder, name = _nearest_folder(each)
            names.setdefault(folder, set()).add(name)
        for folder in self._names.keys() - names.keys():
            watcher.unwatch(folder, WatchPurpose.AT_WORK)
        for folder in names:
            watcher.watch(folder, WatchPurpose.AT_WORK)
        self._names = names


def describe_changes(old: Config, new: Config) -> list[str]:
    """What `new` changes, a few words each."""
    return [*_parent_differences(old, new), *_setting_differences(old, new)]


def parent_changes(old: Config, new: Config, actor: Actor | None) -> list[ParentChange]:
    """Return the parents that `new` adds and removes, in its order."""
    before = {parent.path for parent in old.parents}
    after = {parent.path for parent in new.parents}
    return [
        *(
            ParentChange(parent.path, ChangeVerb.PARENT_ADDED, actor)
            for parent in new.parents
            if parent.path not in before
        ),
        *(
            ParentChange(parent.path, ChangeVerb.PARENT_REMOVED, actor)
            for parent in old.parents
            if parent.path not in after
        ),
    ]


def _parent_differences(old: Config, new: Config) -> Iterator[str]:
    before = {parent.path: parent for parent in old.parents}
    after = {parent.path: parent for parent in new.parents}
    yield from (f"parent {_shown(path)} added" for path in after if path not in before)
    yield from (f"parent {_shown(path)} removed" for path in before if path not in after)
    for path, parent in after.items():
        if path in before and parent != before[path]:
            keys = ", ".join(_changed_keys(before[path], parent))
            yield f"parent {_shown(path)} changed: {keys}"


def _changed_keys(old: Parent, new: Parent) -> Iterator[str]:
    keys = ("depth", "skip", "nested", "project_files")
    return (key for key in keys if getattr(old, key) != getattr(new, key))


def _setting_differences(old: Config, new: Config) -> Iterator[str]:
    tables = {
        "roots.refuse": (old.refused, new.refused),
        "roots.allow": (old.allowed, new.allowed),
        "sessions": (old.sessions, new.sessions),
        "approval.agents": (old.approval.agents, new.approval.agents),
        "approval.markers": (old.approval.markers, new.approval.markers),
    }
    yield from (f"{key} changed" for key, (was, is_now) in tables.items() if was != is_now)
    if old.approval.guard != new.approval.guard:
        yield "approval.guard changed, which counts for a new store only: rootsd guard MODE"


def _link_chain(file: bytes) -> Iterator[bytes]:
    """The file, and what each link leads to: people keep their configuration elsewhere."""
    for _ in range(_MAX_LINKS):
        yield file
        try:
            file = os.path.join(os.path.dirname(file), os.readlink(file))
        except OSError:
            return


def _nearest_folder(file: bytes) -> tuple[bytes, bytes]:
    """The folder that `file` is in, without links, and its name there; where that folder is
    missing, the nearest above it and the name of what is missing in that."""
    folder, name = os.path.split(file)
    while not os.path.isdir(folder):
        folder, name = os.path.split(folder)
    return os.path.realpath(folder), name


def _shown(path: bytes) -> str:
    return safe_label(path, limit=None)
