"""The process at the other end of a socket."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from rootsd.net.listener import listen
from rootsd.net.unix_socket import peer_of

CONNECT = """
import os, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
print(os.getpid(), flush=True)
connection.recv(1)
"""


def test_both_ends_of_a_pair_belong_to_this_process() -> None:
    one, other = socket.socketpair()
    with one, other:
        for end in (one, other):
            peer = peer_of(end)
            assert (peer.pid, peer.uid) == (os.getpid(), os.geteuid())
        assert repr(peer_of(one)) == f"Peer(pid={os.getpid()}, uid={os.geteuid()})"


def test_the_connecting_process_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run" / "pub" / "x.sock"
    with listen(bytes(path)) as listener:
        child = subprocess.Popen(
            [sys.executable, "-c", CONNECT, str(path)], stdout=subprocess.PIPE, text=True
        )
        with child:
            assert child.stdout
            pid = int(child.stdout.readline())
            connection, _ = listener.socket.accept()
            with connection:
                assert peer_of(connection).pid == pid == child.pid
