"""A program `rootsd` for shells, whose runs are forks of `support.preloaded`.

The program is a small client. It sends its words, environment, folder, and standard streams to
this process, waits for the fork, and exits with its status.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from support import preloaded

_MAX_REQUEST = 1 << 17
_AT_ONCE = 4
_CLIENT = """
import json, os, socket, sys
channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
channel.connect(sys.argv[1])
request = json.dumps([sys.argv[2:], dict(os.environ), os.getcwd()])
socket.send_fds(channel, [request.encode()], [0, 1, 2])
sys.exit(int(channel.recv(16)))
"""


@contextmanager
def forking_program() -> Iterator[str]:
    """Yield the words of a shell that run the program, to be followed by those of `rootsd`."""
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
        ThreadPoolExecutor(_AT_ONCE + 1) as pool,
    ):
        address, client = Path(folder, "s"), Path(folder, "client.py")
        client.write_text(_CLIENT)
        listener.bind(str(address))
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    channel, _ = listener.accept()
                except OSError:  # it was shut down
                    return
                pool.submit(_run, channel)

        pool.submit(serve)
        yield shlex.join((sys.executable, "-I", "-S", str(client), str(address)))
        listener.shutdown(socket.SHUT_RDWR)


def _run(channel: socket.socket) -> None:
    with channel:
        request, fds, _, _ = socket.recv_fds(channel, _MAX_REQUEST, 3)
        words, environment, folder = json.loads(request)
        started = preloaded.start(words, environment, dict(enumerate(fds)), Path(folder))
        for fd in fds:
            os.close(fd)
        channel.send(b"%d" % started.wait())
