"""A stand-in for a coding agent: started under the agent's name, it tries to decide in some way.

    NAME agent.py WAY COMMAND...

It ends as the command did. With the way `stay` it connects a bridge, says so and stays; the ways
that begin with `mcp-` connect one first.
"""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
import sys
from collections.abc import Callable

HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "a test", "version": "1"},
    },
}  # fmt: skip
Command = list[str]


def connect_bridge(*, by_shell: bool = False) -> subprocess.Popen[bytes]:
    """A bridge of ours that the daemon has answered."""
    words = [os.environ["PYTHON"], "-m", "rootsd", "bridge"]
    command = ["sh", "-c", f"{' '.join(words)}; :"] if by_shell else words
    bridge = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert bridge.stdin is not None
    assert bridge.stdout is not None
    bridge.stdin.write(json.dumps(HELLO).encode() + b"\n")
    bridge.stdin.flush()
    assert b"serverInfo" in bridge.stdout.readline()
    return bridge


def run(command: Command) -> int:
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode


def in_a_shell(command: Command) -> int:
    return run(["sh", "-c", '"$@"; exit $?', "sh", *command])


def in_a_session(command: Command) -> int:
    return subprocess.run(command, start_new_session=True, check=False).returncode


def without_environment(command: Command) -> int:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "ROOTSD_DIR", "PYTHONPATH")}
    return subprocess.run(command, env=kept, check=False).returncode


def on_a_terminal(command: Command) -> int:
    """On a pseudo-terminal of its making, where it types whatever it is asked for."""
    pid, terminal = pty.fork()
    if not pid:
        os.execvp(command[0], command)  # noqa: S606 - what the test wants to be tried
    shown = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:
            break
        shown += part
        if shown.endswith(b" to go on: "):
            os.write(terminal, shown.rpartition(b"Type ")[2].split()[0] + b"\n")
    sys.stdout.write(shown.decode(errors="replace"))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def orphaned(command: Command, start: Callable[[Command], int] = run) -> int:
    """By the child of a child that has ended: nothing above it but the first process."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.setsid()
        if os.fork():
            os._exit(0)
        while os.getppid() == pid:  # until the one in between has been buried
            pass
        os.write(writing, b"%d" % start(command))
        os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    return int(os.read(reading, 16))


def orphaned_without_environment(command: Command) -> int:
    return orphaned(command, without_environment)


def orphan_only(command: Command) -> int:
    """The command itself is the orphan, with nothing in its environment."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.setsid()
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "ROOTSD_DIR", "PYTHONPATH")}
        script = '"$@"; echo $? >&3'
        if not os.fork():
            os.dup2(writing, 3)
            os.execvpe("sh", ["sh", "-c", script, "sh", *command], kept)  # noqa: S606
        os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    return int(os.read(reading, 16))


def by_protocol(command: Command) -> int:
    """Without the command line: what that would say, on the control socket."""
    return _refusal(_say(_connection(), command[-1]))


def handed_on(command: Command) -> int:
    """By a connection that another process made and left behind."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if not pid:
        connection = _connection()
        socket.send_fds(theirs, [b"x"], [connection.fileno()])
        os._exit(0)
    theirs.close()
    _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    os.waitpid(pid, 0)
    return _refusal(_say(socket.socket(fileno=fds[0]), command[-1]))


def by_make(command: Command) -> int:
    script = f"all:\n\t@{' '.join(command)}\n"
    return subprocess.run(
        ["make", "-s", "-f", "-"], input=script, text=True, check=False
    ).returncode


def after_loosening_the_guard(command: Command) -> int:
    loosened = run([*command[: command.index("rootsd") + 1], "guard", "off"])
    return loosened or run(command)


def in_tmux_of_its_own(command: Command) -> int:
    """In a pane of a server that it starts."""
    return _in_tmux("new-session", "-d", command)


def in_tmux_of_a_person(command: Command) -> int:
    """Typed into a pane that is open there."""
    return _in_tmux("send-keys", "-t", "person", command)


def _in_tmux(*words: str | Command) -> int:
    *options, command = words
    server = ["tmux", "-L", os.environ["TMUX_SERVER"], "-f", "/dev/null"]
    told = f"{os.environ['ROOTSD_DIR']}/told by tmux"
    noted = f"{' '.join(command)} >{told!r} 2>&1; echo $? >>{told!r}"
    line = f"{noted}; {' '.join(server)} wait-for -S done"
    typed = [line, "Enter"] if "send-keys" in options else [line]
    subprocess.run([*server, *map(str, options), *typed], check=True)
    subprocess.run([*server, "wait-for", "done"], check=True)
    with open(told) as lines:
        *output, status = lines.read().splitlines()
    print("\n".join(output))  # noqa: T201 - what the test is shown where it fails
    return int(status)


def _connection() -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.environ["ROOTSD_DIR"] + "/run/ctl/control.sock")
    return connection


def _say(connection: socket.socket, reference: str) -> dict[str, object]:
    params = {"verb": "approve", "cwd": "/", "refs": [reference]}
    request = {"jsonrpc": "2.0", "id": 1, "method": "decide", "params": params}
    with connection:
        connection.sendall(json.dumps(request).encode() + b"\n")
        answer: dict[str, object] = json.loads(connection.makefile("rb").readline())
    return answer


def _refusal(answer: dict[str, object]) -> int:
    print(answer)  # noqa: T201 - what the test is shown where it fails
    return 7 if "refused" in json.dumps(answer.get("error", "")) else 0


WAYS: dict[str, Callable[[Command], int]] = {
    "child": run,
    "shell": in_a_shell,
    "session": in_a_session,
    "terminal": on_a_terminal,
    "empty environment": without_environment,
    "orphan": orphaned,
    "orphan with an empty environment": orphan_only,
    "protocol": by_protocol,
    "connection handed on": handed_on,
    "make": by_make,
    "own tmux": in_tmux_of_its_own,
    "tmux keys": in_tmux_of_a_person,
    "guard off first": after_loosening_the_guard,
}


def main(way: str, command: Command) -> int:
    """Go one way; the exit status of what it came to."""
    if way == "stay":
        connect_bridge()
        print("ready", flush=True)  # noqa: T201
        sys.stdin.read()
        return 0
    bridge = None
    if way.startswith("mcp-"):
        way = way.removeprefix("mcp-")
        bridge = connect_bridge(by_shell=way.startswith("shelled-"))
        way = way.removeprefix("shelled-")
        if way.startswith("alone-"):
            way = way.removeprefix("alone-")
            bridge.kill()
            bridge.wait()
    try:
        return WAYS[way](command)
    finally:
        if bridge is not None and bridge.stdin is not None:
            bridge.stdin.close()
            bridge.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
