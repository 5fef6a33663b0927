"""Reserve a range of revision numbers that no earlier daemon has used.

A client that stores a list with its revision must not mistake a later daemon's list for it. The
clock alone would nearly do, because a set changes less than once in a millisecond, but clocks are
set back. So each daemon reserves a range once, before it answers anything. If the disk refuses, or
the file was lost, the daemon uses the clock alone.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from rootsd.core.errors import RootsdError
from rootsd.system.private_files import open_private_file, sync, unusable_error

log = logging.getLogger(__name__)

REVISIONS_NAME = "revisions"
# Room for the changes of one daemon. Each change is a synced write, so this lasts for days.
RESERVED_REVISIONS = 1 << 28
# The largest number that JSON carries without loss. A file with a larger one is damaged.
_LARGEST = 1 << 52
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
    first = max(clock, used + 1) if used < _LARGEST else clock
    # Always the same length and in place, so that a full disk does not refuse it.
    os.pwrite(fd, b"%-*d\n" % (_SIZE - 1, first + RESERVED_REVISIONS), 0)
    sync(fd)
    return first
