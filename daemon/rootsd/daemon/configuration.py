"""Load the configuration at startup, and reload it on request and when its file changes.

A file that cannot be used changes nothing: the configuration read before stays in force, and
`rootsd status` reports the error. An editor writes a file in several steps, so the file is read
once no program has written to it for a moment.
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
_MAX_LINKS = 40  # as many links as the kernel follows, see path_resolution(7)

ApplyConfig = Callable[[Config, Sequence[ParentChange]], Awaitable[None]]


class ReloadableConfig:
    """The configuration in force, which follows changes of `file`. Make it in the event loop.

    `config` is the configuration at the start. The methods take the function that applies a new
    one. The file is read once no program has written to it for `debounce_s` seconds.
    """

    def __init__(
        self,
        file: bytes,
        config: Config,
        now: Callable[[], datetime],
        *,
        watcher: Callable[[PostResolver], Watcher] = best_watcher,
        debounce_s: float = DEBOUNCE_S,
    ) -> None:
        self._file = file
        self._config = config
        self._now = now
        self._make_watcher = watcher
        self._debounce_s = debounce_s
        self._read_at = now()
        self._changes: list[str] = []
        self._error: str | None = None
        self._loop = asyncio.get_running_loop()
        self._names: dict[bytes, set[bytes]] = {}
        self._changed = anyio.Event()
        self._reload_lock = anyio.Lock()

    @property
    def config(self) -> Config:
        """Return the configuration in force."""
        return self._config

    def status(self) -> ConfigStatus:
        """Return the file, when it was read, what that changed, and what is wrong with it now."""
        return ConfigStatus(
            file=os.fsdecode(self._file),
            read_at=rfc3339(self._read_at),
            checksum=self._config.checksum,
            changes=list(self._changes),
            error=self._error,
        )

    def degraded(self) -> list[str]:
        """Return a sentence if the file cannot be used."""
        if self._error is None:
            return []
        return [
            f"{self._error}; the configuration read before stays in force (rootsd config check)"
        ]

    async def reload(self, apply: ApplyConfig, actor: Actor | None = None) -> None:
        """Read the file again, at the command of `actor`; None if the file changed.

        Raises BadConfig, and then the old configuration stays in force.
        """
        async with self._reload_lock:
            try:
                config = await to_thread.run_sync(read_config, self._file)
            except BadConfig as error:
                self._error = error.summary
                raise
            self._error = None
            if config.checksum == self._config.checksum:
                return
            changes = describe_changes(self._config, config)
            await apply(config, parent_changes(self._config, config, actor))
            self._config, self._read_at, self._changes = config, self._now(), changes
            log.info("configuration read: %s", "; ".join(changes) or "no setting changed")

    async def keep_reloading(
        self, apply: ApplyConfig, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED
    ) -> None:
        """Read the file whenever it changes, as long as the daemon runs.

        It counts as started once earlier changes are in force. A change that a later command makes
        is then read by that command, and recorded as its own.
        """
        watcher = self._make_watcher(self._post)
        watcher.start()
        try:
            # Read it once now: it may have changed between the first read and the start of the
            # watch.
            await self._read_and_watch(watcher, apply)
            task_status.started()
            while True:
                await self._changed.wait()
                await self._debounce()
                await self._read_and_watch(watcher, apply)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(watcher.stop)

    async def _read_and_watch(self, watcher: Watcher, apply: ApplyConfig) -> None:
        self._watch(watcher)
        try:
            await self.reload(apply)
        except BadConfig as error:
            log.error("%s; the configuration read before stays in force", error.summary)  # noqa: TRY400 - an expected error needs no traceback

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


def describe_changes(old: Config, new: Config) -> list[str]:
    """Return the changes from `old` to `new`, a few words each."""
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
        "confine": (old.wall, new.wall),
        "notify": (old.notify, new.notify),
    }
    yield from (f"{key} changed" for key, (was, is_now) in tables.items() if was != is_now)
    if old.approval.guard != new.approval.guard:
        yield "approval.guard changed, which counts for a new store only: rootsd guard MODE"


def _link_chain(file: bytes) -> Iterator[bytes]:
    """Yield the file and the target of each symlink: people keep their configuration elsewhere."""
    for _ in range(_MAX_LINKS):
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


def _shown(path: bytes) -> str:
    return safe_label(path, limit=None)
