"""`rootsd focus`: limit MCP sessions to the roots with one tag."""

from __future__ import annotations

from typing import TypedDict

import click

from rootsd.cli.answers.decisions import effect_of
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.render import Column, CommandResult
from rootsd.core.labels import safe_label
from rootsd.wire.decisions import FocusQuery, FocusTarget, SetFocusRequest

SECTION = "Decide"

_COLUMNS = (Column("", lambda item: item["name"]),)


class FocusedRootItem(TypedDict):
    """A root that a new session sees."""

    name: str
    """Its name."""


class FocusOutput(TypedDict):
    """The focus, and the roots that a new session sees."""

    tag: str | None
    """The tag, or null without a focus."""
    dry_run: bool
    """Whether nothing was changed, because of `--dry-run`."""
    items: list[FocusedRootItem]
    """The roots."""


@verb(
    "focus",
    prints=(FocusOutput,),
    epilog="rootsd focus work\nrootsd focus work --now\nrootsd focus\nrootsd focus --clear --now",
)
@click.argument("tag", required=False, metavar="[TAG]", shell_complete=completion.tags)
@click.option("--clear", is_flag=True, help="let sessions see all roots again")
@click.option("--now", is_flag=True, help="also limit the running sessions")
@click.option("--dry-run", is_flag=True, help="only show what a session would see")
@pass_invocation
def command(
    invocation: Invocation, *, tag: str | None, clear: bool, now: bool, dry_run: bool
) -> None:
    """Limit new MCP sessions to the roots tagged TAG. Without arguments, show the focus.

    A session with its own scope (bridge --only, run --only) keeps it. The output lists the roots
    that a new session sees.
    """
    if tag is not None and clear:
        raise click.UsageError("name a tag, or use --clear, not both")
    is_change = tag is not None or clear
    if not is_change and (now or dry_run):
        raise click.UsageError("name a tag, or use --clear; rootsd tag lists the tags")
    reach = FocusTarget.ALL if now else FocusTarget.LATER
    request = (
        SetFocusRequest(tag, reach, effect_of(dry_run=dry_run)) if is_change else FocusQuery()
    )
    focus = invocation.call(request)
    items = [{"name": name} for name in focus["roots"]]
    extra = {"tag": focus["tag"], "dry_run": dry_run}
    invocation.output.show(CommandResult.of(focus, items, **extra), _COLUMNS)
    invocation.output.message(_sentence(focus["tag"], len(items), dry_run=dry_run))


def _sentence(tag: str | None, roots: int, *, dry_run: bool) -> str:
    if dry_run:
        return "Dry run: a new session would see these roots; nothing was changed."
    if tag is None:
        return f"No focus: sessions see all roots ({roots})."
    return f"Focus on {safe_label(tag)}: sessions see {roots} of the roots."
