"""`rootsd rename`: give a project another name."""

from __future__ import annotations

import click

from rootsd.cli.answers.decisions import OrderOutput, effect_of, send_and_print
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.wire.decisions import RenameRequest

SECTION = "Decide"


@verb(
    "rename",
    prints=(OrderOutput,),
    epilog="rootsd rename acme/api api\nrootsd rename . notes",
)
@click.argument("ref", metavar="REF", shell_complete=completion.projects())
@click.argument("name")
@click.option("--dry-run", is_flag=True, help="only show what would be renamed")
@pass_invocation
def command(invocation: Invocation, *, ref: str, name: str, dry_run: bool) -> None:
    """Rename a project to NAME. Clients see the new name at once.

    A name belongs to one project. Only rename and approve --as change it, never a scan.
    """
    send_and_print(
        invocation, RenameRequest(ref, name, invocation.cwd, effect_of(dry_run=dry_run))
    )
