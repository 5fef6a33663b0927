"""`rootsd rename`."""

from __future__ import annotations

import click

from rootsd.cli import completing
from rootsd.cli.decisions import decide, effect_of
from rootsd.cli.flags import Command, pass_session
from rootsd.cli.session import Session
from rootsd.wire.naming import Renaming


@click.command("rename", cls=Command, epilog="rootsd rename acme/api api\nrootsd rename . notes")
@click.argument("ref", metavar="REF", shell_complete=completing.projects())
@click.argument("name")
@click.option("--dry-run", is_flag=True, help="only show what it would be called")
@pass_session
def command(session: Session, *, ref: str, name: str, dry_run: bool) -> None:
    """Call a project NAME; clients see the new name at once.

    A name belongs to one project, and nothing else changes it: no scan, and no approval.
    """
    decide(session, Renaming(ref, name, session.cwd, effect_of(dry_run=dry_run)))
