"""The names of the verbs: those of the files in `rootsd.cli.commands`, with `-` for `_`."""

from __future__ import annotations

import os
from functools import cache

COMMANDS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "commands")
"""The folder of the verbs' modules."""


@cache
def verb_names() -> frozenset[str]:
    """Return all verbs."""
    names = (name.removesuffix(".py") for name in os.listdir(COMMANDS) if name.endswith(".py"))
    return frozenset(name.replace("_", "-") for name in names if not name.startswith("_"))
