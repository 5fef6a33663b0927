"""`rootsd approve`."""

from __future__ import annotations

import click

from rootsd.cli import completing
from rootsd.cli.decisions import decide, effect_of
from rootsd.cli.durations import Duration
from rootsd.cli.flags import Command, pass_session
from rootsd.cli.session import Session
from rootsd.core.model import Access
from rootsd.wire.deciding import Decide, DecisionVerb
from rootsd.wire.projects import Selection

_WAITING = completing.projects(Selection.WAITING)


@click.command(
    "approve",
    cls=Command,
    epilog=(
        "rootsd approve acme/api\n"
        "rootsd approve . --as api --tag work\n"
        "rootsd approve beta/api --for 8h --read-only\n"
        "rootsd approve --all --under ~/src/acme --dry-run\n"
        "rootsd approve --lapsed --all"
    ),
)
@click.argument("refs", nargs=-1, metavar="REF...", shell_complete=_WAITING)
@click.option("--as", "name", metavar="NAME", help="publish it under this name")
@click.option(
    "--tag",
    "tags",
    multiple=True,
    metavar="TAG",
    shell_complete=completing.tags,
    help="tag it; may be repeated",
)
@click.option("--for", "lasts", type=Duration(), metavar="8h", help="end the approval after that")
@click.option("--read-only", is_flag=True, help="ask clients not to write in it")
@click.option("--all", "everything", is_flag=True, help="everything that waits for a decision")
@click.option(
    "--lapsed",
    is_flag=True,
    help="everything that was approved before and lapsed, rules, too",
)
@click.option(
    "--under",
    metavar="PATH",
    shell_complete=completing.folders,
    help="of these, only what lies below this folder",
)
@click.option("--dry-run", is_flag=True, help="only show what would be published")
@pass_session
def command(  # noqa: PLR0913 - one for each flag
    session: Session,
    *,
    refs: tuple[str, ...],
    name: str | None,
    tags: tuple[str, ...],
    lasts: int | None,
    read_only: bool,
    everything: bool,
    lapsed: bool,
    under: str | None,
    dry_run: bool,
) -> None:
    """Publish projects to MCP clients, from now on.

    REF is a name, an id, a path, or a glob over names and paths. The path of a folder that is not
    known yet proposes and approves it in one step. The approval holds for the directory that is
    there now; another one that takes its place has to be approved again.
    """
    sweeping = everything or lapsed or under is not None
    if sweeping == bool(refs):
        what = "name projects, or use --all, --lapsed or --under"
        raise click.UsageError(
            f"{what}, not both" if refs else f"{what}: rootsd pending lists them"
        )
    if name is not None and (sweeping or len(refs) != 1):
        raise click.UsageError("--as goes with exactly one project")
    select = Selection.LAPSED if lapsed else Selection.WAITING if sweeping else Selection.NAMED
    order = Decide(
        DecisionVerb.APPROVE,
        cwd=session.cwd,
        refs=refs,
        select=select,
        under=under,
        name=name,
        tags=tags,
        access=Access.READ if read_only else Access.READ_WRITE,
        lasts=lasts,
        effect=effect_of(dry_run=dry_run),
    )
    decide(session, order)
