"""`rootsd deny`."""

from __future__ import annotations

import click

from rootsd.cli import completing
from rootsd.cli.decisions import decide, effect_of
from rootsd.cli.flags import Command, pass_session
from rootsd.cli.session import Session
from rootsd.wire.deciding import Decide, DecisionVerb


@click.command(
    "deny",
    cls=Command,
    epilog="rootsd deny beta/api\nrootsd deny '*/scratch-*'",
)
@click.argument(
    "refs", nargs=-1, required=True, metavar="REF...", shell_complete=completing.projects()
)
@click.option("--dry-run", is_flag=True, help="only show what would be denied")
@pass_session
def command(session: Session, *, refs: tuple[str, ...], dry_run: bool) -> None:
    """Never publish these, nor anything below them; what was published is taken back at once.

    A denial holds for the path, whatever lies there later, until forget or approve. The path of a
    folder that is not known yet is denied as well.
    """
    effect = effect_of(dry_run=dry_run)
    decide(session, Decide(DecisionVerb.DENY, cwd=session.cwd, refs=refs, effect=effect))
