"""Questions that the store can answer, too, where no daemon runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rootsd.cli.session import Session
from rootsd.core.errors import Busy, DaemonUnreachable

if TYPE_CHECKING:
    from rootsd.app.reading import Question


def read(session: Session, question: Question) -> dict[str, Any]:
    """The answer; one from the store comes with a warning that says so. Raises DaemonUnreachable
    where there is no store, or somebody else holds it, and what else `call` raises."""
    try:
        return session.call(question)
    except DaemonUnreachable:
        from rootsd.app import reading

        if not reading.is_stored(session.places):
            raise
        try:
            return reading.stored(session.places, question)
        except Busy:
            # A daemon that starts or ends right now, whom nobody can ask yet or any more.
            pass
        raise
