"""Run `rootsd`: in this process, as a program, or as a program on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from enum import Enum, auto
from unittest.mock import patch

import pytest

from rootsd.cli.main import main
from support.subprocesses import UNPRIVILEGED

HANG_GUARD = 60


@dataclass(frozen=True, slots=True)
class Done:
    """The exit status and the output of a run. On a terminal, `out` holds both streams."""

    status: int
    out: str
    err: str = ""


class Privileges(Enum):
    """Whether a run as root keeps the capabilities that override permissions."""

    KEPT = auto()
    DROPPED = auto()


class Shell:
    """Runs commands."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def run(self, *words: str) -> Done:
        """The command line in this process, its output a pipe."""
        self._capture.readouterr()
        status = main(list(words))
        return Done(status, *self._capture.readouterr())

    def run_on_terminal(self, *words: str, columns: int = 100, **variables: str) -> Done:
        """The command line in this process, on a terminal of that width, without colors, and with
        these variables beside the others."""
        return self._on_terminal(words, columns, {"NO_COLOR": "1"} | variables)

    def run_in_color(self, *words: str, **variables: str) -> Done:
        """The same on a terminal of 100 columns with colors."""
        return self._on_terminal(words, 100, {"NO_COLOR": ""} | variables)

    def _on_terminal(
        self, words: Sequence[str], columns: int, variables: Mapping[str, str]
    ) -> Done:
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (30, columns))
        shown: list[bytes] = []
        reader = threading.Thread(target=lambda: shown.append(_read_all(ours)))
        reader.start()
        environment = {"TERM": "xterm", "COLUMNS": str(columns), **variables}
        # Line by line, so that the two streams keep their order.
        with (
            open(theirs, "w", buffering=1) as stream,
            patch.dict(os.environ, environment),
            redirect_stdout(stream),
            redirect_stderr(stream),
        ):
            status = main(list(words))
        reader.join(HANG_GUARD)
        os.close(ours)
        return Done(status, shown[0].decode().replace("\r\n", "\n"))

    def program(
        self,
        *words: str,
        environment: Mapping[str, str] = os.environ,
        privileges: Privileges = Privileges.KEPT,
    ) -> Done:
        """The same as a process of its own."""
        prefix = UNPRIVILEGED if privileges is Privileges.DROPPED and os.geteuid() == 0 else ()
        done = subprocess.run(
            [*prefix, sys.executable, "-m", "rootsd", *words],
            capture_output=True, text=True, check=False, timeout=HANG_GUARD, env=dict(environment),
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    def terminal(self, *words: str, rows: int = 30, **variables: str) -> Done:
        """`run_on_terminal` as a process of its own, which takes 50 times as long."""
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (rows, 100))
        process = subprocess.Popen(
            [sys.executable, "-m", "rootsd", *words],
            stdin=theirs, stdout=theirs, stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100", **variables},
        )  # fmt: skip
        os.close(theirs)
        text = _read_all(ours)
        os.close(ours)
        return Done(process.wait(HANG_GUARD), text.decode().replace("\r\n", "\n"))


def read_until(terminal: int, end: str) -> str:
    """Return what a terminal shows from now on, until it has shown `end`."""
    shown = ""
    while end not in shown:
        shown += os.read(terminal, 4096).decode()
    return shown


def _read_all(fd: int) -> bytes:
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(fd, 1 << 16)
        except OSError:  # Linux says EIO once the last writer has closed
            part = b""
        if not part:
            return b"".join(parts)
        parts.append(part)
