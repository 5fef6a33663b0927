"""Record what agents tried, until a person has seen it.

An attempt goes into the log of the daemon and into the audit log. A file keeps the number of
attempts that no person has seen, and the last one. The files only inform people: no decision
depends on them. So they are neither synced nor protected, and one that cannot be read counts as
empty.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from rootsd.core.changes import AuditNote, AuditRecord, ChangeVerb
from rootsd.core.errors import RootsdError
from rootsd.core.guard import Caller, describe_caller
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor, ActorKind
from rootsd.core.timestamps import rfc3339
from rootsd.core.typed_json import decode_typed, encode_typed
from rootsd.files.private_files import open_private_file, unusable_error
from rootsd.net.rate_limited_log import LogThrottle
from rootsd.wire.daemon import RefusedStatus

log = logging.getLogger(__name__)

REFUSED_FILE = "refused.json"
AGENT_COMMANDS_FILE = "agent-commands.json"
_MAX_FILE_BYTES = 1 << 16


class AttemptSummary:
    """The attempts that no person has seen yet, in a file: their number and the last one."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.unseen = self._read()
        """The number of attempts and the last one, or None if there are none."""

    def add(self, *, at: str, what: str, by: str, why: str) -> None:
        """Add an attempt. `at` is an RFC 3339 time; the other texts are safe to print."""
        count = self.unseen["count"] if self.unseen else 0
        self.unseen = RefusedStatus(count=count + 1, at=at, what=what, by=by, why=why)
        self._write(encode_typed(self.unseen))

    def mark_seen(self) -> None:
        """Empty the summary, because a person has seen it."""
        if self.unseen is not None:
            self.unseen = None
            self._write(b"")

    def _write(self, content: bytes) -> None:
        try:
            fd = open_private_file(self._file)
            try:
                os.pwrite(fd, content, 0)
                os.ftruncate(fd, len(content))
            except OSError as error:
                raise unusable_error(self._file, error) from error
            finally:
                os.close(fd)
        except RootsdError as error:
            log.warning("the summary of commands was not saved: %s", error)

    def _read(self) -> RefusedStatus | None:
        with suppress(RootsdError, OSError, ValueError):
            fd = open_private_file(self._file, os.O_RDONLY)
            try:
                status = decode_typed(os.pread(fd, _MAX_FILE_BYTES, 0), RefusedStatus)
            finally:
                os.close(fd)
            return RefusedStatus(
                count=status["count"],
                at=safe_label(status["at"], limit=None),
                what=safe_label(status["what"], limit=None),
                by=safe_label(status["by"], limit=None),
                why=safe_label(status["why"], limit=None),
            )
        return None


class AttemptRecorder:
    """Records attempts of one kind. `note` saves an event in the store."""

    def __init__(
        self,
        verb: ChangeVerb,
        summary: AttemptSummary,
        note: Callable[[AuditRecord], Awaitable[None]],
        clock: Callable[[], float],
        now: Callable[[], datetime],
    ) -> None:
        self._verb = verb
        self._summary = summary
        self._note = note
        self._now = now
        self._throttle = LogThrottle(clock)

    @property
    def unseen(self) -> RefusedStatus | None:
        """The number of attempts that no person has seen and the last one, or None."""
        return self._summary.unseen

    def mark_seen(self) -> None:
        """Note that a person has seen the summary."""
        self._summary.mark_seen()

    async def add(self, words: str, caller: Caller, why: str) -> None:
        """Record the command `words`, safe to show.

        If there are very many, the store gets a few, with the number of dropped ones.
        """
        by = describe_caller(caller)
        log.warning("%s: %s (%s): %s", self._verb.value, words, by, why)
        self._summary.add(at=rfc3339(self._now()), what=words, by=by, why=why)
        missed = self._throttle.take()
        if not missed:
            return
        more = f" ({missed - 1} more like it)" if missed > 1 else ""
        actor = Actor(ActorKind.CALLER, f"{by}: {why}")
        try:
            await self._note(AuditNote(self._verb, words + more, actor))
        except RootsdError as error:
            log.warning("the store did not record a command: %s", error)
