"""Tell a person what a program that other programs start reads from its standard input."""

from __future__ import annotations

import os
import sys


def explain_wait(verb: str, what: str, remedy: str) -> None:
    """Say on a terminal that `rootsd VERB` waits for `what`. Anywhere else, say nothing."""
    if os.isatty(0) and sys.stderr.isatty():
        sys.stderr.write(
            f"rootsd {verb} waits for {what} on standard input. Other programs start it."
            f" Press Ctrl-C to end it.\n  try: {remedy}\n"
        )
