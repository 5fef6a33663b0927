"""Start a program in the right place, also if it may not see its working directory yet.

A person starts an agent in a project, and that may be pending. On a terminal, the front then asks
whether to approve it: for good, or for this wall alone. Anywhere else, and after a no, it says
which command does that. The program starts with an empty folder at that path. If the project is
approved later, `cd "$PWD"` leads into it.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple, NoReturn

from rootsd.core.mount_plan import ConfinedRoot, ViewEntry, ViewEntryKind
from rootsd.core.paths import bytes_of, contains, text_of
from rootsd.link import rpc
from rootsd.wall.session.messages import shorten_home
from rootsd.wall.session.options import ConfineOptions, Opening
from rootsd.wall.view.standard_files import is_in_pipeline
from rootsd.wire.requested_scope import RequestedScope

AskAboutStart = Callable[[str, int], int]
"""Asks a person about the pending project at a path, for the wall of a process, and carries out
the answer. Returns an exit status, which is 0 also if the person says no.
"""
_TIMEOUT_S = 10.0


class StartFolder(NamedTuple):
    """A working directory that a program does not see.

    `project` is the one that holds it, with its `verdict`. Both are empty if there is none.
    """

    path: bytes
    project: bytes = b""
    verdict: str = ""

    def can_be_asked_about(self, options: ConfineOptions) -> bool:
        """Return whether to ask a person about it now."""
        return (
            self.verdict == "pending"
            and options.flags.isdisjoint((Opening.SHOW, Opening.NO_INPUT))
            and _is_person_there()
        )

    def sentence(self, entries: Iterable[ViewEntry]) -> str:
        """Return what a person needs to know, or nothing if one of `entries` shows it anyway."""
        above = [each for each in entries if contains(each.path, self.path)]
        others = [each for each in above if each.kind is not ViewEntryKind.EMPTY]
        nearest = max(others, key=lambda each: len(each.path), default=None)
        if nearest is not None and self.verdict != "denied":
            is_own = nearest.kind is ViewEntryKind.PRIVATE and nearest.path == self.path
            if is_own or nearest.kind not in (ViewEntryKind.PRIVATE, ViewEntryKind.HIDDEN):
                return ""
        where = self.project or self.path
        shown, typed = shorten_home(where), shlex.quote(text_of(where))
        match self.verdict:
            case "pending":
                return f"{shown} is pending, so it is closed; try: rootsd approve {typed}"
            case "":
                return f"{shown} is no project, so it is closed; try: rootsd approve {typed}"
            case "approved":
                return f"{shown} is approved, but not for this; try: rootsd why {typed}"
            case verdict:
                return f"{shown} is {verdict}, so it is closed; try: rootsd why {typed}"


def hidden_start(
    scope: RequestedScope, roots: Iterable[ConfinedRoot], home: bytes
) -> StartFolder | None:
    """Return the working directory if an approval could show it to the program.

    Return None if it is visible, and if the words of the scope leave it out. Raises RootsdError.
    """
    if scope.narrows and scope.workspace is None and scope.cwd is None:
        return None
    try:
        path = os.getcwdb()
    except FileNotFoundError:
        return None
    shown = [root.path for root in roots]
    if any(contains(each, path) for each in shown):
        return None
    if any(contains(path, each) for each in (home, *shown)):  # a folder on the way
        return None
    with rpc.connect_control() as channel:
        channel.settimeout(_TIMEOUT_S)
        found = rpc.ask(channel, "why", {"path": text_of(path)})
    for item in found.get("items", ()):
        return StartFolder(path, bytes_of(item["path"]), item["verdict"])
    return StartFolder(path)


def start_again() -> NoReturn:
    """Begin this process anew, with the same arguments and no question.

    It has asked a person, and loaded much for that which would stay in its memory. Its pid stays,
    so an approval for its wall is for the new one, too. The guard must see that the front itself
    asks, so no child can do it.
    """
    words = sys.orig_argv
    own = len(words) - len(sys.argv[1:])
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *words[1:own], "--no-input", *words[own:]])  # noqa: S606 - the same program


def _is_person_there() -> bool:
    """Return whether this process may ask on its terminal: not in the background or a pipeline."""
    try:
        return os.isatty(2) and os.tcgetpgrp(0) == os.getpgrp() and not is_in_pipeline()
    except OSError:  # standard input is no terminal
        return False
