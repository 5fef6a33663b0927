"""Keep a small file from which shells read how many projects are pending, and the focus.

A shell reads the file at each prompt with its builtins, so that it starts no process. The file has
one line: the process id of the daemon, the number of pending projects, and the focus if there is
one. `shell/` has the readers.

The daemon removes the file when it stops. A daemon that crashes cannot do that, so the readers
ignore the file if no process has its id.

Shells expand text in prompts, such as `%F` or `$(...)`. So the tag in the file has only characters
that no shell expands.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress

import anyio
from anyio import to_thread

from rootsd.core.catalog import Catalog, Count
from rootsd.core.model import Focus
from rootsd.core.throttle import TokenBucket
from rootsd.places.runtime_dir import RuntimeDir
from rootsd.state.ledger import Ledger

log = logging.getLogger(__name__)

TAG_LIMIT = 32
_PLAIN = frozenset("._+@:-")
_OTHER = "_"


def prompt_line(pid: int, pending: int, tag: str | None) -> str:
    """Return the line of the file."""
    words = [str(pid), str(pending)]
    if tag is not None:
        words.append(plain_tag(tag))
    return " ".join(words) + "\n"


def plain_tag(tag: str) -> str:
    """Return a tag with `_` for each character that a shell might expand in a prompt."""
    return "".join(c if c.isalnum() or c in _PLAIN else _OTHER for c in tag[:TAG_LIMIT])


def writes() -> TokenBucket:
    """Return the limit on writes. A person's command is on the disk before the next prompt."""
    return TokenBucket(burst=20, per_second=5)


class PromptFile:
    """Keeps the file current. `folder` returns the runtime folder, which may change.

    It writes a few changes at once, and then as often as `limit` allows.
    """

    def __init__(
        self,
        ledger: Ledger,
        folder: Callable[[], RuntimeDir],
        clock: Callable[[], float] = time.monotonic,
        limit: TokenBucket | None = None,
    ) -> None:
        self._ledger = ledger
        self._folder = folder
        self._clock = clock
        self._limit = limit or writes()
        self._written: tuple[bytes, str] | None = None

    async def keep(self) -> None:
        """Write each change as long as the daemon runs, and then remove the file."""
        try:
            while True:
                catalog, focus = self._ledger.catalog, self._ledger.focus
                wanted = self._wanted(catalog, focus)
                if wanted != self._written:
                    if pause := self._limit.wait(self._clock()):
                        with anyio.move_on_after(pause):
                            await anyio.Event().wait()
                        continue
                    await self._write(wanted)
                await self._ledger.wait_for_catalog_or_focus(catalog, focus)
        finally:
            if self._written is not None:
                with suppress(FileNotFoundError):
                    os.unlink(self._written[0])

    def _wanted(self, catalog: Catalog, focus: Focus) -> tuple[bytes, str]:
        line = prompt_line(os.getpid(), catalog.counts[Count.PENDING], focus.tag)
        return self._folder().prompt_file, line

    async def _write(self, wanted: tuple[bytes, str]) -> None:
        try:
            await to_thread.run_sync(_replace, *wanted)
        except OSError as error:
            log.info("shell prompts are not up to date: %s", error)
        else:
            self._written = wanted


def _replace(file: bytes, line: str) -> None:
    """Replace the file, so that no reader sees a part of it. Raises OSError."""
    fresh = file + b".new"
    with suppress(FileNotFoundError):
        os.unlink(fresh)  # a daemon that crashed may have left it
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(fresh, flags, 0o600), "w", encoding="utf-8") as stream:
        stream.write(line)
    os.replace(fresh, file)
