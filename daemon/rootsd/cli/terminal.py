"""The answer to a challenge: a word that a person types on the controlling terminal."""

from __future__ import annotations

import os

_TERMINAL = "/dev/tty"


def typed_word() -> str | None:
    """Return the line that a person types on the controlling terminal; None if there is none.

    The daemon has shown the word there, and dropped what was typed before that.
    """
    try:
        fd = os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb", buffering=0) as terminal:
        return terminal.readline().decode("utf-8", "replace").strip()
