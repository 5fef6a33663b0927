"""Type to a `cat` in an interactive shell."""

from __future__ import annotations

import pexpect


def type_to_cat(shell: pexpect.spawn[str], command: str) -> None:
    """Run `command`, which starts or continues a `cat`, and wait for a line from it.

    The terminal echoes only what is typed after the shell has read its own line.
    """
    shell.sendline(f"echo read-$((1+1)); {command}")
    shell.expect_exact("read-2")
    shell.sendline("line")
    shell.expect_exact("line\r\nline")
