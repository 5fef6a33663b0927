"""Shows text on a caller's terminal: both ends of it, with JSON in between.

The daemon cannot do it: its confinement lets it write nothing but its own folders.
"""

from __future__ import annotations

import json

from rootsd.core.callers import Process
from rootsd.core.terminals import terminal_name
from rootsd.host.helper.duties import Duty
from rootsd.host.helper.link import Helper
from rootsd.host.terminals import NotShown, show

_SECONDS = 2.0


def ask_to_show(helper: Helper, caller: Process, text: str) -> str:
    """Have `text` shown on the controlling terminal of `caller`; return the terminal's name.

    Raises NotShown and NoAnswer.
    """
    question = {
        "pid": caller.pid,
        "started": caller.started,
        "terminal": caller.terminal,
        "text": text,
    }
    why = json.loads(helper.ask(Duty.SHOWING, json.dumps(question).encode(), _SECONDS))
    if why is not None:
        raise NotShown(why)
    return terminal_name(caller.terminal)


def answer(question: bytes) -> bytes:
    """Show it, in the helper. The answer is null, or why it was not shown."""
    asked = json.loads(question)
    text = asked["text"].encode("utf-8", "backslashreplace")
    why = None
    try:
        show(asked["pid"], asked["started"], asked["terminal"], text)
    except NotShown as error:
        why = str(error)
    return json.dumps(why).encode()
