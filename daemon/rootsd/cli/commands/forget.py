"""`rootsd forget`: make projects undecided again."""

from __future__ import annotations

import click

from rootsd.cli import completion
from rootsd.cli.decisions import OrderOutput, effect_of, send_and_print
from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.invocation import Invocation
from rootsd.wire.decisions import DecideRequest, DecisionVerb

SECTION = "Decide"


@click.command(
    "forget",
    cls=VerbCommand,
    prints=(OrderOutput,),
    epilog="rootsd forget beta/api",
)
@click.argument(
    "refs", nargs=-1, required=True, metavar="REF...", shell_complete=completion.projects()
)
@click.option("--dry-run", is_flag=True, help="only show what would be forgotten")
@pass_invocation
def command(invocation: Invocation, *, refs: tuple[str, ...], dry_run: bool) -> None:
    """Forget the decision on a project.

    The project is pending again. If its folder is gone, it is no longer listed.
    """
    effect = effect_of(dry_run=dry_run)
    send_and_print(
        invocation,
        DecideRequest(DecisionVerb.FORGET, cwd=invocation.cwd, refs=refs, effect=effect),
    )
