"""Claim the private folder of a wall, and conclude what killed sessions have left there."""

from __future__ import annotations

import fcntl
import os
from typing import NamedTuple

from rootsd.places.base_folders import folder_name, walls_folder
from rootsd.wall.git.wall_folders import LOCK, has_ended, is_abandoned, wall_folders
from rootsd.wall.session.begin import CannotConfine
from rootsd.wall.session.messages import print_line
from rootsd.wall.session.running_walls import claim

_MAX_SLOTS = 256


class ClaimedFolder(NamedTuple):
    """The private folder of a wall, and the lock that reserves it while the warden lives."""

    path: bytes
    lock: int


def state_folder(label: str) -> bytes:
    """Return the folder for what the confined programs with this name keep."""
    return walls_folder() + b"/" + folder_name(label)


def claim_folder(label: str) -> ClaimedFolder:
    """Return a folder for a wall. Before that, print what killed sessions have left.

    Two programs of one name that run at once get two folders, because each start has private ones.
    """
    walls = walls_folder()
    if any(map(is_abandoned, wall_folders(walls))):
        _clean_up(walls)
    for slot in range(_MAX_SLOTS):
        folder = state_folder(label) + b"/%d" % slot
        os.makedirs(folder, 0o700, exist_ok=True)
        lock = os.open(folder + LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not has_ended(folder):  # killed since the look above
                _conclude(folder)
        except OSError:
            os.close(lock)
            continue
        claim(lock)
        return ClaimedFolder(folder, lock)
    raise CannotConfine(f"{_MAX_SLOTS} programs named {label} are confined", "--name NAME")


def _conclude(folder: bytes) -> None:
    from rootsd.wall.git.left_behind import SessionEnd  # noqa: PLC0415
    from rootsd.wall.git.session_baseline import SessionBaseline  # noqa: PLC0415 - only here

    if (killed := SessionBaseline.read(folder)) is not None:
        killed.conclude(SessionEnd.KILLED)


def _clean_up(walls: bytes) -> None:
    from rootsd.wall.git.left_behind_reports import conclude_killed  # noqa: PLC0415 - after a kill
    from rootsd.wall.session.kept_names import remove_left  # noqa: PLC0415

    for report in conclude_killed(walls):
        for sentence in report.sentences():
            print_line(sentence)
    remove_left(walls)
