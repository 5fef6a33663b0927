"""An address for a unix socket whose path is longer than the kernel takes.

`sun_path` holds 107 bytes (Linux) or 103 (macOS), and a path below a temporary or a home folder is
easily longer. The folder is then named through an open descriptor (Linux, proc(5)) or by volume
and inode (macOS, /.vol); changing the working directory would change it for every thread.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_LONGEST = 103 if sys.platform == "darwin" else 107


@contextmanager
def address_of(path: bytes) -> Iterator[bytes]:
    """Yield what to hand to bind(2) or connect(2) for `path`. Raises OSError."""
    if len(path) <= _LONGEST:
        yield path
        return
    folder, _, name = path.rpartition(b"/")
    if sys.platform == "darwin":
        found = os.stat(folder)
        yield b"/.vol/%d/%d/%s" % (found.st_dev, found.st_ino, name)
        return
    # Not O_NOFOLLOW: the path may lead through a link, as it may when it is short.
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield b"/proc/self/fd/%d/%s" % (descriptor, name)
    finally:
        os.close(descriptor)
