"""Programs on a terminal, and typing to a `cat` in an interactive shell."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pexpect

_HANG_GUARD_S = 120
SHELL = ("bash", "--norc", "--noediting", "-i")


def on_terminal(
    words: Sequence[str],
    cwd: Path,
    variables: Mapping[str, str] = MappingProxyType({}),
    columns: int = 200,
) -> pexpect.spawn[str]:
    """Start a program on a terminal, with these variables besides those of this process."""
    return pexpect.spawn(
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
