"""`rootsd daemon` as a process of a test, without a helper, and the command line for it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support import preloaded

HANG_GUARD = 60
START = """
import sys
from rootsd.daemon.main import run
from rootsd.helper.client import UnavailableHelper
from rootsd.system.places import find_places

def start(ready_fd):
    sys.exit(run(find_places(), helper=UnavailableHelper("a test"), ready_fd=ready_fd))

"""


@contextmanager
def running(home: Path, first: str = "pass", **more: str) -> Iterator[subprocess.Popen[str]]:
    """A daemon that has said it is ready; `first` is what its process does before, and `more` is
    added to its environment."""
    ready, says_ready = os.pipe()
    daemon = subprocess.Popen(
        [sys.executable, "-c", f"{first}\n{START}start({says_ready})"],
        pass_fds=(says_ready,),
        env={**os.environ, "HOME": str(home), **more},
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(says_ready)
    try:
        with os.fdopen(ready) as told:
            assert told.readline() == "ready\n", daemon.communicate(timeout=HANG_GUARD)
        yield daemon
    finally:
        daemon.kill()
        daemon.communicate()


def ask(*arguments: str) -> subprocess.CompletedProcess[str]:
    return preloaded.run(arguments, os.environ, HANG_GUARD)
