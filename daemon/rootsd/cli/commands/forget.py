"""`rootsd forget`."""

from __future__ import annotations

import click

from rootsd.cli import completing
from rootsd.cli.decisions import decide, effect_of
from rootsd.cli.flags import Command, pass_session
from rootsd.cli.session import Session
from rootsd.wire.deciding import Decide, DecisionVerb


@click.command(
    "forget",
    cls=Command,
    epilog="rootsd forget beta/api",
)
@click.argument(
    "refs", nargs=-1, required=True, metavar="REF...", shell_complete=completing.projects()
)
@click.option("--dry-run", is_flag=True, help="only show what would be forgotten")
@pass_session
def command(session: Session, *, refs: tuple[str, ...], dry_run: bool) -> None:
    """Take a decision back: the project waits again; one that is gone is no longer listed."""
    effect = effect_of(dry_run=dry_run)
    decide(session, Decide(DecisionVerb.FORGET, cwd=session.cwd, refs=refs, effect=effect))
