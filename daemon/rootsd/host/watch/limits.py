"""What the system grants each user of inotify, and the setting by which it grants more.

Source: inotify(7), "/proc interfaces".
"""

from __future__ import annotations

from enum import Enum

_FOLDER = "/proc/sys/fs/inotify"


class Limit(Enum):
    """What is limited, by its name in sysctl(8)."""

    WATCHES = "max_user_watches"
    INSTANCES = "max_user_instances"


_ENOUGH = {Limit.WATCHES: 524_288, Limit.INSTANCES: 512}


def granted(limit: Limit, folder: str = _FOLDER) -> int | None:
    """How many there may be; None where the system does not say."""
    try:
        with open(f"{folder}/{limit.value}", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def setting_for_more(limit: Limit, now: int | None) -> str:
    """For sysctl: as many as nearly all need, and more than are granted `now`."""
    return f"fs.inotify.{limit.value}={max(_ENOUGH[limit], 4 * (now or 0))}"
