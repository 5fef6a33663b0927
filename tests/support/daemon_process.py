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
from rootsd.places.daemon_folders import find_places

def start(ready_fd):
    sys.exit(run(find_places(), helper=UnavailableHelper("a test"), ready_fd=ready_fd))

"""


@contextmanager
def running(home: Path, first: str = "pass", **more: str) -> Iterator[preloaded.Program]:
    """A daemon that has said it is ready; `first` is what its process does before, and `more` is
    added to its environment."""
    ready, says_ready = os.pipe()
    text = f"{first}\n{START}start({says_ready})"
    environment = {**os.environ, "HOME": str(home), **more}
    daemon = preloaded.Program(text, environment, (says_ready,))
    os.close(says_ready)
    with _until_the_end(daemon, ready):
        yield daemon


@contextmanager
def running_program(home: Path) -> Iterator[subprocess.Popen[str]]:
    """The same with only those modules that a daemon loads."""
    ready, says_ready = os.pipe()
    daemon = subprocess.Popen(
        [sys.executable, "-c", f"{START}start({says_ready})"], pass_fds=(says_ready,),
        env={**os.environ, "HOME": str(home)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.close(says_ready)
    with _until_the_end(daemon, ready):
        yield daemon


@contextmanager
def _until_the_end(
    daemon: preloaded.Program | subprocess.Popen[str], ready: int
) -> Iterator[None]:
    try:
        with os.fdopen(ready) as told:
            assert told.readline() == "ready\n", daemon.communicate(timeout=HANG_GUARD)
        yield
    finally:
        daemon.kill()
        daemon.communicate()


def ask(*arguments: str) -> subprocess.CompletedProcess[str]:
    return preloaded.run(arguments, os.environ, HANG_GUARD)
