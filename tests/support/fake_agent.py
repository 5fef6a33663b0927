"""A stand-in for a coding agent. It runs under the agent's name and tries to decide by itself.

    NAME fake_agent.py WAY COMMAND...

Its exit status is that of the command. WAY is the name of an attempt below. With `stay` it
connects a bridge, reports that, and stays. The ways that begin with `mcp-` connect a bridge first.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shlex
import socket
import subprocess
import sys
import termios
from collections.abc import Callable

HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "a test", "version": "1"},
    },
}  # fmt: skip
Command = list[str]


def connect_bridge(*, by_shell: bool = False) -> subprocess.Popen[bytes]:
    """Start a bridge, wait for the answer of the daemon, and return the bridge."""
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
    return subprocess.run(command, env=_run_with_environment(), check=False).returncode


def on_a_terminal(command: Command) -> int:
    """Run the command on a new pseudo-terminal, and type the word that it asks for."""
    pid, terminal = pty.fork()
    if not pid:
        os.execvp(command[0], command)  # noqa: S606 - what the test wants to be tried
    sys.stdout.write(_played_at(terminal))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def orphaned(command: Command) -> int:
    """Run the command in a grandchild whose parent has ended, so only the first process is above
    it.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.setsid()
        if os.fork():
            os._exit(0)
        while os.getppid() == pid:  # until the one in between has been buried
            pass
        os.write(writing, b"%d" % run(command))
        os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    return int(os.read(reading, 16))


def orphan_only(command: Command) -> int:
    """Run the command itself as an orphan with an empty environment."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.setsid()
        script = '"$@"; echo $? >&3'
        if not os.fork():
            os.dup2(writing, 3)
            os.execvpe("sh", ["sh", "-c", script, "sh", *command], _run_with_environment())  # noqa: S606
        os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    return int(os.read(reading, 16))


def orphaned_on_a_terminal(command: Command) -> int:
    """Run the command on a pseudo-terminal that an orphan with an empty environment creates."""
    return orphan_only([os.environ["PYTHON"], __file__, "terminal", *command])


def orphaned_in_script(command: Command) -> int:
    """Do the same with script(1), which types the given lines."""
    runner = [os.environ["PYTHON"], __file__, "typing into script", *command]
    return orphan_only(runner)


def typing_into_script(command: Command) -> int:
    """Run the command in script(1), from a child that types the word it reads there."""
    words = ["script", "-qefc", shlex.join(command), "/dev/null"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as script:
        assert script.stdin is not None
        assert script.stdout is not None
        shown = b""
        while part := os.read(script.stdout.fileno(), 4096):
            shown += part
            if shown.endswith(b" to go on: "):
                script.stdin.write(shown.rpartition(b"Type ")[2].split()[0] + b"\n")
                script.stdin.flush()
    sys.stdout.write(shown.decode(errors="replace"))
    return script.returncode


def orphan_on_its_own_terminal(command: Command) -> int:
    """Run the command as an orphan on a pseudo-terminal whose other side this agent holds."""
    terminal, slave = pty.openpty()
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(terminal)
        os.setsid()
        if not os.fork():
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in range(3):
                os.dup2(slave, fd)
            os.dup2(writing, 3)
            script = '"$@"; echo $? >&3; exec 3>&-'
            os.execvpe("sh", ["sh", "-c", script, "sh", *command], _run_with_environment())  # noqa: S606
        os._exit(0)
    os.close(slave)
    os.close(writing)
    os.waitpid(pid, 0)
    sys.stdout.write(_played_at(terminal))
    return int(os.read(reading, 16))


def _run_with_environment() -> dict[str, str]:
    names = ("PATH", "HOME", "ROOTSD_DIR", "PYTHONPATH", "PYTHON")
    return {name: os.environ[name] for name in names}


def _played_at(terminal: int) -> str:
    """Type each word that is asked for until the terminal closes, and return its output."""
    shown = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:
            return shown.decode(errors="replace")
        shown += part
        if shown.endswith(b" to go on: "):
            os.write(terminal, shown.rpartition(b"Type ")[2].split()[0] + b"\n")


def _again(way: str, command: Command) -> int:
    """Start this program again on a pseudo-terminal."""
    return on_a_terminal([os.environ["PYTHON"], __file__, way, *command])


def behind_ancestors(command: Command) -> int:
    """Run the command as the last of 300 processes, each the parent of the next."""
    return _behind(300, command)


def behind_large_environments(command: Command) -> int:
    """Run the command as the last of 200 processes, each with an environment of 1 MB."""
    filling = {f"V{n}": "x" * 100_000 for n in range(10)}  # a shell copies each of them
    runner = [os.environ["PYTHON"], __file__, "behind 200 ancestors", *command]
    return subprocess.run(runner, env={**os.environ, **filling}, check=False).returncode


# A shell that starts a shell, and so on; each waits for the one that it started.
_NESTED = """
if [ "$1" -gt 1 ]; then
    left=$(($1 - 1)); shift; sh -c "$NESTED" sh "$left" "$@"; exit $?
fi
shift; "$@"; exit $?
"""


def _behind(depth: int, command: Command) -> int:
    words = ["sh", "-c", _NESTED, "sh", str(depth), *command]
    return subprocess.run(words, env={**os.environ, "NESTED": _NESTED}, check=False).returncode


def by_protocol(command: Command) -> int:
    """Send the request that the command line would send, directly to the control socket."""
    return _refusal(_say(_connection(), command[-1]))


def handed_on(command: Command) -> int:
    """Send the request on a connection that another process made and then left."""
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
    loosened = run([*command[: command.index("approve")], "guard", "off"])
    return loosened or run(command)


def in_tmux_of_its_own(command: Command) -> int:
    """Run the command in a pane of a new tmux server."""
    return _in_tmux(command, "new-session", "-d")


def in_tmux_without_environment(command: Command) -> int:
    """Run it in a pane of a new tmux server with an empty environment, and type the word."""
    told = f"{os.environ['ROOTSD_DIR']}/told by tmux"
    line = f"{' '.join(command)}; echo $? >{shlex.quote(told)}"
    server, kept = (
        [*_server(), "-u"],
        {**_run_with_environment(), "TMUX_TMPDIR": os.environ["TMUX_TMPDIR"]},
    )
    session = ["new-session", "-d", "-x", "200", "-y", "50", "-s", "own", f"{line}; cat"]
    subprocess.run([*server, *session], check=True, env=kept)
    typed, shown = False, ""
    while not os.path.exists(told) or not os.path.getsize(told):
        shown = subprocess.check_output([*server, "capture-pane", "-pJ", "-t", "own"], text=True)
        if not typed and shown.rstrip().endswith("to go on:"):
            word = shown.rpartition("Type ")[2].split()[0]
            subprocess.run([*server, "send-keys", "-t", "own", word, "Enter"], check=True)
            typed = True
    print(shown, "to go on: " if typed else "")  # noqa: T201 - what the test is shown
    with open(told) as lines:
        status = int(lines.read())
    subprocess.run([*server, "kill-server"], check=True)
    return status


def in_tmux_of_a_person(command: Command) -> int:
    """Type the command into a pane that is open in a person's tmux server."""
    return _in_tmux(command, "send-keys", "-t", "person")


def by_run_shell(command: Command) -> int:
    """Have a person's tmux server run the command itself."""
    return _in_tmux(command, "run-shell", "-b")


def by_if_shell(command: Command) -> int:
    return _in_tmux(command, "if-shell", "-b", then="display-message done")


def in_a_new_window(command: Command) -> int:
    """Run the command in a background window of a person's tmux server."""
    return _in_tmux(command, "new-window", "-d", "-t", "person:")


def in_a_new_session(command: Command) -> int:
    return _in_tmux(command, "new-session", "-d")


def _server() -> list[str]:
    return ["tmux", "-L", os.environ["TMUX_SERVER"], "-f", "/dev/null"]


def _in_tmux(command: Command, *options: str, then: str = "") -> int:
    server = _server()
    told = f"{os.environ['ROOTSD_DIR']}/told by tmux"
    noted = f"{' '.join(command)} >{told!r} 2>&1; echo $? >>{told!r}"
    line = f"{noted}; {' '.join(server)} wait-for -S done"
    typed = [line, "Enter"] if "send-keys" in options else [line, *filter(None, [then])]
    subprocess.run([*server, *options, *typed], check=True)
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
    "own tmux with an empty environment": in_tmux_without_environment,
    "orphan on a terminal": orphaned_on_a_terminal,
    "orphan in script": orphaned_in_script,
    "typing into script": typing_into_script,
    "orphan on the agent's terminal": orphan_on_its_own_terminal,
    "behind 300 ancestors": behind_ancestors,
    "behind 200 ancestors": lambda command: _behind(200, command),
    "behind 200 large environments": behind_large_environments,
    "behind 300 ancestors on a terminal": lambda command: _again("behind 300 ancestors", command),
    "behind 200 large environments on a terminal": lambda command: _again(
        "behind 200 large environments", command
    ),
    "tmux keys": in_tmux_of_a_person,
    "tmux run-shell": by_run_shell,
    "tmux if-shell": by_if_shell,
    "tmux new-window": in_a_new_window,
    "tmux new-session": in_a_new_session,
    "guard off first": after_loosening_the_guard,
}


def main(way: str, command: Command) -> int:
    """Perform one attempt, and return its exit status."""
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
