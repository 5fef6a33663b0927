"""`rootsd focus`."""

from __future__ import annotations

import click

from rootsd.cli import completion
from rootsd.cli.decisions import effect_of
from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.invocation import Invocation
from rootsd.cli.render import Column, CommandResult
from rootsd.core.labels import safe_label
from rootsd.wire.decisions import FocusQuery, FocusTarget, SetFocusRequest

_COLUMNS = (Column("", lambda item: item["name"]),)


@click.command(
    "focus",
    cls=VerbCommand,
    epilog="rootsd focus work\nrootsd focus work --now\nrootsd focus\nrootsd focus --clear --now",
)
@click.argument("tag", required=False, metavar="[TAG]", shell_complete=completion.tags)
@click.option("--clear", is_flag=True, help="let sessions see all roots again")
@click.option("--now", is_flag=True, help="narrow the sessions that run, too")
@click.option("--dry-run", is_flag=True, help="only show what a session would see")
@pass_invocation
def command(
    invocation: Invocation, *, tag: str | None, clear: bool, now: bool, dry_run: bool
) -> None:
    """Narrow the MCP sessions that begin from now on to the roots tagged TAG; alone, show that.

    A session with a scope of its own (bridge --only, run --only) keeps it. It prints the names of
    the roots that a session sees which begins now.
    """
    if tag is not None and clear:
        raise click.UsageError("name a tag, or use --clear, not both")
    is_order = tag is not None or clear
    if not is_order and (now or dry_run):
        raise click.UsageError("name a tag, or use --clear: rootsd tag lists the tags")
    reach = FocusTarget.ALL if now else FocusTarget.LATER
    request = SetFocusRequest(tag, reach, effect_of(dry_run=dry_run)) if is_order else FocusQuery()
    told = invocation.call(request)
    items = [{"name": name} for name in told["roots"]]
    extra = {"tag": told["tag"], "dry_run": dry_run}
    invocation.output.show(
        CommandResult(items, told["revision"], told["warnings"], extra), _COLUMNS
    )
    invocation.output.say(_sentence(told["tag"], len(items), dry_run=dry_run))


def _sentence(tag: str | None, roots: int, *, dry_run: bool) -> str:
    if dry_run:
        return "This is what a session would see; nothing was changed."
    if tag is None:
        return f"There is no focus: sessions see all roots ({roots})."
    return f"The focus is on {safe_label(tag)}: sessions see {roots} of the roots."
