"""Start processes outside of pytest's process tree, with terminals if needed.

The launcher process is an orphan and older than the processes that it starts, like the process
that starts a desktop's programs. It runs this file as a program; tests control it by
`ProcessLauncher`.
"""

from __future__ import annotations

import json
import os
import pty
import select
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

HANG_GUARD = 120
_SAYS_IT_IS_READY = b"ready"


@dataclass(frozen=True, slots=True)
class Completed:
    """The exit status and the output of a process."""

    status: int
    output: str


class ProcessLauncher:
    """Controls the launcher, as a context manager. At its end, all remaining processes are killed.

    All processes are in the control group `group`, like the tabs of one terminal program on a
    desktop.
    """

    def __init__(
        self, folder: Path, environment: Mapping[str, str], group: Path | None = None
    ) -> None:
        self._path = str(folder / "launcher")
        self._group = [str(group)] if group else []
        self._environment = dict(environment)

    def __enter__(self) -> Self:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(self._path)
            listening.listen()
            subprocess.run(
                [sys.executable, __file__, self._path, *self._group],
                env=self._environment, check=True, timeout=HANG_GUARD,
            )  # fmt: skip
            self._connection, _ = listening.accept()
        self._connection.settimeout(HANG_GUARD)
        self._lines = self._connection.makefile("rb")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._connection.shutdown(socket.SHUT_WR)
        self._lines.read()
        self._lines.close()
        self._connection.close()

    def run(self, *words: str | Path, **variables: str) -> Completed:
        """Run a program without a terminal."""
        return self._ask("run", words, variables)

    def run_on_terminal(
        self, *words: str | Path, typed: Sequence[tuple[str, str]] = (), **variables: str
    ) -> Completed:
        """Run a program on its own terminal.

        Type each text when its prompt appears. `{word}` in a text stands for the word of a
        challenge.
        """
        return self._ask("terminal", words, variables, typed)

    def start(self, *words: str | Path, **variables: str) -> None:
        """Start a program on its own terminal. It prints `ready` and then stays."""
        started = self._ask("begin", words, variables)
        assert started.status == 0, started.output

    def _ask(
        self,
        what: str,
        words: Sequence[str | Path],
        variables: Mapping[str, str],
        typed: Sequence[tuple[str, str]] = (),
    ) -> Completed:
        asked = {
            "what": what,
            "words": [str(word) for word in words],
            "typed": list(typed),
            "variables": {**self._environment, **variables},
        }
        self._connection.sendall(json.dumps(asked).encode() + b"\n")
        answered = json.loads(self._lines.readline())
        return Completed(answered["status"], answered["output"])


class _TerminalProcess:
    """A process on a terminal."""

    def __init__(self, words: Sequence[str], variables: Mapping[str, str]) -> None:
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            os.execvpe(words[0], list(words), dict(variables))  # noqa: S606 - a part of a test
        self.shown = b""

    def show(self) -> bool:
        """Read the next output; return False at the end."""
        if not select.select([self.terminal], [], [], HANG_GUARD)[0]:
            return False
        try:
            part = os.read(self.terminal, 1 << 16)
        except OSError:  # no process has the terminal open
            part = b""
        self.shown += part
        return bool(part)

    def type(self, text: str) -> None:
        if "{word}" in text:
            word = self.shown.rpartition(b"Type ")[2].split()[0].decode()
            text = text.replace("{word}", word)
        os.write(self.terminal, text.encode())

    def end(self) -> Completed:
        while self.show():
            pass
        os.close(self.terminal)
        _, status = os.waitpid(self.pid, 0)
        return Completed(os.waitstatus_to_exitcode(status), self.shown.decode(errors="replace"))


def _run(asked: Mapping[str, Any], staying: list[_TerminalProcess]) -> Completed:
    words, variables = asked["words"], asked["variables"]
    if asked["what"] == "run":
        done = subprocess.run(
            words, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=HANG_GUARD, check=False,
            start_new_session=True,
        )  # fmt: skip
        return Completed(done.returncode, done.stdout)
    player = _TerminalProcess(words, variables)
    if asked["what"] == "begin":
        while _SAYS_IT_IS_READY not in player.shown and player.show():
            pass
        staying.append(player)
        is_ready = _SAYS_IT_IS_READY in player.shown
        return Completed(0 if is_ready else 1, player.shown.decode(errors="replace"))
    for cue, text in asked["typed"]:
        while cue.encode() not in player.shown and player.show():
            pass
        player.type(text)
    return player.end()


def _main(path: str, *groups: str) -> None:
    if os.fork():
        os._exit(0)
    os.setsid()
    for group in groups:
        Path(group, "cgroup.procs").write_text(f"{os.getpid()}\n")
    staying: list[_TerminalProcess] = []
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        for line in connection.makefile("rb"):
            completed = _run(json.loads(line), staying)
            answer = {"status": completed.status, "output": completed.output}
            connection.sendall(json.dumps(answer).encode() + b"\n")
        for player in staying:
            os.close(player.terminal)  # the test closed its end
            os.kill(player.pid, 9)
            os.waitpid(player.pid, 0)


if __name__ == "__main__":
    _main(*sys.argv[1:])
