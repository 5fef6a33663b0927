"""Load the configuration at startup, and reload it on request and when its file changes.

A file that cannot be used changes nothing: the configuration read before stays in force, and
`rootsd status` reports the error.

The state folder has a copy of the text in force. So the next start can tell what changed while no
daemon ran, and the history gets an event for it: otherwise, undo would take back an earlier
command than the last one. The copy only informs people, and is not protected.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path

import anyio
from anyio import TASK_STATUS_IGNORED, to_thread
from anyio.abc import TaskStatus

from rootsd.config.configuration import MAX_BYTES, Config, parse_config, read_config
from rootsd.core.changes import AuditNote, ChangeVerb
from rootsd.core.errors import BadConfig, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor, Parent
from rootsd.core.paths import text_of
from rootsd.core.timestamps import rfc3339
from rootsd.daemon.watched_file import DEBOUNCE_S, WatchedFile
from rootsd.files.private_files import path_exists, read_private_file, replace_private_file
from rootsd.watch.backend import best_watcher
from rootsd.watch.events import PostResolver, Watcher
from rootsd.wire.daemon import ConfigStatus

log = logging.getLogger(__name__)

ApplyConfig = Callable[[Config, Sequence[AuditNote]], Awaitable[None]]

IN_FORCE_FILE = "config-in-force.toml"


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
        self._watched = WatchedFile(file, watcher=watcher, debounce_s=debounce_s)
        self._read_at = now()
        self._changes: list[str] = []
        self._error: str | None = None
        self._reload_lock = anyio.Lock()

    @property
    def config(self) -> Config:
        """Return the configuration in force."""
        return self._config

    def changes_since(self, state: Path) -> Sequence[AuditNote]:
        """Return what changed since a daemon last used the folder `state`, as edits of the file.

        Without a copy that can be read, nothing is known to have changed.
        """
        copy = state / IN_FORCE_FILE
        try:
            if not path_exists(copy):
                return ()
            earlier = parse_config(read_private_file(copy, MAX_BYTES).decode(), os.fsencode(copy))
        except (RootsdError, UnicodeDecodeError):
            return ()
        return recorded_changes(earlier, self._config, None)

    def keep_copy(self, state: Path, config: Config) -> None:
        """Keep the text of `config` in the folder `state`, unless the file has changed since."""
        try:
            text = Path(os.fsdecode(self._file)).read_bytes()
        except OSError:
            text = b""
        with suppress(RootsdError, UnicodeDecodeError):
            if parse_config(text.decode(), self._file).checksum == config.checksum:
                replace_private_file(state / IN_FORCE_FILE, text)

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
            await apply(config, recorded_changes(self._config, config, actor))
            self._config, self._read_at, self._changes = config, self._now(), changes
            log.info("configuration read: %s", "; ".join(changes) or "no setting changed")

    async def keep_reloading(
        self, apply: ApplyConfig, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED
    ) -> None:
        """Read the file whenever it changes, as long as the daemon runs.

        It counts as started once earlier changes are in force. A change that a later command makes
        is then read by that command, and recorded as its own.
        """
        await self._watched.follow(partial(self._reload_alone, apply), task_status=task_status)

    async def _reload_alone(self, apply: ApplyConfig) -> None:
        try:
            await self.reload(apply)
        except BadConfig as error:
            log.error("%s; the configuration read before stays in force", error.summary)  # noqa: TRY400 - an expected error needs no traceback


def describe_changes(old: Config, new: Config) -> list[str]:
    """Return the changes from `old` to `new`, a few words each."""
    return [*_parent_differences(old, new), *_setting_differences(old, new)]


def recorded_changes(old: Config, new: Config, actor: Actor | None) -> list[AuditNote]:
    """Return the parents that `new` adds and removes, in its order, and then all other changes."""
    others = [*_altered_parents(old, new), *_setting_differences(old, new)]
    return [
        *_parent_changes(old, new, actor),
        *(
            [AuditNote(ChangeVerb.CONFIGURATION_CHANGED, "; ".join(others), actor)]
            if others
            else ()
        ),
    ]


def _parent_changes(old: Config, new: Config, actor: Actor | None) -> list[AuditNote]:
    before = {parent.path for parent in old.parents}
    after = {parent.path for parent in new.parents}
    return [
        *(
            AuditNote(ChangeVerb.PARENT_ADDED, text_of(parent.path), actor)
            for parent in new.parents
            if parent.path not in before
        ),
        *(
            AuditNote(ChangeVerb.PARENT_REMOVED, text_of(parent.path), actor)
            for parent in old.parents
            if parent.path not in after
        ),
    ]


def _parent_differences(old: Config, new: Config) -> Iterator[str]:
    before = {parent.path: parent for parent in old.parents}
    after = {parent.path: parent for parent in new.parents}
    yield from (f"parent {_shown(path)} added" for path in after if path not in before)
    yield from (f"parent {_shown(path)} removed" for path in before if path not in after)
    yield from _altered_parents(old, new)


def _altered_parents(old: Config, new: Config) -> Iterator[str]:
    before = {parent.path: parent for parent in old.parents}
    for path, parent in {parent.path: parent for parent in new.parents}.items():
        if path in before and parent != before[path]:
            keys = ", ".join(_changed_keys(before[path], parent))
            yield f"parent {_shown(path)} changed: {keys}"


def _changed_keys(old: Parent, new: Parent) -> Iterator[str]:
    keys = ("depth", "skip", "nested", "project_files", "mounts")
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


def _shown(path: bytes) -> str:
    return safe_label(path, limit=None)
