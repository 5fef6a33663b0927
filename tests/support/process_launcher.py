"""Start processes outside of pytest's process tree, with terminals if needed.

The launcher process is an orphan and older than the processes that it starts, like the process
that starts a desktop's programs. Tests control it by `ProcessLauncher`. It is a fork of a process
that has loaded all modules, so that a person's `rootsd` is a fork of it (`support.preloaded`). All
other programs, and what they start, are programs.
"""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from support import preloaded

ROOTSD = [sys.executable, "-m", "rootsd"]
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
        self._group = str(group) if group else ""
        self._environment = dict(environment)

    def __enter__(self) -> Self:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(self._path)
            listening.listen()
            text = (
                f"import sys; sys.path.insert(0, {str(Path(__file__).parent.parent)!r})\n"
                "from support import process_launcher\n"
                f"process_launcher.serve({self._path!r}, {self._group!r}, rootsd)"
            )
            first = preloaded.Program(text, self._environment)
            first.stderr.close()
            assert first.wait(HANG_GUARD) == 0
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


BecomeRootsd = Callable[[Sequence[str], Mapping[str, str]], NoReturn]


class _Launcher:
    """The launcher process."""

    def __init__(self, rootsd: BecomeRootsd) -> None:
        self._rootsd = rootsd
        self._staying: list[_TerminalProcess] = []

    def carry_out(self, asked: Mapping[str, Any]) -> Completed:
        words, variables = asked["words"], asked["variables"]
        if asked["what"] == "run":
            return self._run(words, variables)
        pid, terminal = pty.fork()
        if not pid:
            self._become(words, variables)
        player = _TerminalProcess(pid, terminal)
        if asked["what"] == "begin":
            while _SAYS_IT_IS_READY not in player.shown and player.show():
                pass
            self._staying.append(player)
            is_ready = _SAYS_IT_IS_READY in player.shown
            return Completed(0 if is_ready else 1, player.shown.decode(errors="replace"))
        for cue, text in asked["typed"]:
            while cue.encode() not in player.shown and player.show():
                pass
            player.type(text)
        return player.end()

    def end(self) -> None:
        for player in self._staying:
            os.close(player.terminal)  # the test closed its end
            os.kill(player.pid, signal.SIGKILL)
            os.waitpid(player.pid, 0)

    def _run(self, words: Sequence[str], variables: Mapping[str, str]) -> Completed:
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(writing, 1)
            os.dup2(writing, 2)
            self._become(words, variables)
        os.close(writing)
        with open(reading, "rb") as output:
            shown = output.read()
        _, status = os.waitpid(pid, 0)
        return Completed(os.waitstatus_to_exitcode(status), shown.decode(errors="replace"))

    def _become(self, words: Sequence[str], variables: Mapping[str, str]) -> NoReturn:
        if words[: len(ROOTSD)] == ROOTSD:
            self._rootsd(words[len(ROOTSD) :], variables)
        try:
            os.execvpe(words[0], list(words), dict(variables))  # noqa: S606 - a part of a test
        finally:
            os._exit(127)


class _TerminalProcess:
    """A process on a terminal."""

    def __init__(self, pid: int, terminal: int) -> None:
        self.pid, self.terminal = pid, terminal
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


def serve(path: str, group: str, rootsd: BecomeRootsd) -> None:
    """Become the launcher, which ends when the test closes the connection at `path`."""
    if os.fork():
        return
    os.setsid()
    os.dup2(1, 2)
    if group:
        Path(group, "cgroup.procs").write_text(f"{os.getpid()}\n")
    launcher = _Launcher(rootsd)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        for line in connection.makefile("rb"):
            completed = launcher.carry_out(json.loads(line))
            answer = {"status": completed.status, "output": completed.output}
            connection.sendall(json.dumps(answer).encode() + b"\n")
        launcher.end()
