"""`rootsd approve`."""

from __future__ import annotations

import click

from rootsd.cli import completing
from rootsd.cli.confirming import Confirmation, Key, Older, approve
from rootsd.cli.decisions import effect_of
from rootsd.cli.durations import Duration
from rootsd.cli.flags import Command, pass_session
from rootsd.cli.keys import Keyboard
from rootsd.cli.session import Session
from rootsd.core.model import Access
from rootsd.wire.deciding import Decide, DecisionVerb, Span
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
        "rootsd approve acme/api --worktrees\n"
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
@click.option("--write", is_flag=True, help="let clients write in it; the usual access")
@click.option(
    "--session",
    "for_session",
    is_flag=True,
    help="only for the running session that asks for it; the default if one does",
)
@click.option("--always", is_flag=True, help="for all sessions, until you revoke it")
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
@click.option(
    "--worktrees",
    is_flag=True,
    help="also publish their worktrees that exist already; on a terminal, a key confirms it",
)
@click.option("--yes", is_flag=True, help="ask for no key")
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
    write: bool,
    for_session: bool,
    always: bool,
    everything: bool,
    lapsed: bool,
    under: str | None,
    worktrees: bool,
    yes: bool,
    dry_run: bool,
) -> int:
    """Publish projects to MCP clients, from now on.

    REF is a name, an id, a path, or a glob over names and paths. The path of a folder that is not
    known yet proposes and approves it in one step. The approval holds for the directory that is
    there now. Approving a project again by its name brings it into the sessions that run.

    Worktrees that git adds later are published with their main checkout. For those that exist
    already, a person on a terminal is shown each folder and presses a key; elsewhere they stay
    pending without --worktrees. A glob, --all or --under asks for a key if it covers more than ten
    projects, or files that agents execute.

    If a running session has asked for the folder, the approval answers it: it is for that session
    alone, read-only, and ends with the session. Use --write or --always to grant more.
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
        access=_access(read_only=read_only, write=write),
        span=_span(for_session=for_session, always=always, lasts=lasts),
        lasts=lasts,
        effect=effect_of(dry_run=dry_run),
    )
    confirmation = Confirmation(
        Keyboard(),
        Older.PUBLISH if worktrees else Older.ASK,
        Key.NEVER if yes else Key.IF_THERE,
    )
    return approve(session, order, confirmation)


def _access(*, read_only: bool, write: bool) -> Access | None:
    """Return the access that the flags ask for; None if none does. Raises UsageError."""
    if read_only and write:
        raise click.UsageError("--read-only and --write contradict each other")
    if read_only:
        return Access.READ
    return Access.READ_WRITE if write else None


def _span(*, for_session: bool, always: bool, lasts: int | None) -> Span:
    """Return for whom the approval holds, by the flags. Raises UsageError."""
    if for_session and (always or lasts is not None):
        raise click.UsageError("--session goes neither with --always nor with --for")
    if for_session:
        return Span.SESSION
    return Span.ALWAYS if always else Span.USUAL
