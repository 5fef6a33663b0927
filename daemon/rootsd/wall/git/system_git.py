"""Run the git of the system, which is never one from a root, and which no program can change."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Mapping, Sequence

from rootsd.wall.system_calls import closing

_PROGRAMS = b"""
    /usr/local/bin/git /usr/bin/git /bin/git
    /run/current-system/sw/bin/git /nix/var/nix/profiles/default/bin/git
""".split()
_TIMEOUT_S = 1.0
_MAX_BYTES = 4 << 20
_CHUNK = 1 << 16


def find_git() -> bytes | None:
    """Return the path of git, or None."""
    return next((each for each in _PROGRAMS if os.access(each, os.X_OK)), None)


def ask_git(
    words: Sequence[str | bytes],
    variables: Mapping[str, str],
    text: bytes = b"",
    timeout_s: float | None = None,
) -> bytes | None:
    """Return what git prints, with a text as its input and no other variables than these.

    Return None if there is no git, if it fails, prints too much, or takes too long.
    """
    program = find_git()
    if program is None:
        return None
    ours, theirs = os.pipe2(os.O_CLOEXEC)
    with closing(ours), closing(os.memfd_create("text")) as given:
        try:
            os.write(given, text)
            os.lseek(given, 0, os.SEEK_SET)
            pid = os.posix_spawn(
                program,
                ["git", "--no-pager", *words],
                variables,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, given, 0),
                    (os.POSIX_SPAWN_DUP2, theirs, 1),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setsigmask=(),
                setsigdef=(signal.SIGPIPE,),
            )
        except OSError:
            return None
        finally:
            os.close(theirs)
        output = _read_to_end(ours, _TIMEOUT_S if timeout_s is None else timeout_s)
        if output is None:
            os.kill(pid, signal.SIGKILL)
        return output if os.waitpid(pid, 0)[1] == 0 else None


def _read_to_end(pipe: int, timeout_s: float) -> bytes | None:
    """Return all that a pipe has; None if it is too much, or does not end in time."""
    found = bytearray()
    end = time.monotonic() + timeout_s
    while len(found) < _MAX_BYTES:
        if not select.select([pipe], [], [], max(end - time.monotonic(), 0))[0]:
            return None
        data = os.read(pipe, _CHUNK)
        if not data:
            return bytes(found)
        found += data
    return None
