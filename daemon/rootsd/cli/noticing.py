"""A line on the terminal about what is new, after a command that was about something else."""

from __future__ import annotations

import sys

from rootsd.cli.session import Session
from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label
from rootsd.wire.news import NewsQuery

# These show what waits, so that it is no news afterwards.
_LOOKS = frozenset(("pending", "review", "status", "up", "scan"))


def tell_news(session: Session) -> None:
    """Say in a line each what came since a person looked; where nobody looks on, nothing is asked.

    A daemon that does not answer, or not this, has no news.
    """
    if not session.has_called or not session.output.talks or not sys.stderr.isatty():
        return
    try:
        news = session.call(NewsQuery())
    except RootsdError:
        return
    if session.command.partition(" ")[0] in _LOOKS:
        return
    for wanted in news["wanted"]:
        session.output.say(f"{safe_label(wanted['note'], limit=None)}: rootsd show {wanted['id']}")
    if count := news["new"]:
        what = "1 new project waits" if count == 1 else f"{count} new projects wait"
        session.output.say(f"{what} for your decision: rootsd pending")
