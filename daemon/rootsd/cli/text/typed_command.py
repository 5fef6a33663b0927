"""The command that a person types to start this program again.

Messages and remedies name `rootsd VERB`. A shell that has no `rootsd` on its PATH cannot run that,
for example after `make up` in a checkout, or with a virtual environment that is not activated.
There the output names the path by which this process was started.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from functools import cache

from rootsd.cli.text.phrases import shorten_home
from rootsd.cli.text.verb_names import verb_names
from rootsd.processes.own_program import COMMAND_NAME


def as_typed(text: str) -> str:
    """Return `text` with each `rootsd VERB` in it as this shell can run it."""
    if COMMAND_NAME not in text:
        return text
    name = _typed_name(sys.argv[0], os.environ.get("PATH", os.defpath))
    return text if name == COMMAND_NAME else _named_commands().sub(lambda _: name, text)


@cache
def _typed_name(started_as: str, search: str) -> str:
    """Return `rootsd` if it is on the PATH, or if this process was started in another way."""
    if os.path.basename(started_as) != COMMAND_NAME:  # python -m rootsd
        return COMMAND_NAME
    names = (os.path.join(folder, COMMAND_NAME) for folder in search.split(os.pathsep))
    if any(os.access(name, os.X_OK) for name in names):
        return COMMAND_NAME
    quoted = shlex.quote(started_as)
    return shorten_home(started_as) if quoted == started_as else quoted


@cache
def _named_commands() -> re.Pattern[str]:
    """Match the name of the command in `rootsd VERB`, but not at the end of a path."""
    return re.compile(rf"(?<![\w./-]){COMMAND_NAME}(?= (?:{'|'.join(verb_names())})\b)")
