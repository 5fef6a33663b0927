"""Programs on a terminal, and typing to a `cat` in an interactive shell."""

from __future__ import annotations

import os
import pty
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pexpect
from ptyprocess import PtyProcess  # type: ignore[import-untyped]  # of pexpect

_HANG_GUARD_S = 120
SHELL = ("bash", "--norc", "--noediting", "-i")


class _Spawned(pexpect.spawn):  # type: ignore[type-arg]  # no class at run time takes one
    """Starts a program without a fork, which takes 20 ms in a process as large as pytest."""

    def _spawnpty(
        self,
        args: list[str],
        *,
        env: dict[str, str],
        cwd: str,
        dimensions: tuple[int, int],
        **_: object,
    ) -> PtyProcess:
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, dimensions)
        # In a new session, the terminal that is opened first is the one that controls it.
        opened = (os.POSIX_SPAWN_OPEN, 0, os.ttyname(theirs), os.O_RDWR, 0)
        copies = [(os.POSIX_SPAWN_DUP2, 0, number) for number in (1, 2)]
        words, actions = ["env", "-C", cwd, *args], [opened, *copies]
        pid = os.posix_spawn("/usr/bin/env", words, env, file_actions=actions, setsid=True)
        os.close(theirs)
        return PtyProcess(pid, ours)


def on_terminal(
    words: Sequence[str],
    cwd: Path,
    variables: Mapping[str, str] = MappingProxyType({}),
    columns: int = 200,
) -> pexpect.spawn[str]:
    """Start a program on a terminal, with these variables besides those of this process."""
    return _Spawned(
        words[0], list(words[1:]), cwd=str(cwd), env={**os.environ, "TERM": "xterm", **variables},
        encoding="utf-8", timeout=_HANG_GUARD_S, dimensions=(30, columns),
    )  # fmt: skip


def type_to_cat(shell: pexpect.spawn[str], command: str) -> None:
    """Run `command`, which starts or continues a `cat`, and wait for a line from it.

    The terminal echoes only what is typed after the shell has read its own line.
    """
    shell.sendline(f"echo read-$((1+1)); {command}")
    shell.expect_exact("read-2")
    shell.sendline("line")
    shell.expect_exact("line\r\nline")
