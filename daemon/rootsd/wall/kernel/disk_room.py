"""Stop the programs of a wall before they fill the disk.

What programs write outside of roots lies on the person's disk, and the kernel offers no limit on a
folder to a user without privileges. So the warden looks how much room is left on that disk. Below
a floor, it stops the programs, whoever has filled the disk, and lets them go on when there is room
again. The floor is 1 GiB, or on a disk that is almost full at the start, half of what is left.

The warden looks the more often, the less room there is: often enough for programs that write 2 GiB
a second. On other disks, such as that of a root, nothing is limited.
"""

from __future__ import annotations

import os
import time

from rootsd.core.errors import RootsdError
from rootsd.wall.kernel.orders import PauseState
from rootsd.wall.kernel.pause import ProgramPause

_MAX_FLOOR = 1 << 30
_BYTES_PER_S = 2 << 30
_SHORTEST_S, _LONGEST_S = 0.1, 30.0
_STOPPED_S, _GRACE_S = 1.0, 5.0


class DiskRoom:
    """The room on the disk of `folder`, for `programs`."""

    def __init__(self, folder: bytes, programs: ProgramPause) -> None:
        self._folder = folder
        self._programs = programs
        self._floor = min(_MAX_FLOOR, self._left() // 2)
        self._why = RootsdError("the disk is full")
        self.deadline = time.monotonic()
        """When to call `attend`."""

    def attend(self) -> None:
        """Stop the programs or let them go on, if it is time to look."""
        if time.monotonic() < self.deadline:
            return
        left = self._left()
        room = left - self._floor
        if room >= 0:
            pause_s = min(max(room / _BYTES_PER_S, _SHORTEST_S), _LONGEST_S)
            self._programs.resume()
        else:
            pause_s = _STOPPED_S
            if self._programs.state is PauseState.RUNNING:
                why = f"the disk has only {left >> 20} MiB left"
                self._why = RootsdError(why, "rootsd confine --clean, or remove other files")
            self._programs.stop(self._why)
        self.deadline = time.monotonic() + pause_s

    def let_run(self) -> None:
        """Let stopped programs run for a short time, so that they can end."""
        if self._programs.state is PauseState.STOPPED:
            self.deadline = time.monotonic() + _GRACE_S
            self._programs.resume()

    def _left(self) -> int:
        """Return how many bytes the user can write. A disk that is gone stops no program."""
        try:
            found = os.statvfs(self._folder)
        except OSError:
            return _MAX_FLOOR
        return found.f_bavail * found.f_frsize
