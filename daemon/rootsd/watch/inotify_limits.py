"""Read the inotify limits, and suggest the sysctl settings that raise them.

Source: inotify(7), "/proc interfaces".
"""

from __future__ import annotations

from enum import Enum

_FOLDER = "/proc/sys/fs/inotify"


class InotifyLimit(Enum):
    """An inotify limit, by its name in sysctl(8)."""

    WATCHES = "max_user_watches"
    INSTANCES = "max_user_instances"


_RECOMMENDED = {InotifyLimit.WATCHES: 524_288, InotifyLimit.INSTANCES: 512}


def read_inotify_limit(limit: InotifyLimit, folder: str = _FOLDER) -> int | None:
    """Return the limit, or None if the system does not report it."""
    try:
        with open(f"{folder}/{limit.value}", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def sysctl_to_raise(limit: InotifyLimit, now: int | None) -> str:
    """Return the sysctl setting that raises the limit above its current value `now`."""
    return f"fs.inotify.{limit.value}={max(_RECOMMENDED[limit], 4 * (now or 0))}"
