"""What `git worktree add` and `remove` are inside, if programs may make worktrees beside a root.

    python -I -S worktree_inside.py SOCKET [WORD]...

This asks the warden for a new folder (`kernel.new_worktrees`), and then runs git with the same
words. It does not let git remove a root: git would fail, maybe after it has deleted a part. This
loads nothing of rootsd.
"""

import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise

_MADE, _DONE = b"made", b"done"
_MAX_ANSWER = 1 << 16
_TIMEOUT_S = 15.0


def main(address: str, *words: str) -> int:
    """Run git, and return its exit status."""
    if roots := [path for path in _paths(words, "remove") if os.path.ismount(path)]:
        _say(*(path + b" is a root here; remove it outside" for path in roots))
        return 128
    made: list[tuple[socket.socket, bytes]] = []
    refused: list[tuple[socket.socket, bytes]] = []
    for path in _new_folders(words):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.settimeout(_TIMEOUT_S)
        try:
            client.connect(address)
            client.send(path)
            answer = client.recv(_MAX_ANSWER)
        except OSError as error:
            answer = b"the warden does not answer: " + str(error.strerror).encode()
        (made if answer == _MADE else refused).append((client, answer))
    status = os.spawnvp(os.P_WAIT, "git", ["git", *words])  # noqa: S606 - the caller's own
    if status and not made:
        _say(*(answer for _, answer in refused))
    for client, _ in made:
        with suppress(OSError):
            client.send(_DONE)
            _say(client.recv(_MAX_ANSWER))
    return status if status >= 0 else 128 - status


def _new_folders(words: Sequence[str]) -> Iterator[bytes]:
    """Yield the words that are paths of new folders, where nobody inside can make one."""
    for path in _paths(words, "add"):
        above = os.path.dirname(path)
        is_new = not os.path.lexists(path) and os.path.isdir(above)
        if is_new and not os.access(above, os.W_OK):
            yield path


def _paths(words: Sequence[str], verb: str) -> Iterator[bytes]:
    """Yield the words of `git worktree VERB` that may be paths."""
    pairs = [*pairwise(words)]
    if ("worktree", verb) not in pairs:  # only a part of a word, as of a message
        return
    at = pairs.index(("worktree", verb)) + 2
    folder = os.getcwdb()
    for flag, value in pairs[:at]:
        if flag == "-C":
            folder = os.path.join(folder, os.fsencode(value))
    for word in words[at:]:
        if not word.startswith("-"):
            yield os.path.abspath(os.path.join(folder, os.fsencode(word)))


def _say(*answers: bytes) -> None:
    for answer in filter(None, answers):
        os.write(2, b"rootsd: " + answer + b"\n")


if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # as git itself, and what it starts
    sys.exit(main(*sys.argv[1:]))
