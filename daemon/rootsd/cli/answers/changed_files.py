"""Show what sessions behind the wall changed in files that tools run outside, and ask about it."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator
from contextlib import suppress

from rootsd.cli.answers.decisions import print_result
from rootsd.cli.answers.invocation import Invocation, call_or_read_store
from rootsd.cli.answers.terminal_face import TerminalFace
from rootsd.cli.text.phrases import shown_path
from rootsd.cli.text.projects import path_of
from rootsd.cli.text.terminal import Keyboard
from rootsd.core.errors import Exit
from rootsd.core.labels import safe_label, safe_text
from rootsd.places.base_folders import WALLS
from rootsd.wall.git.left_behind_reports import (
    ToolFileChange,
    changed_files,
    mark_seen,
    read_reports,
    running_reports,
)
from rootsd.wall.session.unreviewed import find_unreviewed, note_asked
from rootsd.wire.decisions import DecideRequest, DecisionVerb
from rootsd.wire.projects import ProjectsQuery, Selection

_MAX_COMPARED_LINES = 4000
_VERBS = {"y": DecisionVerb.ACCEPT, "n": DecisionVerb.DENY}
_ACCEPT_HELP = {
    "y": "accept them: rootsd stops listing them",
    "n": "deny the project: clients lose it at once",
    "s": "skip them: rootsd will list them again",
    "q": "quit",
}


def show_changed(invocation: Invocation, *, is_look: bool) -> bool:
    """Print each change as a diff, and what else is in the reports about sessions that have ended.

    If a person looks, do not show it again. Return whether there was any.
    """
    output = invocation.output
    walls = invocation.places.state + WALLS
    reports = [each for each in read_reports(walls) if not each.is_seen]
    shown = False
    for report in (*reports, *running_reports(walls)):
        for changed in changed_files(report):
            shown = True
            path = shown_path(changed.path)
            output.line(f"changed by {changed.makers}: {path}")
            for line in _diff(changed):
                output.line(safe_text(line))
        for sentence in report.sentences_about_git() if report in reports else ():
            shown = True
            output.line(sentence)
        if is_look and report in reports:
            with suppress(OSError):
                mark_seen(report)
    return shown


def review_approved(invocation: Invocation, keyboard: Keyboard | None) -> bool:
    """Show what changed in each project since its approval, and ask whether to accept it.

    Without a keyboard or a daemon, ask nothing. Return whether there was any change. Raises
    RootsdError.
    """
    listing = call_or_read_store(invocation, ProjectsQuery(cwd="/", select=Selection.CHANGED))
    is_daemon_there = listing["revision"] is not None
    invocation.output.warn(listing["warnings"])
    items = listing["items"]
    for item in items:
        name, path = safe_label(item["name"]), shown_path(path_of(item))
        invocation.output.line(f"changed since you approved {name}: {path}")
        for changed, how in item["changed"].items():
            invocation.output.line(f"  {how:<8}{safe_label(changed, limit=None)}")
        if keyboard is None or not is_daemon_there:
            continue
        key = _ask_to_accept(keyboard, name)
        if key == "q":
            break
        if key in _VERBS:
            order = DecideRequest(
                _VERBS[key], cwd="/", refs=(item["id"],), changes_shown=(item["changes"],)
            )
            if (sent := TerminalFace(invocation, keyboard).decide(order)) is not None:
                print_result(invocation, sent.order, sent.answer)
    return bool(items)


def _ask_to_accept(keyboard: Keyboard, name: str) -> str:
    while True:
        key = keyboard.press(f"accept the changes in {name}? [{','.join(_ACCEPT_HELP)},?] ")
        if key in _ACCEPT_HELP:
            return key
        sys.stderr.write("".join(f"{each}  {text}\n" for each, text in _ACCEPT_HELP.items()))


def ask_before_start(invocation: Invocation, keyboard: Keyboard, agent: str) -> int:
    """Ask whether to start an agent outside, if there are unreviewed changes in this project.

    Return the exit status: OK to start it.
    """
    output, walls = invocation.output, invocation.places.state + WALLS
    if (changes := find_unreviewed(walls, invocation.cwd)) is None:
        return Exit.OK
    flags = invocation.flags
    if flags.no_input or flags.json or not keyboard.is_there():
        output.message(f"{changes.sentence()}; to look at it: rootsd review --changed")
        return Exit.OK
    start = f"Start {safe_label(agent)} outside?"
    question = f"{changes.sentence()}. {start} [r]eview, [s]tart, [n]o "
    while True:
        match keyboard.press(question).lower():
            case "s":
                note_asked(walls, changes)
                return Exit.OK
            case "r":
                show_changed(invocation, is_look=True)
                question = f"{start} [s]tart, [n]o "
            case "n" | "q" | "\r" | "\n" | "":
                return Exit.REFUSED
            case _:
                pass


def _diff(changed: ToolFileChange) -> Iterator[str]:
    if changed.after is None:
        yield "(it is a link, or too large to show; look at it with ls -l)"
        return
    if changed.before is None and not changed.is_new:
        yield "(what was there before was a link, or was not kept; all that follows is there now)"
    old, new = changed.before or b"", changed.after
    if b"\0" in old + new:
        yield "(its content is no text)"
        return
    lines = list(_compared(old, new, "/dev/null" if changed.is_new else "before"))
    no_lines = (
        "it is empty" if changed.is_new else "only its mode or the ends of lines have changed"
    )
    yield from lines or [f"({no_lines})"]


def _compared(old: bytes, new: bytes, name: str) -> Iterator[str]:
    old_lines, new_lines = (
        each.decode("utf-8", "backslashreplace").splitlines() for each in (old, new)
    )
    if len(old_lines) + len(new_lines) <= _MAX_COMPARED_LINES:
        yield from difflib.unified_diff(old_lines, new_lines, name, "now", lineterm="")
    else:  # difflib would take minutes for what a program can write
        yield from ("-" + line for line in old_lines)
        yield from ("+" + line for line in new_lines)
