"""The machine's policy in force, which follows its file.

Unlike the configuration, a file that cannot be used takes effect: it denies everything
(`rootsd.config.policy`). So the daemon looks at a broken file again every few seconds. `chmod` and
`chown` may repair it, and a watch does not report them.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Awaitable, Callable
from datetime import datetime

import anyio
from anyio import TASK_STATUS_IGNORED, to_thread
from anyio.abc import TaskStatus

from rootsd.config.policy import LoadedPolicy, load_policy
from rootsd.core.policy import MachinePolicy
from rootsd.core.timestamps import rfc3339
from rootsd.core.wall import ProtectionPolicy, WallSettings
from rootsd.daemon.watched_file import WatchedFile
from rootsd.wire.daemon import PolicyStatus

log = logging.getLogger(__name__)

RETRY_S = 5.0

ApplyPolicy = Callable[[MachinePolicy, str], Awaitable[None]]
"""Puts a policy in force. The text says what changed, for the log."""


class ReloadablePolicy:
    """The policy in force, which follows changes of `file`. Make it in the event loop.

    `loaded` is the policy at the start.
    """

    def __init__(
        self,
        file: bytes,
        loaded: LoadedPolicy,
        now: Callable[[], datetime],
        *,
        retry_s: float = RETRY_S,
    ) -> None:
        self._file = file
        self._loaded = loaded
        self._now = now
        self._retry_s = retry_s
        self._read_at = now()
        self._watched = WatchedFile(file)
        self._reload_lock = anyio.Lock()
        if loaded.policy.is_present:
            log.log(_level(loaded.policy), "policy read: %s", loaded.policy.summary)

    @property
    def policy(self) -> MachinePolicy:
        """Return the policy in force."""
        return self._loaded.policy

    def status(self) -> PolicyStatus | None:
        """Return what the policy says and when it was read, or None if there is no policy."""
        policy = self.policy
        if not policy.is_present:
            return None
        return PolicyStatus(
            file=os.fsdecode(self._file),
            read_at=rfc3339(self._read_at),
            refused=len(policy.refused),
            denied=len(policy.denied),
            approved=len(policy.approved),
            requires_wall=policy.must_confine,
            error=policy.problem or None,
            remedy=self._loaded.remedy or None,
        )

    def wall_settings(self, settings: WallSettings) -> WallSettings:
        """Return the user's settings for the wall without those that the policy forbids."""
        if not self.policy.must_confine:
            return settings
        protect = settings.protect
        if protect is ProtectionPolicy.NONE:
            protect = ProtectionPolicy.UNTRACKED
        return settings._replace(read=(), write=(), keep=(), device=(), protect=protect)

    async def reload(self, apply: ApplyPolicy) -> None:
        """Read the file again."""
        async with self._reload_lock:
            loaded = await to_thread.run_sync(load_policy, self._file)
            if loaded == self._loaded:
                return
            summary = loaded.policy.summary
            # A policy that narrows must not wait, and `apply` changes nothing else.
            self._loaded, self._read_at = loaded, self._now()
            log.log(_level(loaded.policy), "policy changed: %s", summary)
            await apply(loaded.policy, summary)

    async def keep_reloading(
        self, apply: ApplyPolicy, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED
    ) -> None:
        """Read the file whenever it changes, as long as the daemon runs."""

        async def read() -> None:
            await self.reload(apply)

        def retry_s() -> float:
            return self._retry_s if self.policy.problem else math.inf

        await self._watched.follow(read, retry_s=retry_s, task_status=task_status)


def _level(policy: MachinePolicy) -> int:
    return logging.ERROR if policy.problem else logging.INFO
