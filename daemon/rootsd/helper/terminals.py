"""Have the helper write to the terminal of a process.

The daemon's own confinement does not let it open a terminal.
"""

from __future__ import annotations

from msgspec import Struct

from rootsd.core.processes import Process, terminal_name
from rootsd.helper.client import Helper, ask_typed
from rootsd.helper.protocol import HelperTask, typed_answer
from rootsd.processes.terminals import TerminalWriteFailed, write_to_terminal

_SHOW_TEXT_S = 2.0


class TerminalText(Struct, frozen=True):
    """A text for the controlling terminal of a process."""

    caller: Process
    text: str


def ask_to_write_terminal(helper: Helper, caller: Process, text: str) -> str:
    """Write `text` to the controlling terminal of `caller`, and return the terminal's name.

    Raises TerminalWriteFailed and NoAnswer.
    """
    question = TerminalText(caller, text)
    if why := ask_typed(helper, HelperTask.WRITE_TERMINAL, question, _SHOW_TEXT_S, str):
        raise TerminalWriteFailed(why)
    return terminal_name(caller.terminal)


@typed_answer
def answer_write_terminal(question: TerminalText) -> str:
    """Write the text. Return the reason if the write failed, or an empty text."""
    text = question.text.encode("utf-8", "backslashreplace")
    caller = question.caller
    try:
        write_to_terminal(caller.pid, caller.started, caller.terminal, text)
    except TerminalWriteFailed as error:
        return str(error)
    return ""
