"""What git inside starts in place of ssh, and to ask for a password.

    python -I -S git_inside.py SOCKET ssh [OPTION]... [USER@]HOST COMMAND
    python -I -S git_inside.py SOCKET credential get|store|erase

This decides nothing. It hands the request to the relay outside (`relay_loop`), which compares it
with the origins that it knows. The relay answers with the ends of the pipes of the program that it
has started, and at last with its exit status. This module loads nothing of rootsd, because it
starts at each fetch.
"""

import os
import signal
import socket
import sys
from contextlib import suppress
from threading import Thread

_FAILED = 255  # as ssh itself
_CHUNK = 1 << 20
_MAX_PACKET = 1 << 16
_MAX_FDS = 3


def main(address: str, kind: str, *words: str) -> int:
    """Ask the relay at `address`, and return the exit status for git."""
    if kind == "credential" and words[:1] != ("get",):
        return 0  # nothing is stored or erased from here
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as relay:
        try:
            if kind == "ssh":
                request = [os.environb.get(b"GIT_PROTOCOL", b""), *map(os.fsencode, words)]
            else:
                request = [sys.stdin.buffer.read(_MAX_PACKET >> 1)]
            relay.connect(address)
            relay.send(b"\0".join((kind.encode(), *request)))
            return _follow(relay)
        except OSError as error:
            _say(b"the relay for git outside has ended (%s)" % (error.strerror or "").encode())
            return _FAILED


def _follow(relay: socket.socket) -> int:
    """Be the program that the relay starts: it may take input, and prints output and errors."""
    answer, pipes, _, _ = socket.recv_fds(relay, _MAX_PACKET, _MAX_FDS)
    if pipes:
        *to_program, output, errors = pipes
        for pipe in to_program:
            Thread(target=_copy, args=(0, pipe), daemon=True).start()
        copies = [Thread(target=_copy, args=pair) for pair in ((output, 1), (errors, 2))]
        for each in copies:
            each.start()
        for each in copies:
            each.join()
        answer = relay.recv(_MAX_PACKET)
    status, _, text = answer.partition(b"\0")
    if text:
        _say(text)
    return int(status or _FAILED)


def _copy(source: int, target: int) -> None:
    """Copy until one side ends, and close the one that is a pipe of ssh, so that it sees that."""
    with suppress(OSError):
        while data := os.read(source, _CHUNK):
            while data:
                data = data[os.write(target, data) :]
    os.close(max(source, target))


def _say(text: bytes) -> None:
    with suppress(OSError):
        os.write(2, b"rootsd: " + text + b"\n")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(main(*sys.argv[1:]))
