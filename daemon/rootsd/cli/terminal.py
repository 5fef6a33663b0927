"""The challenge: a word that a person types on the controlling terminal, and no pipe can."""

from __future__ import annotations

import os
import termios
from collections.abc import Mapping
from typing import Any

from rootsd.cli.render import safe_text
from rootsd.core.labels import safe_label

_TERMINAL = "/dev/tty"
_MOST_LINES = 40


def typed_at(challenge: Mapping[str, Any]) -> str | None:
    """What a person types when shown `challenge`; None where there is no terminal.

    Whatever had been typed before is dropped: only an answer to the question counts.
    """
    try:
        fd = os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "r+b", buffering=0) as terminal:
        word = safe_label(str(challenge["word"]))
        lines = [safe_text(str(line)) for line in challenge["lines"][:_MOST_LINES]]
        told = [*lines, f"Type {word} to go on: "]
        termios.tcflush(terminal, termios.TCIFLUSH)
        terminal.write("\n".join(told).encode("utf-8", "backslashreplace"))
        return terminal.readline().decode("utf-8", "replace").strip()
