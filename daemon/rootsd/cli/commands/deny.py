"""`rootsd deny`: never publish projects, and withdraw published ones."""

from __future__ import annotations

import click

from rootsd.cli.answers.decisions import OrderOutput, effect_of, print_result
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.terminal_face import KeyPolicy, TerminalFace, declined
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, yes_option
from rootsd.cli.options.remote import RemoteVerbCommand
from rootsd.core.errors import Exit
from rootsd.wire.decisions import DecideRequest, DecisionVerb

SECTION = "Decide"


@click.command(
    "deny",
    cls=RemoteVerbCommand,
    prints=(OrderOutput,),
    epilog="rootsd deny beta/api\nrootsd deny '*/scratch-*'",
)
@completion.refs_argument
@yes_option
@click.option("--dry-run", is_flag=True, help="only show what would be denied")
@pass_invocation
def command(invocation: Invocation, *, refs: tuple[str, ...], yes: bool, dry_run: bool) -> int:
    """Never publish these projects or anything below them. Published ones are withdrawn at once.

    A denial holds for the path, even if another folder appears there, until you forget or approve
    it. You can also deny a folder that rootsd does not know yet.

    If this denies more than one project, for example because you name a folder of projects, deny
    lists them and asks for a key. Without a terminal, it needs --yes.

    If `rootsd sync` cannot write the denial into the access list of a client, deny says so.
    """
    effect = effect_of(dry_run=dry_run)
    order = DecideRequest(DecisionVerb.DENY, cwd=invocation.cwd, refs=refs, effect=effect)
    decided = TerminalFace(invocation, key=KeyPolicy.for_flag(yes=yes)).decide(order)
    if decided is None:
        return declined(invocation, order)
    answer = decided.answer
    paths = [
        item["path"]
        for item in (*answer["items"], *answer["unchanged"])
        if item["kind"] != "uri" and item["path"] is not None
    ]
    from rootsd.cli.answers.unwritten_denials import not_written  # the order has priority

    problems = not_written(invocation, paths)
    print_result(invocation, order, {**answer, "warnings": [*answer["warnings"], *problems]})
    return Exit.OK
