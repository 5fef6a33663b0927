"""A stage for processes: whoever plays on it has no pytest above, and terminals where asked for.

The stage itself is the child of nobody, as what starts a desktop's programs is, and older than
they. It is run as a program of its own; `Stage` is how tests direct it.
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
class Played:
    """How a part ended, and all that it wrote."""

    status: int
    output: str


class Stage:
    """Directs. A context manager: at its end all who still play are ended.

    All play in the control group `group`, as the tabs of one terminal program do on a desktop.
    """

    def __init__(
        self, folder: Path, environment: Mapping[str, str], group: Path | None = None
    ) -> None:
        self._path = str(folder / "stage")
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

    def play(self, *words: str | Path, **variables: str) -> Played:
        """Run a program without a terminal."""
        return self._ask("run", words, variables)

    def play_on_terminal(
        self, *words: str | Path, typed: Sequence[tuple[str, str]] = (), **variables: str
    ) -> Played:
        """Run a program on a terminal of its own, typing each text once what it goes with is
        shown; `{word}` in a text stands for the word that a challenge asks for."""
        return self._ask("terminal", words, variables, typed)

    def begin(self, *words: str | Path, **variables: str) -> None:
        """Start a program, on a terminal of its own, that says `ready` and then stays."""
        begun = self._ask("begin", words, variables)
        assert begun.status == 0, begun.output

    def _ask(
        self,
        what: str,
        words: Sequence[str | Path],
        variables: Mapping[str, str],
        typed: Sequence[tuple[str, str]] = (),
    ) -> Played:
        asked = {
            "what": what,
            "words": [str(word) for word in words],
            "typed": list(typed),
            "variables": {**self._environment, **variables},
        }
        self._connection.sendall(json.dumps(asked).encode() + b"\n")
        answered = json.loads(self._lines.readline())
        return Played(answered["status"], answered["output"])


class _Player:
    """A process on a terminal."""

    def __init__(self, words: Sequence[str], variables: Mapping[str, str]) -> None:
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            os.execvpe(words[0], list(words), dict(variables))  # noqa: S606 - a part of a test
        self.shown = b""

    def show(self) -> bool:
        """Take in what is shown next; False at the end."""
        if not select.select([self.terminal], [], [], HANG_GUARD)[0]:
            return False
        try:
            part = os.read(self.terminal, 1 << 16)
        except OSError:  # nobody has the terminal any more
            part = b""
        self.shown += part
        return bool(part)

    def type(self, text: str) -> None:
        if "{word}" in text:
            word = self.shown.rpartition(b"Type ")[2].split()[0].decode()
            text = text.replace("{word}", word)
        os.write(self.terminal, text.encode())

    def end(self) -> Played:
        while self.show():
            pass
        os.close(self.terminal)
        _, status = os.waitpid(self.pid, 0)
        return Played(os.waitstatus_to_exitcode(status), self.shown.decode(errors="replace"))


def _run(asked: Mapping[str, Any], staying: list[_Player]) -> Played:
    words, variables = asked["words"], asked["variables"]
    if asked["what"] == "run":
        done = subprocess.run(
            words, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=HANG_GUARD, check=False,
            start_new_session=True,
        )  # fmt: skip
        return Played(done.returncode, done.stdout)
    player = _Player(words, variables)
    if asked["what"] == "begin":
        while _SAYS_IT_IS_READY not in player.shown and player.show():
            pass
        staying.append(player)
        is_ready = _SAYS_IT_IS_READY in player.shown
        return Played(0 if is_ready else 1, player.shown.decode(errors="replace"))
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
    staying: list[_Player] = []
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        for line in connection.makefile("rb"):
            played = _run(json.loads(line), staying)
            answer = {"status": played.status, "output": played.output}
            connection.sendall(json.dumps(answer).encode() + b"\n")
        for player in staying:
            os.close(player.terminal)  # it hangs up
            os.kill(player.pid, 9)
            os.waitpid(player.pid, 0)


if __name__ == "__main__":
    _main(*sys.argv[1:])
