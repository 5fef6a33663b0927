"""Find out at once whether any session behind the wall left a report.

An agent waits for `rootsd hook` at each call, and for `rootsd review --before` at its start. Most
of the time there is no report. So this module imports little, and reads nothing but names.
"""

from __future__ import annotations

import os
from contextlib import suppress

TYPE_CHECKING = False  # see `rootsd.hook`
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def has_reports(walls: bytes) -> bool:
    """Return whether a session left a report, or has not ended."""
    slots = _inside(_inside([walls]))
    return any(file.endswith(b".json") for file in _inside(slot + b"/changes" for slot in slots))


def _inside(folders: Iterable[bytes]) -> Iterator[bytes]:
    for folder in folders:
        with suppress(OSError):
            yield from (folder + b"/" + name for name in os.listdir(folder))
