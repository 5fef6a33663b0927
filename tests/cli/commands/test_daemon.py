"""`rootsd daemon`: runs the daemon, and reports to its starter when it is ready."""

from __future__ import annotations

import os
import subprocess
import sys

from support.terminal import HANG_GUARD


def test_detached_it_continues_as_an_orphan() -> None:
    """The first process ends at once, and the second one writes to the pipe."""
    program = (
        "import os, sys\n"
        "from rootsd.daemon import main as daemon\n"
        "from rootsd.cli import main\n"
        "first = os.getpid()\n"
        "def run(places, *, helper, ready_fd):\n"
        "    os.write(ready_fd, b'%d %d' % (first, os.getpid()))\n"
        "    return 0\n"
        "daemon.run = run\n"
        "sys.exit(main.main(sys.argv[1:]))\n"
    )
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", program, "daemon", "--detach", "--ready-fd", str(write)],
        pass_fds=(write,),
    )
    os.close(write)
    with os.fdopen(read, "rb") as told:
        first, second = map(int, told.read().split())
    assert process.wait(HANG_GUARD) == 0
    assert first == process.pid != second
