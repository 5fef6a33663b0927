"""Self-approvals that an agent's shell cannot express well.

    python approval_attempts.py WAY COMMAND...

Prints the output of the command. `orphan` runs it as an orphan, `terminal` on a new terminal,
`orphan-terminal` both, and `tmux` in a new tmux server. On a terminal it types the word that a
challenge asks for. `socket NAME` approves NAME by the control socket's protocol. The caller
empties the environment by `env -i` if needed.

It uses only the standard library, so that it runs with any Python.
"""

from __future__ import annotations

import json
import os
import pty
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable

_PROMPT = b" to go on: "


def as_orphan(command: list[str], run: Callable[[list[str]], None]) -> None:
    """Run the command below a process that has lost its parent, in a session of its own."""
    reading, writing = os.pipe()
    middle = os.fork()
    if not middle:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.close(reading)
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        above = os.getppid()
        while above not in (1, os.getppid()) or os.getppid() == middle:
            above = os.getppid()
        run(command)
        os._exit(0)
    os.close(writing)
    os.waitpid(middle, 0)
    with open(reading, "rb") as told:
        _print(told.read())


def plainly(command: list[str]) -> None:
    """Run the command without a terminal."""
    subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, check=False)


def on_terminal(command: list[str]) -> None:
    """Run the command on a new terminal, and type the word if it asks for one."""
    child, terminal = pty.fork()
    if not child:
        os.execvp(command[0], command)  # noqa: S606 - the command of the test
    shown = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the command has ended
            break
        if not part:
            break
        shown += part
        if shown.endswith(_PROMPT):
            os.write(terminal, shown.rpartition(b"Type ")[2].split()[0] + b"\n")
    os.waitpid(child, 0)
    _print(shown)


def in_tmux(command: list[str]) -> None:
    """Run the command in a new tmux server, and send the word to its pane if it asks for one."""
    server = ["tmux", "-u", "-L", f"own-{os.getpid()}", "-f", "/dev/null"]
    size = ["-x", "200", "-y", "50"]
    end = f"{server[3]}-end"
    line = f"{shlex.join(command)}; echo {end}; exec cat"
    subprocess.run([*server, "new-session", "-d", *size, line], check=True)
    has_typed, shown = False, b""
    while end.encode() not in shown:
        shown = subprocess.check_output([*server, "capture-pane", "-pJ"])
        if not has_typed and shown.rstrip().endswith(_PROMPT.rstrip()):
            word = shown.rpartition(b"Type ")[2].split()[0].decode()
            subprocess.run([*server, "send-keys", word, "Enter"], check=True)
            has_typed = True
    subprocess.run([*server, "kill-server"], check=True)
    _print(shown.rstrip() + b"\n")


def by_protocol(name: str) -> None:
    """Send an approval of `name` to the control socket."""
    params = {"verb": "approve", "cwd": "/", "refs": [name]}
    request = {"jsonrpc": "2.0", "id": 1, "method": "decide", "params": params}
    with socket.socket(socket.AF_UNIX) as connection:
        os.chdir(os.environ["ROOTSD_DIR"])  # its path may be too long for an address
        connection.connect("run/ctl/control.sock")
        connection.sendall(json.dumps(request).encode() + b"\n")
        _print(connection.makefile("rb").readline())


def _print(told: bytes) -> None:
    sys.stdout.write(told.decode(errors="replace"))
    sys.stdout.flush()


def main(way: str, *command: str) -> None:
    """Perform the attempt called `way`."""
    match way:
        case "orphan":
            as_orphan(list(command), plainly)
        case "orphan-terminal":
            as_orphan(list(command), on_terminal)
        case "tmux":
            in_tmux(list(command))
        case "terminal":
            on_terminal(list(command))
        case "socket":
            by_protocol(*command)
        case _:
            sys.exit(f"there is no way {way}")


if __name__ == "__main__":
    main(*sys.argv[1:])
