"""`rootsd prune`: forget the decisions about folders that are gone."""

from __future__ import annotations

import click

from rootsd.cli.answers.decisions import OrderOutput, effect_of
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.terminal_face import KeyPolicy, TerminalFace, confirm_and_send
from rootsd.cli.options.flags import pass_invocation, verb, yes_option
from rootsd.cli.text.render import CommandResult
from rootsd.core.errors import Exit
from rootsd.wire.decisions import DecideRequest, DecisionVerb
from rootsd.wire.projects import ProjectsQuery, Selection

SECTION = "Decide"


@verb("prune", prints=(OrderOutput,), epilog="rootsd prune --dry-run\nrootsd prune")
@yes_option
@click.option("--dry-run", is_flag=True, help="only show what would be forgotten")
@pass_invocation
def command(invocation: Invocation, *, yes: bool, dry_run: bool) -> int:
    """Forget the decisions about folders that are gone.

    Decisions about folders that are only unreachable (unmounted, no permission) are kept. Denials
    are kept, too, because they also hold for a folder that appears there later. undo cannot
    restore pruned decisions, but the log still lists them.

    If this concerns more than one project, prune lists them and asks for a key. Without a
    terminal, it needs --yes.
    """
    missing = invocation.call(ProjectsQuery(invocation.cwd, select=Selection.MISSING))
    if not missing["items"]:
        answer = CommandResult((), missing["revision"], (), {"unchanged": [], "dry_run": dry_run})
        invocation.output.show(answer, ())
        invocation.output.message("Nothing to prune: no approved folder is gone.")
        return Exit.OK
    order = DecideRequest(
        DecisionVerb.FORGET,
        cwd=invocation.cwd,
        select=Selection.MISSING,
        effect=effect_of(dry_run=dry_run),
    )
    return confirm_and_send(TerminalFace(invocation, key=KeyPolicy.for_flag(yes=yes)), order)
