"""Ask about the pending project in which somebody starts a program behind the wall."""

from __future__ import annotations

import sys

from msgspec.structs import replace

from rootsd.cli.answers.error_handler import run_with_error_handler
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.terminal_face import TerminalFace, confirm_and_send
from rootsd.cli.text.phrases import shown_path
from rootsd.cli.text.projects import LABEL_WIDTH, RISK_LABELS, detail_lines
from rootsd.cli.text.terminal import Keyboard
from rootsd.cli.text.theme import Tone
from rootsd.core.access import Access
from rootsd.core.errors import Exit
from rootsd.core.labels import safe_label
from rootsd.wire.decisions import ApprovalScope, DecideRequest, DecisionVerb
from rootsd.wire.projects import ShowQuery

_HELP = """\
y  publish it, until you revoke it
s  only for this program, until it ends
n  start without it
"""


def ask_about_start(path: str, front: int) -> int:
    """Ask whether to approve the project at `path`, for good or for the wall of process `front`.

    Carry out the answer, and return the exit status. A no is no failure.
    """
    invocation = Invocation(command="approve", arguments=(path,))
    return run_with_error_handler(invocation, lambda: _ask(invocation, path, front))


def _ask(invocation: Invocation, path: str, front: int) -> int:
    keyboard = Keyboard()
    [item] = invocation.call(ShowQuery("/", (path,)))["items"]
    for label, value in detail_lines(item, for_person=True):
        if label in RISK_LABELS:
            shown = safe_label(value, limit=None)
            invocation.output.labelled_message(f"{label:<{LABEL_WIDTH}}", shown, Tone.REFUSED)
    seen = (item["identity"],)
    order = DecideRequest(DecisionVerb.APPROVE, cwd="/", refs=(path,), shown=seen)
    place = shown_path(path)
    question = f"{place} is pending. Approve it? [y]es, for this [s]ession, [n]o "
    while True:
        match keyboard.press(question):
            case "y":
                order = replace(order, span=ApprovalScope.ALWAYS)
                break
            case "s":
                access, session = Access.READ_WRITE, str(front)
                order = replace(order, access=access, session=session, span=ApprovalScope.SESSION)
                break
            case "n" | "q":
                return Exit.OK
            case _:
                sys.stderr.write(_HELP)
    return confirm_and_send(TerminalFace(invocation, keyboard), order)
