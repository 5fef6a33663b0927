"""Reserve a range of revision numbers that no earlier daemon has used.

A client that keeps a list by its revision must not take a later daemon's list for the one it has.
The clock alone would nearly do, as a set changes less than once in a millisecond, but clocks are
set back. So each daemon writes down once, before anybody can ask, how far it may count. Where the
disk refuses that, or the file was lost, the clock is what is left.
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
# The changes that one life of a daemon has room for: each is a synced write, so these are days.
RESERVED_REVISIONS = 1 << 28
# What JSON carries as a number without loss: a file that says more is damaged.
_LARGEST = 1 << 52
_SIZE = 32


def first_revision(state: Path, now: datetime) -> int:
    """The number to begin with; kept in the folder `state`, which the caller has locked."""
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
        log.warning("how far revisions count is not written down: %s", error)
        return clock


def _reserve(fd: int, clock: int) -> int:
    used = 0
    with suppress(ValueError):
        used = int(os.pread(fd, _SIZE, 0))
    first = max(clock, used + 1) if used < _LARGEST else clock
    # Always as long, in place: it must not need a new block on a full disk.
    os.pwrite(fd, b"%-*d\n" % (_SIZE - 1, first + RESERVED_REVISIONS), 0)
    sync(fd)
    return first
