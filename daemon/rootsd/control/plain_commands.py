"""Record the commands of a person that change something, but no decision, so undo knows them."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterable

from rootsd.core.changes import AuditNote, ChangeVerb, ProjectChange
from rootsd.core.errors import RootsdError
from rootsd.core.model import Actor
from rootsd.core.paths import text_of
from rootsd.core.plan import Plan
from rootsd.state.ledger import Ledger

log = logging.getLogger(__name__)


async def note_plain_commands(ledger: Ledger, commands: Iterable[str], actor: Actor) -> None:
    """Save an event for each command, unless `actor` is no person.

    The commands have been carried out already, so a disk that refuses the events only means that
    undo will not know them.
    """
    if not actor.kind.may_decide:
        return
    notes = [AuditNote(ChangeVerb.COMMAND, command, actor) for command in commands]
    try:
        await ledger.note(*notes)
    except RootsdError as error:
        log.warning("the store did not record a command: %s", error)


async def note_taken_off(ledger: Ledger, made: Plan, actor: Actor) -> None:
    """Do so for the projects that a command took off the list, if it changed no decision."""
    changes = [change for change in made.changes if isinstance(change, ProjectChange)]
    if not any(change.is_decision for change in changes):
        gone = [change.path for change in changes if change.verb is ChangeVerb.FORGOTTEN]
        commands = [shlex.join(("forget", text_of(path))) for path in gone]
        await note_plain_commands(ledger, commands, actor)
