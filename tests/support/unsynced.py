"""Stores and files that do not wait for the disk.

A sync is what lets a decision survive a power cut, and nothing else. Tests that run beside each
other share one disk, so each of their syncs waits for the writes of all. `tools/test.sh` therefore
sets a variable, with which pytest and the forks of `support.preloaded` sync nothing. Programs that
a test starts in another way still do. The tests of power cuts and of full disks use such programs.
"""

from __future__ import annotations

import os

from rootsd.state.store import database

VARIABLE = "PYTEST_WITHOUT_SYNCS"
SYNCED_PRAGMAS = database.PRAGMAS


def skip_syncs_if_wanted() -> None:
    """Let this process and its forks sync nothing, if the variable is set."""
    if VARIABLE in os.environ:
        os.fsync = lambda fd: None
        database.PRAGMAS = tuple(
            "synchronous=OFF" if each == "synchronous=EXTRA" else each for each in SYNCED_PRAGMAS
        )
