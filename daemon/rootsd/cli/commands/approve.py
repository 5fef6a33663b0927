"""`rootsd approve`: publish projects to MCP clients."""

from __future__ import annotations

from typing import TypedDict, Unpack

import click

from rootsd.cli.answers.decisions import OrderOutput, effect_of
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.terminal_face import (
    Further,
    KeyPolicy,
    TerminalFace,
    confirm_and_send,
)
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation
from rootsd.cli.options.remote import RemoteVerbCommand
from rootsd.cli.options.times import Duration
from rootsd.core.access import Access
from rootsd.wire.decisions import ApprovalScope, DecideRequest, DecisionVerb
from rootsd.wire.projects import Selection

SECTION = "Decide"


class ApprovalFlags(TypedDict):
    """The options without a value."""

    read_only: bool
    write: bool
    for_session: bool
    always: bool
    everything: bool
    lapsed: bool
    worktrees: bool
    shared_git: bool
    incomplete: bool
    yes: bool
    dry_run: bool


_complete_pending = completion.projects(Selection.PENDING)


@click.command(
    "approve",
    cls=RemoteVerbCommand,
    prints=(OrderOutput,),
    epilog=(
        "rootsd approve acme/api\n"
        "rootsd approve . --as api --tag work\n"
        "rootsd approve beta/api --for 8h --read-only\n"
        "rootsd approve --all --under ~/src/acme --dry-run\n"
        "rootsd approve acme/api --worktrees\n"
        "rootsd approve --lapsed\n"
        "rootsd approve --lapsed acme/api"
    ),
)
@click.argument("refs", nargs=-1, metavar="REF...", shell_complete=_complete_pending)
@click.option("--as", "name", metavar="NAME", help="publish it under this name")
@click.option(
    "--tag",
    "tags",
    multiple=True,
    metavar="TAG",
    shell_complete=completion.tags,
    help="tag it; may be repeated",
)
@click.option(
    "--for", "lasts", type=Duration(), metavar="8h", help="end the approval after this time"
)
@click.option("--read-only", is_flag=True, help="ask clients not to write in it")
@click.option("--write", is_flag=True, help="let clients write in it (the default access)")
@click.option(
    "--session",
    "for_session",
    is_flag=True,
    help="only for the running session that requested it (the default if one did)",
)
@click.option(
    "--session-of",
    "session",
    metavar="PID",
    help="only for the running session of this process: one of several that requested it, or a"
    " program behind the wall",
)
@click.option("--always", is_flag=True, help="for all sessions, until you revoke it")
@click.option("--all", "everything", is_flag=True, help="all pending projects")
@click.option(
    "--lapsed",
    is_flag=True,
    help="all approvals that have lapsed, including rules, or those of REF",
)
@click.option(
    "--under",
    metavar="PATH",
    shell_complete=completion.folders,
    help="only projects below this folder",
)
@click.option(
    "--worktrees",
    is_flag=True,
    help="also publish their existing worktrees; a key or --yes confirms it",
)
@click.option(
    "--shared-git",
    is_flag=True,
    help="also let programs behind the wall use the Git directory of a pending checkout",
)
@click.option(
    "--incomplete",
    is_flag=True,
    help="also publish a named project that is incomplete, as after an interrupted clone",
)
@click.option("--yes", is_flag=True, help="do not ask for a key, even for several projects")
@click.option("--dry-run", is_flag=True, help="only show what would be published")
@pass_invocation
def command(
    invocation: Invocation,
    *,
    refs: tuple[str, ...],
    name: str | None,
    tags: tuple[str, ...],
    lasts: int | None,
    session: str | None,
    under: str | None,
    **flags: Unpack[ApprovalFlags],
) -> int:
    """Publish projects to MCP clients, from now on.

    REF is a name, an id, a path, or a glob. A path may also name a folder that rootsd does not
    know yet. The approval holds for the folder that is there now: if another one takes its place,
    that one is pending. If a running session lacks an approved project, approve it again by name.

    If you approve more than one project, approve lists them with their risks and secrets, and asks
    for a key. A folder publishes everything inside it, so its nested projects count, too. To
    decide about them one by one, use --under PATH. Without a terminal, approve needs --yes.

    A worktree that git adds later is published with its main checkout. If there are worktrees
    already, approve asks about those outside the checkout. Without a terminal, they stay pending
    unless you use --worktrees and --yes.

    A linked worktree or a submodule uses the Git directory of another checkout. If that checkout
    is pending, git fails behind the wall, unless you include its Git directory: approve asks for a
    key, or use --shared-git.

    To approve an incomplete project, such as an interrupted clone, name it: approve warns you and
    asks for a key, or use --incomplete. While a program still works on it, approve refuses.

    If a running session has requested the folder, the approval answers that request: it is
    read-only, for that session alone, and ends with it. Use --write or --always to grant more. If
    several sessions have requested it, approve asks which one gets it.

    --lapsed leaves out a folder whose origin has changed since its approval.
    """
    is_broad, lapsed = flags["everything"] or under is not None, flags["lapsed"]
    _check_selection(refs, name, is_open_ended=is_broad or (lapsed and not refs))
    is_for_session = flags["for_session"] or session is not None
    order = DecideRequest(
        DecisionVerb.APPROVE,
        cwd=invocation.cwd,
        refs=refs,
        select=_selection(lapsed=lapsed, is_broad=is_broad),
        under=under,
        name=name,
        tags=tags,
        access=_access(read_only=flags["read_only"], write=flags["write"]),
        span=_span(for_session=is_for_session, always=flags["always"], lasts=lasts),
        session=session,
        lasts=lasts,
        effect=effect_of(dry_run=flags["dry_run"]),
    )
    return confirm_and_send(_face(invocation, flags), order)


def _face(invocation: Invocation, flags: ApprovalFlags) -> TerminalFace:
    return TerminalFace(
        invocation,
        key=KeyPolicy.for_flag(yes=flags["yes"]),
        worktrees=_further(include=flags["worktrees"]),
        git_directories=_further(include=flags["shared_git"]),
        incomplete=_further(include=flags["incomplete"]),
    )


def _further(*, include: bool) -> Further:
    return Further.INCLUDE if include else Further.ASK


def _check_selection(refs: tuple[str, ...], name: str | None, *, is_open_ended: bool) -> None:
    """Raise UsageError unless either `refs` or flags select projects, and `name` suits them."""
    if is_open_ended == bool(refs):
        what = "name projects, or use --all, --lapsed, or --under"
        raise click.UsageError(
            f"{what}, not both" if refs else f"{what}; rootsd pending lists them"
        )
    if name is not None and (is_open_ended or len(refs) != 1):
        raise click.UsageError("--as needs exactly one project")


def _selection(*, lapsed: bool, is_broad: bool) -> Selection:
    """Return what the flags select. Names then choose among the lapsed approvals."""
    if lapsed:
        return Selection.LAPSED
    return Selection.PENDING if is_broad else Selection.NAMED


def _access(*, read_only: bool, write: bool) -> Access | None:
    """Return the access that the flags ask for; None if none does. Raises UsageError."""
    if read_only and write:
        raise click.UsageError("--read-only and --write contradict each other")
    if read_only:
        return Access.READ
    return Access.READ_WRITE if write else None


def _span(*, for_session: bool, always: bool, lasts: int | None) -> ApprovalScope:
    """Return the sessions that the flags approve for. Raises UsageError."""
    if for_session and (always or lasts is not None):
        raise click.UsageError("--session cannot be combined with --always or --for")
    if for_session:
        return ApprovalScope.SESSION
    return ApprovalScope.ALWAYS if always else ApprovalScope.USUAL
