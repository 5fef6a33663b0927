"""`rootsd deny`."""

from __future__ import annotations

import click

from rootsd.cli import completion
from rootsd.cli.decisions import effect_of, send_and_print
from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.invocation import Invocation
from rootsd.wire.decisions import DecideRequest, DecisionVerb


@click.command(
    "deny",
    cls=VerbCommand,
    epilog="rootsd deny beta/api\nrootsd deny '*/scratch-*'",
)
@click.argument(
    "refs", nargs=-1, required=True, metavar="REF...", shell_complete=completion.projects()
)
@click.option("--dry-run", is_flag=True, help="only show what would be denied")
@pass_invocation
def command(invocation: Invocation, *, refs: tuple[str, ...], dry_run: bool) -> None:
    """Never publish these, nor anything below them; what was published is taken back at once.

    A denial holds for the path, whatever lies there later, until forget or approve. The path of a
    folder that is not known yet is denied as well.
    """
    effect = effect_of(dry_run=dry_run)
    send_and_print(
        invocation, DecideRequest(DecisionVerb.DENY, cwd=invocation.cwd, refs=refs, effect=effect)
    )
