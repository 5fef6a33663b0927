"""Put a `git` in front of the real one inside, which knows that roots are mounts.

Only `git worktree add` and `remove` differ; each other call costs one start of a shell. A program
that starts git by its path does without.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from enum import Enum

from rootsd.core.mount_plan import ViewEntry, ViewEntryKind
from rootsd.wall.kernel.new_worktrees import SOCKET

_REASON = "git worktree add ../NAME"
_SCRIPT = """\
#!/bin/sh
# The git of a wall. It takes itself from PATH.
p=:$PATH:
case $p in *:{folder}:*) p=${{p%%:{folder}:*}}:${{p#*:{folder}:}} ;; esac
p=${{p#:}}
PATH=${{p%:}}
case " $* " in
*" worktree add "*|*" worktree remove "*) exec {python} -I -S {program} {socket} "$@" ;;
esac
exec git "$@"
"""


class GitFront(Enum):
    """What this `git` does about worktrees beside a root."""

    NONE = "there is none"
    REFUSES = "it says what to do outside"
    ASKS = "it asks the warden"


def path_inside(outside: str) -> str:
    """Return a PATH that puts the front before the real git."""
    return os.fsdecode(_folder()) + ":" + (outside or os.defpath)


def git_entries(front: GitFront, folder: bytes) -> Iterator[ViewEntry]:
    """Yield what programs need for it, from the private `folder` of their wall."""
    if front is GitFront.NONE:
        return
    place = folder + b"/bin"
    os.makedirs(place, 0o700, exist_ok=True)
    inside = _folder()
    script = _SCRIPT.format(
        folder=os.fsdecode(inside),
        python=shlex.quote(sys.executable),
        program=shlex.quote(os.path.join(os.path.dirname(__file__), "worktree_inside.py")),
        socket=os.fsdecode(_socket()),
    )
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with open(os.open(place + b"/git", flags, 0o700), "w") as file:
        file.write(script)
    yield ViewEntry(inside, ViewEntryKind.READ, _REASON, place)
    if front is GitFront.ASKS:
        yield ViewEntry(_socket(), ViewEntryKind.SOCKET, _REASON, folder + SOCKET)


def _folder() -> bytes:
    return b"/run/user/%d/rootsd-git" % os.geteuid()


def _socket() -> bytes:
    return b"/run/user/%d/rootsd-worktrees" % os.geteuid()
