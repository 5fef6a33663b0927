"""`rootsd prune`."""

from __future__ import annotations

import click

from rootsd.cli.decisions import decide, effect_of
from rootsd.cli.flags import Command, pass_session
from rootsd.cli.render import Answer
from rootsd.cli.session import Session
from rootsd.wire.deciding import Decide, DecisionVerb
from rootsd.wire.projects import ProjectsQuery, Selection


@click.command("prune", cls=Command, epilog="rootsd prune --dry-run\nrootsd prune")
@click.option("--dry-run", is_flag=True, help="only show what would be forgotten")
@pass_session
def command(session: Session, *, dry_run: bool) -> None:
    """Forget what was decided about folders that are gone.

    What is only out of reach (unmounted, no permission) is kept, and so are denials: they hold for
    what comes to lie there again. undo does not find what was pruned; the log still tells of it.
    """
    missing = session.call(ProjectsQuery(session.cwd, select=Selection.MISSING))
    if not missing["items"]:
        answer = Answer((), missing["revision"], (), {"unchanged": [], "dry_run": dry_run})
        session.output.show(answer, ())
        session.output.say("Nothing that was decided about is gone.")
        return
    decide(
        session,
        Decide(
            DecisionVerb.FORGET,
            cwd=session.cwd,
            select=Selection.MISSING,
            effect=effect_of(dry_run=dry_run),
        ),
    )
