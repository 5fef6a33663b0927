"""`rootsd forget`: make projects undecided again."""

from __future__ import annotations

import click

from rootsd.cli.answers.decisions import OrderOutput, effect_of
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.terminal_face import KeyPolicy, TerminalFace, confirm_and_send
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb, yes_option
from rootsd.wire.decisions import DecideRequest, DecisionVerb

SECTION = "Decide"


@verb(
    "forget",
    prints=(OrderOutput,),
    epilog="rootsd forget beta/api",
)
@completion.refs_argument
@yes_option
@click.option("--dry-run", is_flag=True, help="only show what would be forgotten")
@pass_invocation
def command(invocation: Invocation, *, refs: tuple[str, ...], yes: bool, dry_run: bool) -> int:
    """Forget the decision on a project.

    The project is pending again. It leaves the list if its folder is gone, or if you added it by
    hand and no scan finds it.

    If this concerns more than one project, forget lists them and asks for a key. Without a
    terminal, it needs --yes.
    """
    effect = effect_of(dry_run=dry_run)
    order = DecideRequest(DecisionVerb.FORGET, cwd=invocation.cwd, refs=refs, effect=effect)
    return confirm_and_send(TerminalFace(invocation, key=KeyPolicy.for_flag(yes=yes)), order)
