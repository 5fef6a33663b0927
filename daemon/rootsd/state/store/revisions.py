"""Reserve a range of revision numbers that no earlier daemon has used.

A client may store a list of roots with its revision. A later daemon must not use that revision for
another list. Milliseconds of the clock would be nearly good enough, because a set changes less
than once in a millisecond. But people set clocks back. So each daemon reserves a range of numbers,
once, before its first answer. If the disk refuses the write, or the file is lost, the daemon uses
the clock.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from rootsd.core.errors import RootsdError
from rootsd.files.private_files import open_private_file, sync, unusable_error

log = logging.getLogger(__name__)

REVISIONS_NAME = "revisions"
# Enough for the changes of one daemon for days, because each change is a synced write.
RESERVED_REVISIONS = 1 << 28
# JSON can represent this number exactly. A file with a larger one is damaged.
_MAX_REVISION = 1 << 52
_SIZE = 32


def first_revision(state: Path, now: datetime) -> int:
    """Return the first revision to use. It is recorded in `state`, which the caller has locked."""
    clock = max(int(now.timestamp() * 1000), 1)
    try:
        fd = open_private_file(state / REVISIONS_NAME)
        try:
            return _reserve(fd, clock)
        except OSError as error:
            raise unusable_error(state / REVISIONS_NAME, error) from error
        finally:
            os.close(fd)
    except RootsdError as error:
        log.warning("cannot reserve revision numbers: %s", error)
        return clock


def _reserve(fd: int, clock: int) -> int:
    used = 0
    with suppress(ValueError):
        used = int(os.pread(fd, _SIZE, 0))
    first = max(clock, used + 1) if used < _MAX_REVISION else clock
    # Write in place and with a fixed size, so that a full disk does not refuse it.
    os.pwrite(fd, b"%-*d\n" % (_SIZE - 1, first + RESERVED_REVISIONS), 0)
    sync(fd)
    return first
